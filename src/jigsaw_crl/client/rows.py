"""Moments of the rows of every regime in memory, with what a user says about them.

Each row may belong to a batch and to a group; rows may be trimmed, may have missing values, and may
be taken along the directions that replace the columns of a wide table.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.base.threads import allowed_threads, one_thread
from jigsaw_crl.client.checks import check_features
from jigsaw_crl.client.given import Given, RowNames
from jigsaw_crl.client.reduction import WIDE, Reduction, reduce_columns
from jigsaw_crl.client.sketch import ColumnSketch
from jigsaw_crl.moments.accumulator import Accumulator, Coded
from jigsaw_crl.moments.checks import check_rows, check_values
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.moments.row_options import RowOptions

__all__ = ["column_names", "moments_of_rows"]

# With at least this many values (some hundredths of a second) regimes are summed in parallel.
PARALLEL_VALUES = 10_000_000
# Complete rows of one matrix, the batch and the group of each, and where they come from.
_Rows = tuple[npt.NDArray[np.generic], Coded | None, Coded | None, str]


def column_names(rows: object) -> tuple[str, ...] | None:
    """Names of the columns of a data frame; None for anything else."""
    columns = getattr(rows, "columns", None)
    return None if columns is None or callable(columns) else tuple(str(c) for c in columns)


def moments_of_rows(
    client: str,
    given: Sequence[Given],
    features: Sequence[str] | None,
    options: RowOptions,
    n_latent: int | None,
    reduce: bool | None,
) -> tuple[list[Moments], Reduction | None]:
    """Moments of each matrix, and the directions that replace the columns of a wide table.

    Parameters
    ----------
    client : str
        Its name.
    given : sequence of Given
        The control comes first.
    features : sequence of str or None
        Names of the columns.
    options : RowOptions
    n_latent : int or None
    reduce : bool or None
        Replace the columns or not; None for wide tables only.
    """
    labels = len({one.regime for one in given}) - 1
    matrices = [_read(client, features, options, one) for one in given]
    reduction = None
    em, columns = options.missing == "em", matrices[0][0].shape[1]
    if reduce and em:
        raise InputError(
            'missing="em" needs all columns, and reduce=True would replace them',
            'Leave incomplete rows out (missing="drop"), or leave reduce out.',
            client=client,
        )
    if reduce or (reduce is None and columns >= WIDE and not em):
        names = check_features(client, features, columns)
        reduction = _reduced(client, names, matrices, labels, n_latent)
        matrices = [(reduction.project(x), *beside) for x, *beside in matrices]  # type: ignore[misc]
    compute = partial(_moments, client, options, n_latent or labels, given[0].regime)
    workers = 1
    if sum(x.size for x, *_ in matrices) >= PARALLEL_VALUES:
        workers = min(allowed_threads(), len(matrices))
    if workers == 1:
        return [compute(one) for one in matrices], reduction
    with one_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(compute, matrices)), reduction


def _read(client: str, features: Sequence[str] | None, options: RowOptions, given: Given) -> _Rows:
    """The rows of one matrix, without those that are dropped, and their batches and groups."""
    fail = partial(InputError, client=client, regime=given.regime)
    rows = given.values
    types = [rows.dtype] if hasattr(rows, "dtype") else getattr(rows, "dtypes", ())
    if any(getattr(kind, "kind", "") == "c" for kind in types):
        raise fail(
            "its values are complex numbers",
            "Pass the real and the imaginary part as two features.",
        )
    columns = column_names(rows)
    if columns is not None and features is not None and columns != tuple(features):
        if sorted(columns) != sorted(features):
            odd = sorted(set(columns) ^ set(features))
            raise fail(
                f"its columns are not those of the control: {', '.join(odd)[:100]}",
                "Use the same columns in every regime.",
            )
        rows = np.asarray(rows)[:, [columns.index(f) for f in features]]
    x = check_rows(rows, client=client, regime=given.regime)
    try:
        batches = _coded(given.beside["batch"], len(x), "batch", "batches")
        groups = _coded(given.beside["group"], len(x), "group", "groups")
    except InputError as error:
        raise error.located(client=client, regime=given.regime) from None
    if options.missing == "drop" and x.dtype.kind == "f":
        whole = ~np.isnan(x).any(axis=1)
        if not whole.any():
            raise fail(
                f"none of its {pluralise(len(x), 'row')} is complete",
                'Use the values that are there with missing="em", or leave features out.',
            )
        if not whole.all():
            x = x[whole]
            batches, groups = (c and (c[0], c[1][whole]) for c in (batches, groups))
    return x, batches, groups, given.regime


def _coded(values: RowNames | None, n: int, what: str, plural: str) -> Coded | None:
    """The names of batches or groups, and the code of each of n rows."""
    if values is None:
        return None
    if isinstance(values, str | int | np.integer):
        return [str(values)], np.zeros(n, dtype=np.intp)
    listed = np.asarray(values).tolist()
    if not isinstance(listed, list) or len(listed) != n or any(isinstance(v, list) for v in listed):
        raise InputError(
            f"{plural} of shape {np.shape(values)} for {pluralise(n, 'row')}",
            f"Give every row its {what}.",
        )
    for row, value in enumerate(listed, start=1):
        if value is None or value != value or not str(value).strip():
            raise InputError(f"row {row} has no {what}", f"Give every row its {what}.")
    names, codes = np.unique(np.array([str(v) for v in listed]), return_inverse=True)
    return names.tolist(), codes


def _reduced(
    client: str,
    columns: tuple[str, ...],
    matrices: Sequence[_Rows],
    labels: int,
    n_latent: int | None,
) -> Reduction:
    """The directions that replace the columns; each batch of each matrix is a cell."""
    wanted = max(labels, n_latent or 0)
    sketch = ColumnSketch(len(columns), wanted=wanted, grows=n_latent is None)
    cell, control = 0, 0
    for x, batches, _, regime in matrices:
        fail = partial(InputError, client=client, regime=regime)
        if x.shape[1] != len(columns):
            raise fail(
                f"it has {pluralise(x.shape[1], 'feature')} where the control has {len(columns)}",
                "Use the same columns in every regime.",
            )
        names, codes = batches or ([""], np.zeros(len(x), dtype=np.intp))
        try:
            sketch.add(x, cell + codes.astype(np.intp))
        except InputError as error:
            raise error.located(client=client, regime=regime) from None
        cell += len(names)
        control = control or cell
    own = list(range(control))
    return reduce_columns(sketch, columns, labels=labels, n_latent=n_latent, control=own)


def _moments(client: str, options: RowOptions, rank: int, control: str, rows: _Rows) -> Moments:
    """Moments of the rows of one matrix, within batches."""
    x, batches, groups, regime = rows

    def of(some: Any) -> Moments:
        found = Accumulator(x.shape[1], options, control=regime == control)
        found.add(x[some], groups and (groups[0], groups[1][some]))
        return found.moments(rank)

    try:
        if not options.holds:
            # All bad values are counted, in whatever block they are.
            check_values(x)
        if batches is None:
            return of(slice(None))
        found = {name: batches[1] == i for i, name in enumerate(batches[0])}
        return Moments.of_batches({name: of(here) for name, here in found.items() if here.any()})
    except InputError as error:
        raise error.located(client=client, regime=regime) from None
