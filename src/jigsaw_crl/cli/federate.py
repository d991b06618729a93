"""The commands `jigsaw federate …`."""

from __future__ import annotations

from pathlib import Path

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.terminal import Table, note, working
from jigsaw_crl.cli import options as opt

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
def keygen(site: str, *, output: Path | None = None) -> opt.Answers:
    """Make a site's key pair for signing fragments.

    The private key, SITE.key by default, stays at the site. Send the printed line to the
    coordinator, who adds it to the list of keys below [sites].
    """
    from jigsaw_crl.federated.keys import generate_key

    private = Path(f"{site}.key") if output is None else output
    line = generate_key(site, private)
    yield {"site": site, "private": str(private), "line": line}, line
    note(f"the private key is in {private}: keep it here; send its line to the coordinator")


@opt.command(
    "jigsaw federate init federation/ --server hub.example.org --site lab-1 --site lab-2",
    on=federate,
)
def init(
    federation: Path,
    *,
    site: list[str],
    server: str = "localhost",
    port: int = 8002,
    admin: str = "coordinator@jigsaw.local",
) -> opt.Answers:
    """Make certificates and hardened kits for a federation.

    NVFlare runs from these kits, one for each participant: name each site with --site. A kit holds
    a private key: hand it over by a channel that you trust.
    """
    from jigsaw_crl.federated.kits import init_federation

    with working("making certificates"):
        kits = init_federation(federation, site, server=server, port=port, admin=admin)
    ours = {"coordinator": str(kits / server), "admin": str(kits / admin)}
    sites = {name: str(kits / name) for name in site}
    document = {"project": str(federation / "project.yml"), **ours, "sites": sites}
    yield document, Table("Kits", ["for", "folder"], [*ours.items(), *sites.items()])


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
def add_site(federation: Path, site: str) -> opt.Answers:
    """Make the kit of a new site, and list it at the coordinator.

    The coordinator asks the site from the next round on; it need not be started again.
    """
    from jigsaw_crl.federated.kits import add_site as add

    with working("making a certificate"):
        kit = add(federation, site)
    yield {"site": site, "kit": str(kit)}, f"the kit is in {kit}: hand it to the site"


@opt.command("jigsaw federate renew federation/ lab-1", on=federate)
def renew(federation: Path, name: str) -> opt.Answers:
    """Give a participant a new key and certificate.

    Replace the folder startup of its kit by the new one, then start it again.
    """
    from jigsaw_crl.federated.kits import renew as make_new

    with working("making a certificate"):
        startup = make_new(federation, name)
    text = f"replace the folder startup of its kit by {startup}, then start it again"
    yield {"name": name, "startup": str(startup)}, text


@opt.command("jigsaw federate revoke federation/ lab-2", on=federate)
def revoke(federation: Path, site: str) -> opt.Answers:
    """Take a site out of the federation for good.

    The coordinator does not ask it any more and refuses its connections.
    """
    from jigsaw_crl.federated.kits import revoke as take_off

    take_off(federation, site)
    yield {"site": site, "revoked": True}, f"{site} takes no part any more"


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
) -> opt.Answers:
    """Ask every site for its fragment, and assemble them.

    Sites are asked once; the coordinator assembles the fragments that arrive. The result is in
    results/NAME of the coordinator's kit. The state of each site is printed, and is in round.json
    there. Exit code 0: the result rests on every site; 3: on some of them; 2: there is no result.
    """
    from jigsaw_crl.federated.running import check_certificates, submit_round
    from jigsaw_crl.federated.settings import RoundOptions

    given = {"round_name": round_name, "min_sites": min_sites, "method": method, "again": again}
    limits = {"timeout": timeout, "deadline": deadline or timeout + 120}
    options = RoundOptions.from_document({**given, **limits})
    check_certificates(kit, note)
    with working("waiting for the sites"):
        record = submit_round(kit, options, patience=patience)
    rows = [(site, s.state, s.why) for site, s in record.sites.items()]
    document = {"round": round_name, "state": record.model_dump()}
    done = f"done: see results/{round_name} in the coordinator's kit" if record.closed else ""
    yield document, Table(f"Round {round_name}", ["site", "state", "why"], rows), done
    if not record.closed:
        raise InputError(
            f"the round {round_name!r} gave no result: {record.failure}",
            f"See results/{round_name}/round.json and log.txt in the coordinator's kit.",
        )
    if any(standing.state != "received" for standing in record.sites.values()):
        raise typer.Exit(INCOMPLETE)
