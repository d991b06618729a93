"""The command `jigsaw verify`.

What it runs is imported inside it, for start-up time.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.terminal import working
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import emit, print_table

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    opt.command(
        app,
        verify,
        "jigsaw verify result/ --keys site-keys.toml --fragment lab-1.fragment.json",
    )


def verify(
    folder: Path,
    *,
    keys: Path | None = None,
    fragment: list[Path] | None = None,
    log: Path | None = None,
    recompute: bool = False,
    as_json: bool = False,
) -> None:
    """Check who signed a result, and what it rests on.

    The digest that is printed is the same for everybody who was shown the same result. Exit code 0
    means that no check failed; a check without what it needs is listed as not checked.
    """
    from jigsaw_crl.federated.keys import read_key_list
    from jigsaw_crl.federated.verifying import verify_result

    listed = None if keys is None else read_key_list(keys)
    with working("checking"):
        found = verify_result(
            folder, keys=listed, fragments=fragment or [], log=log, recompute=recompute
        )

    def told() -> None:
        rows = [(check.what, check.outcome, check.detail) for check in found.checks]
        print_table("Checks", ["what", "outcome", "detail"], rows)
        typer.echo(f"digest of the result: {found.digest}")

    checks = [asdict(check) for check in found.checks]
    emit(as_json, {"ok": found.ok, "digest": found.digest, "checks": checks}, told)
    if not found.ok:
        failed = ", ".join(check.what for check in found.checks if check.outcome == "failed")
        raise InputError(
            f"the result is not what it claims to be: {failed}",
            "Ask the coordinator for the original.",
            path=folder,
        )
