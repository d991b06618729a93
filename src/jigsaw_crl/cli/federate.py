"""The commands `jigsaw federate …`.

Each command imports what it runs, so that help and completion start fast.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.terminal import note, print_json, working
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.commands import Commands
from jigsaw_crl.cli.output import emit, print_table

if TYPE_CHECKING:
    from jigsaw_crl.federated.membership import Member
    from jigsaw_crl.federated.running import RoundEnd

__all__ = ["register"]

# Exit code of a round whose result lacks some sites.
INCOMPLETE = 3

MinSitesOption = Annotated[
    int, typer.Option(metavar="N", min=1, help="Fragments needed for a result.")
]
TimeoutOption = Annotated[
    int, typer.Option(metavar="SECONDS", min=1, help="Time that sites have to answer.")
]
DeadlineOption = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        min=1,
        help="Time for the whole round (default: --timeout and 2 minutes).",
    ),
]


def register(app: typer.Typer) -> None:
    federate = typer.Typer(
        cls=Commands,
        help="Sites keep their data; a coordinator gets their fragments.",
        no_args_is_help=True,
        rich_markup_mode=None,
        epilog="Example: jigsaw federate init federation/ --site lab-1 --site lab-2",
    )
    federate.command(epilog="Example: jigsaw federate keygen lab-1 -o lab-1.key")(keygen)
    federate.command(
        epilog="Example: jigsaw federate init federation/ --server hub.example.org "
        "--site lab-1 --site lab-2 --site lab-3"
    )(init)
    federate.command(epilog="Example: jigsaw federate start kits/lab-1")(start)
    federate.command(epilog="Example: jigsaw federate status federation/")(status)
    federate.command("add-site", epilog="Example: jigsaw federate add-site federation/ lab-4")(
        add_site
    )
    federate.command(epilog="Example: jigsaw federate renew federation/ lab-1")(renew)
    federate.command(epilog="Example: jigsaw federate revoke federation/ lab-2")(revoke)
    federate.command(
        epilog="Example: jigsaw federate submit kits/coordinator@jigsaw.local --round first"
    )(submit)
    federate.command(epilog="Example: jigsaw federate simulate lab-*.fragment.json --out result/")(
        simulate
    )
    app.add_typer(federate, name="federate")


def keygen(
    site: Annotated[
        str, typer.Argument(metavar="SITE", help="The site's name, which is also its client's.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Private key (default: SITE.key)."),
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Make a site's key pair for signing fragments.

    The private key stays at the site. Send the printed line to the coordinator, who adds it to the
    list of keys below [sites].
    """
    from jigsaw_crl.federated.keys import generate_key

    private = Path(f"{site}.key") if output is None else output
    line = generate_key(site, private)
    emit(as_json, {"site": site, "private": str(private), "line": line}, line)
    note(f"the private key is in {private}: keep it here; send its line to the coordinator")


def init(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="New folder for certificates and kits.")
    ],
    site: Annotated[
        list[str], typer.Option(metavar="NAME", help="A site's name; repeat for each site.")
    ],
    server: Annotated[
        str, typer.Option(metavar="HOST", help="Host name under which sites reach the coordinator.")
    ] = "localhost",
    port: Annotated[
        int, typer.Option(metavar="PORT", min=1, max=65535, help="Port of the coordinator.")
    ] = 8002,
    admin: Annotated[
        str, typer.Option(metavar="ADDRESS", help="E-mail address of the person who starts rounds.")
    ] = "coordinator@jigsaw.local",
    as_json: opt.Json = False,
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
    emit(as_json, document, lambda: print_table("Kits", ["for", "folder"], rows))


def start(
    kit: Annotated[
        Path, typer.Argument(metavar="KIT", help="Kit of the coordinator or of a site.")
    ],
) -> None:
    """Run the coordinator or a site from its kit.

    It runs until it is interrupted. A kit that allows more than a new one does is refused.
    """
    from jigsaw_crl.federated.running import run_participant

    code = run_participant(kit, note)
    if code:
        raise InputError(f"it ended with code {code}", "See log.txt in the kit.", path=kit)


FederationArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder of the federation, from init.")
]


def add_site(
    folder: FederationArgument,
    site: Annotated[str, typer.Argument(metavar="SITE", help="The new site's name.")],
    as_json: opt.Json = False,
) -> None:
    """Make the kit of a new site, and list it at the coordinator.

    The coordinator asks the site from the next round on; it need not be started again.
    """
    from jigsaw_crl.federated.membership import add_site as add

    with working("making a certificate"):
        kit = add(folder, site)
    emit(as_json, {"site": site, "kit": str(kit)}, f"the kit is in {kit}: hand it to the site")


def renew(
    folder: FederationArgument,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A site, the coordinator or the admin.")
    ],
    as_json: opt.Json = False,
) -> None:
    """Give a participant a new key and certificate.

    Replace the folder startup of its kit by the new one, then start it again.
    """
    from jigsaw_crl.federated.membership import renew as make_new

    with working("making a certificate"):
        startup = make_new(folder, name)
    text = f"replace the folder startup of its kit by {startup}, then start it again"
    emit(as_json, {"name": name, "startup": str(startup)}, text)


