"""Assembly of fragments that are read one at a time, for very many labels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_file
from jigsaw_crl.base.terminal import print_json, say, working
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["assemble_in_passes", "check_size"]

HEADER = b"ancestor,descendant,verdict,probability\n"


def check_size(fragments: Iterable[Fragment]) -> None:
    """Refuse a result folder of more labels than orders are sampled of."""
    from jigsaw_crl.assembly.panel import MOST_SAMPLED

    labels = {label for fragment in fragments for label in fragment.labels}
    if len(labels) > MOST_SAMPLED:
        raise InputError(
            f"there are {len(labels):,} labels, and a result has {MOST_SAMPLED:,} at most",
            "Pass --pairs FILE, which writes the decided pairs alone.",
        )


def _is_table(seen: bytes) -> bool:
    return seen.startswith(HEADER)


def assemble_in_passes(
    paths: list[Path], output: Path, options: dict[str, Any], *, force: bool, as_json: bool
) -> None:
    """Assemble the fragments, and write the decided pairs."""
    from jigsaw_crl.assembly import assemble
    from jigsaw_crl.assembly.order import tally
    from jigsaw_crl.result.exports import decided_csv

    check_output(output, _is_table, inputs=paths, force=force, what="a table of decided pairs")
    with working(f"assembling {pluralise(len(paths), 'fragment')}"):
        order = assemble(paths, **options)
        write_file(output, lambda file: file.writelines(x.encode() for x in decided_csv(order)))
    if as_json:
        print_json(
            {
                "output": str(output),
                "labels": len(order),
                "counts": dict(order.counts),
                "client_weights": dict(order.client_weights),
                "notes": list(order.notes),
            }
        )
        return
    typer.echo(
        f"{pluralise(len(order), 'label')} of {pluralise(len(paths), 'client')}: "
        f"{tally(order.counts)}"
    )
    for text in order.notes:
        say(f"note: {text}")
    typer.echo(f"written to {output}")
