"""The commands `jigsaw federate …`.

Each command imports what it runs, so that help and completion start fast.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.terminal import note, working
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import Table, emit

# Exit code of a round whose result lacks some sites.
INCOMPLETE = 3

federate = typer.Typer(
    help="Sites keep their data; a coordinator gets their fragments.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog="Example: jigsaw federate init federation/ --site lab-1 --site lab-2",
)
opt.app.add_typer(federate, name="federate")


@opt.command("jigsaw federate keygen lab-1 -o lab-1.key", on=federate)
def keygen(site: str, *, output: Path | None = None, as_json: bool = False) -> None:
    """Make a site's key pair for signing fragments.

    The private key stays at the site. Send the printed line to the coordinator, who adds it to the
    list of keys below [sites].
    """
    from jigsaw_crl.federated.keys import generate_key

    private = Path(f"{site}.key") if output is None else output
    line = generate_key(site, private)
    emit(as_json, {"site": site, "private": str(private), "line": line}, line)
    note(f"the private key is in {private}: keep it here; send its line to the coordinator")


@opt.command(
    "jigsaw federate init federation/ --server hub.example.org --site lab-1 --site lab-2",
    None,
    federate,
)
def init(
    folder: Path,
    *,
    site: list[str],
    server: str = "localhost",
    port: int = 8002,
    admin: str = "coordinator@jigsaw.local",
    as_json: bool = False,
) -> None:
    """Make certificates and hardened kits for a federation.

    NVFlare runs from these kits, one for each participant. A kit holds a private key: hand it over
    by a channel that you trust.
    """
    from jigsaw_crl.federated.kits import init_federation

    with working("making certificates"):
        made = init_federation(folder, site, server=server, port=port, admin=admin)
    document = {
        "project": str(made.project),
        "coordinator": str(made.coordinator),
        "admin": str(made.admin),
        "sites": {name: str(kit) for name, kit in made.sites.items()},
    }
    rows = [("coordinator", made.coordinator), ("admin", made.admin), *made.sites.items()]
    emit(as_json, document, Table("Kits", ["for", "folder"], rows))


@opt.command("jigsaw federate start kits/lab-1", on=federate)
def start(kit: Path) -> None:
    """Run the coordinator or a site from its kit.

    It runs until it is interrupted. A kit that allows more than a new one does is refused.
    """
    from jigsaw_crl.federated.running import run_participant

    code = run_participant(kit, note)
    if code:
        raise InputError(f"it ended with code {code}", "See log.txt in the kit.", path=kit)


@opt.command("jigsaw federate add-site federation/ lab-4", "add-site", federate)
def add_site(federation: Path, site: str, *, as_json: bool = False) -> None:
    """Make the kit of a new site, and list it at the coordinator.

    The coordinator asks the site from the next round on; it need not be started again.
    """
    from jigsaw_crl.federated.kits import add_site as add

    with working("making a certificate"):
        kit = add(federation, site)
    emit(as_json, {"site": site, "kit": str(kit)}, f"the kit is in {kit}: hand it to the site")


@opt.command("jigsaw federate renew federation/ lab-1", on=federate)
def renew(federation: Path, name: str, *, as_json: bool = False) -> None:
    """Give a participant a new key and certificate.

    Replace the folder startup of its kit by the new one, then start it again.
    """
    from jigsaw_crl.federated.kits import renew as make_new

    with working("making a certificate"):
        startup = make_new(federation, name)
    text = f"replace the folder startup of its kit by {startup}, then start it again"
    emit(as_json, {"name": name, "startup": str(startup)}, text)


@opt.command("jigsaw federate revoke federation/ lab-2", on=federate)
def revoke(federation: Path, site: str, *, as_json: bool = False) -> None:
    """Take a site out of the federation for good.

    The coordinator does not ask it any more and refuses its connections.
    """
    from jigsaw_crl.federated.kits import revoke as take_off

    take_off(federation, site)
    emit(as_json, {"site": site, "revoked": True}, f"{site} takes no part any more")


@opt.command("jigsaw federate status federation/", on=federate)
def status(federation: Path, *, patience: float = 5.0, as_json: bool = False) -> None:
    """Which sites are connected, and when do certificates expire?"""
    from jigsaw_crl.federated.kits import WARNING_DAYS, members
    from jigsaw_crl.federated.running import connected_sites

    found = members(federation)
    admin = next(one.name for one in found if one.kind == "admin")
    connected: set[str] | None = None
    try:
        with working("asking the coordinator"):
            connected = connected_sites(federation / "kits" / admin, patience=patience)
    except InputError as error:
        note(f"connections are unknown: {error.what}")

    said, rows = [], []
    for one in found:
        there = None if connected is None or one.kind != "site" else one.name in connected
        said.append({**asdict(one), "connected": there})
        word, left = {True: "yes", False: "no", None: ""}[there], one.days
        rows.append((one.name, one.kind, one.state, word, "kit not here" if left is None else left))
        if left is not None and left < WARNING_DAYS and one.state != "revoked":
            note(f"warning: the certificate of {one.name} expires in {left} days")
    columns = ["name", "kind", "state", "connected", "days left"]
    emit(as_json, {"members": said}, Table("Federation", columns, rows))


@opt.command("jigsaw federate submit kits/coordinator@jigsaw.local --round first", on=federate)
def submit(
    kit: Path,
    *,
    round_name: str,
    min_sites: int = 1,
    timeout: int = 300,
    deadline: float | None = None,
    patience: float = 15.0,
    again: bool = False,
    method: opt.Method = "null-cone",
    as_json: bool = False,
) -> None:
    """Ask every site for its fragment, and assemble them.

    Sites are asked once; the coordinator assembles the fragments that arrive. The result is in
    results/NAME of the coordinator's kit. The state of each site is printed, and is in round.json
    there. Exit code 0: the result rests on every site; 3: on some of them; 2: there is no result.
    """
    from jigsaw_crl.federated.running import submit_round
    from jigsaw_crl.federated.settings import RoundOptions

    options = RoundOptions(
        round_name=round_name,
        min_sites=min_sites,
        timeout=timeout,
        method=method,
        again=again,
    )
    with working("waiting for the sites"):
        end = submit_round(kit, options, deadline=deadline or timeout + 120, patience=patience)
    record, seconds = end.record, round(end.seconds, 1)
    rows = [] if record is None else [(x, s.state, s.why) for x, s in record.sites.items()]
    told = [Table(f"Round {round_name}", ["site", "state", "why"], rows)] if record else []
    state = None if record is None else record.model_dump()
    document = {"round": round_name, "job": end.job, "seconds": seconds, "state": state}
    emit(as_json, document, told)
    if not end.ok:
        raise InputError(
            f"the round {round_name!r} gave no result: {end.failure}",
            f"See results/{round_name}/round.json and log.txt in the coordinator's kit.",
        )
    assert record is not None
    if not as_json:
        typer.echo(f"done: see results/{round_name} in the coordinator's kit")
    if not record.complete:
        raise typer.Exit(INCOMPLETE)
