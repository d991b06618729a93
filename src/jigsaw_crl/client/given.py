"""What a user passes for each matrix of each regime, and the moments of rows and of covariances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import AnyArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import check_features, check_rank
from jigsaw_crl.client.reduction import WIDE, ColumnSketch, Reduction, reduce_columns
from jigsaw_crl.moments.accumulator import Accumulator, Coded
from jigsaw_crl.moments.checks import check_rows, check_second_moment, check_values
from jigsaw_crl.moments.preparing import RowOptions
from jigsaw_crl.moments.regime import Moments, fixed_rank_pinv

# What a user passes for one label: a matrix, or one matrix per strength.
LabelData = npt.ArrayLike | Sequence[npt.ArrayLike]
# Beside it, by regime; a label with several matrices has lists of these.
SampleSizes = int | Mapping[str, int | Sequence[int]] | None
MeansGiven = Mapping[str, npt.ArrayLike | Sequence[npt.ArrayLike]]
# Batches or groups of the rows of one regime: one for each row, or one for all.
RowNames = Any
# What the arguments give.
_EACH = {
    "n_samples": "its number of rows",
    "means": "the mean of its rows",
    "batch": "the batch of each of its rows",
    "group": "the group of each of its rows",
}


class Given(NamedTuple):
    """One matrix as a user passes it, its regime, and what the arguments in `_EACH` say of it."""

    regime: str
    values: Any
    beside: dict[str, Any]


def given_matrices(
    client: str,
    observational: Any,
    interventions: Mapping[str, LabelData],
    control: str,
    **arguments: Any,
) -> list[Given]:
    """Every matrix of a client, the control's first; arguments that are None give None."""
    matrices = {control: [observational]}
    for label, value in interventions.items():
        try:
            several = isinstance(value, list | tuple) and bool(value) and np.ndim(value[0]) == 2
        except ValueError:  # rows of unequal length, which `check_rows` reports
            several = False
        matrices[label] = list(value) if several else [value]  # type: ignore[arg-type]
    counts = {regime: len(own) for regime, own in matrices.items()}
    beside = {
        what: _by_matrix(what, value, counts, client, control) for what, value in arguments.items()
    }
    return [
        Given(regime, x, {what: found[regime][i] for what, found in beside.items()})
        for regime, own in matrices.items()
        for i, x in enumerate(own)
    ]


def _by_matrix(
    what: str, given: Any, counts: Mapping[str, int], client: str, control: str
) -> dict[str, list[Any]]:
    """What an argument gives for each matrix of each regime."""
    fail, each, sizes = partial(InputError, client=client), _EACH[what], what == "n_samples"
    if given is None or (sizes and isinstance(given, int | np.integer)):
        return {regime: [given] * count for regime, count in counts.items()}
    if not isinstance(given, Mapping):
        raise fail(f"{what} is a {type(given).__name__}", f"Pass a mapping from regime to {each}.")
    for regime in given:
        if regime not in counts:
            near = did_you_mean(regime, counts) or f"The regimes are {few(counts)}."
            raise fail(f"{what} names the regime {regime!r}, which the client does not have", near)
    found: dict[str, list[Any]] = {}
    for regime, count in counts.items():
        if regime not in given and what != "means":
            raise fail(
                f"{what} has no entry for this regime",
                f"Give {each} for every regime, the control under {control!r}.",
                regime=regime,
            )
        own: Any = given.get(regime)
        if sizes:
            one = not isinstance(own, list | tuple)
        else:
            one = count == 1 or isinstance(own, str) or not isinstance(own, Iterable)
        found[regime] = [own] * count if one else list(own)
        if len(found[regime]) != count:
            raise fail(
                f"{what} lists {pluralise(len(found[regime]), 'entry', 'entries')} for "
                f"{pluralise(count, 'matrix', 'matrices')}",
                "Give one per matrix.",
                regime=regime,
            )
        bad = [n for n in found[regime] if sizes and not isinstance(n, int | np.integer)]
        if bad:
            raise fail(
                f"its sample size is {bad[0]!r}",
                "Give every regime a whole number of rows, or pass n_samples=None for exact "
                "moments.",
                regime=regime,
            )
    return found


