"""Commands of a federation: `jigsaw federate …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsaw_crl.cli.options import JsonOption

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    federate = typer.Typer(
        help="Sites keep their data; a coordinator gets their fragments.",
        no_args_is_help=True,
        rich_markup_mode=None,
        epilog="Example: jigsaw federate keygen lab-1",
    )
    federate.command(epilog="Example: jigsaw federate keygen lab-1 -o lab-1.key")(keygen)
    app.add_typer(federate, name="federate")


def keygen(
    site: Annotated[str, typer.Argument(help="The site's name, which is its client's.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Private key to write (SITE.key).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a site's key pair to sign fragments with.

    The private key stays at the site. The line that is printed goes to the coordinator, who adds it
    to the list of keys below [sites].
    """
    from jigsaw_crl.cli.output import note, print_json
    from jigsaw_crl.signing import generate_key

    private = Path(f"{site}.key") if output is None else output
    line = generate_key(site, private)
    if as_json:
        print_json({"site": site, "private": str(private), "line": line})
        return
    typer.echo(line)
    note(f"the private key is in {private}: it stays here; send the line above to the coordinator")