def revoke(
    folder: FederationArgument,
    site: Annotated[str, typer.Argument(metavar="SITE", help="The site's name.")],
    as_json: opt.Json = False,
) -> None:
    """Take a site out of the federation for good.

    The coordinator does not ask it any more and refuses its connections.
    """
    from jigsaw_crl.federated.membership import revoke as take_off

    take_off(folder, site)
    emit(as_json, {"site": site, "revoked": True}, f"{site} takes no part any more")


def status(
    folder: FederationArgument,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="Time to reach the coordinator.")
    ] = 5.0,
    as_json: opt.Json = False,
) -> None:
    """Which sites are connected, and when do certificates expire?"""
    from jigsaw_crl.federated.membership import WARNING_DAYS, members
    from jigsaw_crl.federated.running import connected_sites

    found = members(folder)
    admin = next(one.name for one in found if one.kind == "admin")
    connected: set[str] | None = None
    try:
        with working("asking the coordinator"):
            connected = connected_sites(folder / "kits" / admin, patience=patience)
    except InputError as error:
        note(f"connections are unknown: {error.what}")

    def is_connected(one: Member) -> bool | None:
        return None if connected is None or one.kind != "site" else one.name in connected

    if as_json:
        print_json({"members": [{**asdict(m), "connected": is_connected(m)} for m in found]})
        return
    words = {True: "yes", False: "no", None: ""}
    rows = [(m.name, m.kind, m.state, words[is_connected(m)], _days(m)) for m in found]
    print_table("Federation", ["name", "kind", "state", "connected", "days left"], rows)
    for one in found:
        if one.days is not None and one.days < WARNING_DAYS and one.state != "revoked":
            note(f"warning: the certificate of {one.name} expires in {one.days} days")


def _days(member: Member) -> str:
    return "kit not here" if member.days is None else str(member.days)


def submit(
    kit: Annotated[Path, typer.Argument(metavar="KIT", help="Kit of the admin.")],
    round_name: Annotated[
        str,
        typer.Option("--round", metavar="NAME", help="Name of the round and of its result folder."),
    ],
    min_sites: MinSitesOption = 1,
    timeout: TimeoutOption = 300,
    deadline: DeadlineOption = None,
    patience: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="Time to reach the coordinator.")
    ] = 15.0,
    max_age: Annotated[
        float | None, typer.Option(metavar="HOURS", min=0, help="Refuse older fragments.")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Run a round again that has a result, and replace it.")
    ] = False,
    method: opt.Method = "null-cone",
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> None:
    """Ask every site for its fragment, and assemble them.

    Sites are asked once; the coordinator assembles the fragments that arrive. The result is in
    results/NAME of the coordinator's kit. The state of each site is printed, and is in round.json
    there. Exit code 0: the result rests on every site; 3: on some of them; 2: there is no result.
    """
    from jigsaw_crl.federated.job import RoundOptions
    from jigsaw_crl.federated.running import submit_round

    options = RoundOptions(
        round_name=round_name,
        min_sites=min_sites,
        timeout=timeout,
        max_age=None if max_age is None else max_age * 3600,
        method=method,
        seed=seed,
        again=again,
    )
    with working("waiting for the sites"):
        end = submit_round(kit, options, deadline=deadline or timeout + 120, patience=patience)
    _show_end(end, round_name, as_json)


def _show_end(end: RoundEnd, round_name: str, as_json: bool) -> None:
    """Print how a round ended; the exit code tells complete, incomplete and failed apart."""
    record = end.record
    if as_json:
        state = None if record is None else record.to_document()
        seconds = round(end.seconds, 1)
        print_json({"round": round_name, "job": end.job, "seconds": seconds, "state": state})
    elif record is not None:
        rows = [(site, s.state, s.why) for site, s in record.sites.items()]
        print_table(f"Round {round_name}", ["site", "state", "why"], rows)
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


def simulate(
    fragments: Annotated[
        list[Path], typer.Argument(metavar="FRAGMENT", help="Fragment files, one per site.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Result folder.")],
    min_sites: MinSitesOption = 1,
    timeout: TimeoutOption = 120,
    deadline: DeadlineOption = None,
    method: opt.Method = "null-cone",
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
) -> None:
    """Run a round in NVFlare's simulator, on this machine."""
    from jigsaw_crl.federated.job import RoundOptions
    from jigsaw_crl.federated.simulator import simulate_round

    options = RoundOptions("simulation", min_sites, timeout, None, method, seed)
    with working("simulating"):
        result = simulate_round(fragments, out, options, deadline=deadline or timeout + 120)
    pairs = sorted([list(pair) for pair in result.order.pairs()])
    sites, found = pluralise(len(result.fragments), "site"), pluralise(len(pairs), "ancestor pair")
    document = {"out": str(out), "sites": list(result.fragments), "pairs": pairs}
    emit(as_json, document, f"{sites}; {found}\nwritten to {out}")
