"""The command `latents`: rows of a table to latents, where the rows are.

What it runs is imported inside it, for start-up time.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import numpy as np
import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import check_output, write_file
from jigsaw_crl.base.terminal import working
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import emit

if TYPE_CHECKING:
    from jigsaw_crl.fragment.fragment import Fragment
    from jigsaw_crl.study.source import Source

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    app.command(epilog="Example: jigsaw latents lab-1.private.json lab-1.csv -o latents.csv")(
        latents
    )


def latents(
    private: Annotated[
        Path,
        typer.Argument(metavar="PRIVATE", help="The site's own file, of fragment --private."),
    ],
    table: opt.Table,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="CSV file to write.")
    ],
    regime: opt.Regime = None,
    ignore: opt.Ignore = None,
    force: opt.Force = False,
    as_json: opt.Json = False,
) -> None:
    """Write the latents of each row of a table.

    The table has the regime column and the features that the fragment was recovered from. The
    latents are as private as the rows.
    """
    from jigsaw_crl.fragment.reading import load_private
    from jigsaw_crl.study.reading import open_rows
    from jigsaw_crl.study.source import is_sparse

    # A table of latents has nothing that shows who wrote it.
    check_output(output, lambda _: False, inputs=[private, table], force=force, what="ours")
    fragment = load_private(private)
    rows = 0
    with (
        working(f"reading {table}"),
        open_rows(table, regime=regime, ignore=ignore or ()) as source,
    ):
        columns = _columns(fragment, source, table)

        def write(file: BinaryIO) -> None:
            nonlocal rows
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            writer = csv.writer(text)
            writer.writerow(["regime", *fragment.labels])
            for chunk in source.chunks():
                x: Any = chunk.rows[:, columns]
                x = x.toarray() if is_sparse(x) else x
                z = fragment.transform(np.asarray(x, dtype=np.float64))
                names = ["" if code < 0 else chunk.regimes[code] for code in chunk.codes.tolist()]
                writer.writerows([name, *row] for name, row in zip(names, z.tolist(), strict=True))
                rows += len(names)
            text.flush()
            text.detach()

        write_file(output, write, private=True)
    client, labels = fragment.client, list(fragment.labels)
    size = f"{pluralise(len(labels), 'latent')} of {pluralise(rows, 'row')}"
    document = {"client": client, "output": str(output), "n": rows, "labels": labels}
    emit(as_json, document, f"{client}: {size} written to {output}")


def _columns(fragment: Fragment, source: Source, table: Path) -> list[int]:
    """Where the features of the fragment are among those of a table."""
    known = fragment.features or ()
    position = {name: i for i, name in enumerate(source.features)}
    missing = [name for name in known if name not in position]
    if missing or not known:
        raise InputError(
            f"columns are missing: {few(missing)}" if missing else "the features have no names",
            "Pass a table with the columns that the fragment was recovered from.",
            client=fragment.client,
            path=table,
        )
    return [position[name] for name in known]