def moments_of_matrices(
    client: str, given: Sequence[Given], rank: int | None = None
) -> list[tuple[str, Moments]]:
    """Regimes and moments with these covariances, each about its regime's own mean.

    With a rank, the matrices are precisions: covariances are their pseudo-inverses. A regime
    without a mean has the control's, and a control without one has zeros.
    """
    found = []
    for regime, matrix, beside in given:
        c = check_second_moment(matrix, client=client, regime=regime)
        if rank is not None:
            check_rank(c, min(rank, len(c)), client=client, regime=regime)
            c = fixed_rank_pinv(c, min(rank, len(c)))
        own, n = beside["means"], beside["n_samples"]
        own = given[0].beside["means"] if own is None else own
        try:
            mean = np.asarray(np.zeros(len(c)) if own is None else own, dtype=np.float64)
        except (TypeError, ValueError):
            mean = np.array(np.nan)
        wrong = ""
        if mean.ndim != 1 or not np.isfinite(mean).all():
            wrong = "its mean is not a row of finite numbers"
        elif len(mean) != len(c):
            entries = pluralise(len(mean), "entry", "entries")
            wrong = f"its mean has {entries} for {pluralise(len(c), 'feature')}"
        if wrong:
            raise InputError(wrong, "Give one number per feature.", client=client, regime=regime)
        found.append((regime, Moments(None if n is None else int(n), mean, c)))
    return found


# -- rows -----------------------------------------------------------------------------------------


class _Rows(NamedTuple):
    """Complete rows of one matrix, the batch and the group of each, and their regime."""

    x: AnyArray
    batches: Coded | None
    groups: Coded | None
    regime: str


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
) -> tuple[list[tuple[str, Moments]], Reduction | None]:
    """Regime and moments of each matrix, and the directions that replace the columns if many.

    The control is `given` first; `reduce` says whether columns are replaced, None for wide tables.
    """
    labels = len({one.regime for one in given}) - 1
    matrices = []
    for one in given:
        try:
            matrices.append(_read(client, features, options, one))
        except InputError as error:
            raise error.located(client=client, regime=one.regime) from None
    reduction, columns = None, matrices[0].x.shape[1]
    if reduce and options.missing == "em":
        raise InputError(
            'missing="em" needs all columns, and reduce=True would replace them',
            'Leave incomplete rows out (missing="drop"), or leave reduce out.',
            client=client,
        )
    if reduce or (reduce is None and columns >= WIDE and options.missing != "em"):
        names = check_features(client, features, columns)
        reduction = _reduced(client, names, matrices, labels, n_latent)
        matrices = [one._replace(x=reduction.project(one.x)) for one in matrices]
    found = []
    for rows in matrices:
        control = rows.regime == given[0].regime
        try:
            own = _moments(rows, options, n_latent or labels, control=control)
            found.append((rows.regime, own))
        except InputError as error:
            raise error.located(client=client, regime=rows.regime) from None
    return found, reduction


def _read(client: str, features: Sequence[str] | None, options: RowOptions, given: Given) -> _Rows:
    """The rows of one matrix, without those that are dropped, and their batches and groups."""
    rows = given.values
    types = [rows.dtype] if hasattr(rows, "dtype") else getattr(rows, "dtypes", ())
    if any(getattr(kind, "kind", "") == "c" for kind in types):
        raise InputError(
            "its values are complex numbers",
            "Pass the real and the imaginary part as two features.",
        )
    columns = column_names(rows)
    if columns is not None and features is not None and columns != tuple(features):
        if sorted(columns) != sorted(features):
            odd = sorted(set(columns) ^ set(features))
            raise InputError(
                f"its columns are not those of the control: {', '.join(odd)[:100]}",
                "Use the same columns in every regime.",
            )
        rows = np.asarray(rows)[:, [columns.index(f) for f in features]]
    x = check_rows(rows, client=client, regime=given.regime)
    batches = _coded(given.beside["batch"], len(x), "batch", "batches")
    groups = _coded(given.beside["group"], len(x), "group", "groups")
    if options.missing == "drop" and x.dtype.kind == "f":
        whole = ~np.isnan(x).any(axis=1)
        if not whole.any():
            raise InputError(
                f"none of its {pluralise(len(x), 'row')} is complete",
                'Use the values that are there with missing="em", or leave features out.',
            )
        if not whole.all():
            x = x[whole]
            batches, groups = (c and (c[0], c[1][whole]) for c in (batches, groups))
    return _Rows(x, batches, groups, given.regime)


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
            raise fail(error.what, error.remedy) from None
        cell += len(names)
        control = control or cell
    own = list(range(control))
    return reduce_columns(sketch, columns, labels=labels, n_latent=n_latent, control=own)


def _moments(rows: _Rows, options: RowOptions, rank: int, *, control: bool) -> Moments:
    """Moments of the rows of one matrix, within batches."""
    if not options.holds:
        # All bad values are counted, in whatever block they are.
        check_values(rows.x)
    names, codes = rows.batches or ([""], np.zeros(len(rows.x), dtype=np.intp))
    found = {}
    for i in np.unique(codes).tolist():
        here = slice(None) if rows.batches is None else codes == i
        own = Accumulator(rows.x.shape[1], options, control=control)
        own.add(rows.x[here], rows.groups and (rows.groups[0], rows.groups[1][here]))
        found[names[i]] = own.moments(rank)
    return found[""] if rows.batches is None else Moments.of_batches(found)
