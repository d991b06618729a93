"""The command that compares two results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jigsaw_crl.base.terminal import print_json
from jigsaw_crl.base.text import chance, few, signed
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import print_table

__all__ = ["diff"]


def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Earlier result folder.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Later result folder.")],
    as_json: opt.Json = False,
) -> None:
    """What changed between two results, and because of which sites?

    Lists the verdicts and effects that changed, and the sites that joined, left or changed and have
    both labels.
    """
    # Imported here for start-up time.
    from jigsaw_crl.result import load_result
    from jigsaw_crl.result.difference import difference

    found = difference(load_result(old), load_result(new))
    if as_json:
        print_json(found.to_document())
        return
    typer.echo(f"{found.summary}.")
    for what, labels in (("new labels", found.new_labels), ("labels gone", found.lost_labels)):
        if labels:
            typer.echo(f"{what}: {few(labels)}")
    rows = [
        (
            v.ancestor,
            v.descendant,
            f"{v.before} ({chance(v.probability_before)})",
            f"{v.after} ({chance(v.probability_after)})",
            _reason(v.because),
        )
        for v in found.verdicts
    ]
    columns = ["before", "after", "because of"]
    if rows:
        print_table("Verdicts (probability)", ["ancestor", "descendant", *columns], rows)
    moved = [
        (e.cause, e.effect, _number(e.before), _number(e.after), _reason(e.because))
        for e in found.effects
    ]
    if moved:
        print_table("Total effects", ["cause", "effect", *columns], moved)


def _reason(sites: tuple[str, ...]) -> str:
    return few(sites) if sites else "other pairs"


def _number(value: float | None) -> str:
    return "none" if value is None else signed(value)
