"""Rows in memory along the directions that hold the latents, if they are many columns wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.checks import check_features, in_order
from jigsaw_crl.client.reduction import WIDE, Reduction, reduce_columns
from jigsaw_crl.client.rows import coded_names
from jigsaw_crl.client.sketch import ColumnSketch
from jigsaw_crl.moments.checks import check_rows
from jigsaw_crl.moments.row_options import Missing

__all__ = ["reduce_given"]

# Rows of one regime, its name, and the batch and the group of each row.
Given = list[tuple[Any, str, Any]]


def reduce_given(
    client: str,
    features: Sequence[str] | None,
    n_latent: int | None,
    missing: Missing,
    asked: bool | None,
    given: Given,
) -> tuple[Given, Reduction | None]:
    """The rows of all regimes along the directions that replace their columns, and these.

    Parameters
    ----------
    client : str
        Its name.
    features : sequence of str or None
        Names of the columns.
    n_latent : int or None
    missing : {"refuse", "drop", "em"}
        Rows that miss values are left out of the sketch with "drop"; with "em" nothing is reduced.
    asked : bool or None
        Reduce the columns or not; None for wide tables only.
    given : list of tuple
        The rows of each matrix, its regime, and the batch and the group of each row. The
        control comes first.
    """
    shape = np.shape(given[0][0])
    wide = len(shape) == 2 and shape[1] >= WIDE and missing != "em"
    if not (wide if asked is None else asked):
        return given, None
    if missing == "em":
        raise InputError(
            'missing="em" needs all columns, and reduce=True would replace them',
            'Leave incomplete rows out (missing="drop"), or leave reduce out.',
            client=client,
        )
    labels = len({regime for _, regime, _ in given}) - 1
    sketch: ColumnSketch | None = None
    own: list[int] = []
    cell, rows = 0, []
    for values, regime, (batches, _) in given:
        x = in_order(values, features, client=client, regime=regime)
        x = check_rows(x, client=client, regime=regime)
        rows.append(x)
        if sketch is None:
            wanted = max(labels, n_latent or 0)
            sketch = ColumnSketch(x.shape[1], wanted=wanted, grows=n_latent is None)
        try:
            cell = _add(sketch, x, batches, cell, drop=missing == "drop")
        except InputError as error:
            raise error.located(client=client, regime=regime) from None
        own = own or list(range(cell))
    assert sketch is not None
    names = check_features(client, features, sketch.n_columns)
    found = reduce_columns(sketch, names, labels=labels, n_latent=n_latent, control=own)
    projected = ((found.project(x), *beside) for x, (_, *beside) in zip(rows, given, strict=True))
    return [(x, regime, beside) for x, regime, beside in projected], found


def _add(sketch: ColumnSketch, x: Any, batches: Any, cell: int, *, drop: bool) -> int:
    """Add the rows of one matrix, whose batches are the cells from `cell` on; the next cell."""
    if x.shape[1] != sketch.n_columns:
        raise InputError(
            f"it has {pluralise(x.shape[1], 'feature')} where the control has {sketch.n_columns}",
            "Use the same columns in every regime.",
        )
    coded = coded_names(batches, len(x), "batch", "batches")
    cells = np.full(len(x), cell) if coded is None else cell + coded[1]
    if drop and x.dtype.kind == "f":
        whole = ~np.isnan(x).any(axis=1)
        x, cells = (x, cells) if whole.all() else (x[whole], cells[whole])
    sketch.add(x, cells)
    return cell + (1 if coded is None else len(coded[0]))
