"""What a user passes for each matrix of each regime, and the moments of rows and of covariances."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.algebra import fixed_rank_pinv
from jigsaw_crl.base.arrays import AnyArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import check_features, check_moments, check_rank
from jigsaw_crl.client.reduction import WIDE, ColumnSketch, Reduction, reduce_columns
from jigsaw_crl.moments.accumulator import Accumulator, Coded
from jigsaw_crl.moments.checks import check_rows, check_second_moment, check_values
from jigsaw_crl.moments.preparing import RowOptions
from jigsaw_crl.moments.regime import Moments

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
            mean = np.array([np.nan])
        m = Moments(None if n is None else int(n), mean, c)
        found.append((regime, check_moments(m, client=client, regime=regime)))
    return found


# -- rows -----------------------------------------------------------------------------------------


class _Rows(NamedTuple):
    """Complete rows of one matrix, the batch and the group of each, and their regime."""

    regime: str
    x: AnyArray
    batches: Coded | None
    groups: Coded | None

    def moments(self, options: RowOptions, rank: int, *, control: bool) -> Moments:
        """Their moments, within batches."""
        if not options.holds:
            # All bad values are counted, in whatever block they are.
            check_values(self.x)
        names, codes = self.batches or _one_for_all("", len(self.x))
        found = {}
        for i in np.unique(codes).tolist():
            here = slice(None) if self.batches is None else codes == i
            own = Accumulator(self.x.shape[1], options, control=control)
            own.add(self.x[here], self.groups and (self.groups[0], self.groups[1][here]))
            found[names[i]] = own.moments(rank)
        return found[""] if self.batches is None else Moments.of_batches(found)


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
    if reduce and options.missing == "em":
        raise InputError(
            'missing="em" needs all columns, and reduce=True would replace them',
            'Leave incomplete rows out (missing="drop"), or leave reduce out.',
            client=client,
        )
    matrices, found = list[_Rows](), list[tuple[str, Moments]]()
    for one in given:
        with _located(client, one.regime):
            matrices.append(_read(features, options, one))
    labels, reduction = len({rows.regime for rows in matrices}) - 1, None
    width, control = matrices[0].x.shape[1], matrices[0].regime
    if reduce or (reduce is None and width >= WIDE and options.missing != "em"):
        names = check_features(client, features, width)
        sketch = ColumnSketch(width, wanted=max(labels, n_latent or 0))
        cells = list[list[int]]()
        for rows in matrices:
            with _located(client, rows.regime):
                cells.append(_sketched(sketch, rows, sum(map(len, cells))))
        reduction = reduce_columns(
            sketch, names, labels=labels, n_latent=n_latent, control=cells[0]
        )
        matrices = [rows._replace(x=reduction.project(rows.x)) for rows in matrices]
    for rows in matrices:
        with _located(client, rows.regime):
            own = rows.moments(options, n_latent or labels, control=rows.regime == control)
            found.append((rows.regime, own))
    return found, reduction


@contextmanager
def _located(client: str, regime: str) -> Iterator[None]:
    """Errors name this client and this regime."""
    try:
        yield
    except InputError as error:
        raise error.located(client=client, regime=regime) from None


def _sketched(sketch: ColumnSketch, rows: _Rows, first: int) -> list[int]:
    """Add rows to a sketch; each of their batches is a cell, numbered from `first` on."""
    if rows.x.shape[1] != sketch.n_columns:
        raise InputError(
            f"it has {pluralise(rows.x.shape[1], 'feature')} where the control has "
            f"{sketch.n_columns}",
            "Use the same columns in every regime.",
        )
    names, codes = rows.batches or _one_for_all("", len(rows.x))
    sketch.add(rows.x, first + codes.astype(np.intp))
    return list(range(first, first + len(names)))


def _read(features: Sequence[str] | None, options: RowOptions, given: Given) -> _Rows:
    """The rows of one matrix, without those that are dropped, and their batches and groups."""
    rows, columns = given.values, column_names(given.values)
    if columns is not None and features is not None and columns != tuple(features):
        if sorted(columns) != sorted(features):
            odd = sorted(set(columns) ^ set(features))
            raise InputError(
                f"its columns are not those of the control: {', '.join(odd)[:100]}",
                "Use the same columns in every regime.",
            )
        rows = np.asarray(rows)[:, [columns.index(f) for f in features]]
    x = check_rows(rows)
    beside = [_coded(given.beside[what], len(x), what) for what in ("batch", "group")]
    if options.missing == "drop" and x.dtype.kind == "f":
        whole = ~np.isnan(x).any(axis=1)
        if not whole.any():
            raise InputError(
                f"none of its {pluralise(len(x), 'row')} is complete",
                'Use the values that are there with missing="em", or leave features out.',
            )
        if not whole.all():
            x, beside = x[whole], [c and (c[0], c[1][whole]) for c in beside]
    return _Rows(given.regime, x, *beside)


def _one_for_all(name: str, n: int) -> Coded:
    """One batch or group for all of n rows."""
    return [name], np.zeros(n, dtype=np.intp)


def _coded(values: RowNames | None, n: int, what: str) -> Coded | None:
    """The names of batches or groups, and the code of each of n rows."""
    if values is None:
        return None
    if isinstance(values, str | int | np.integer):
        return _one_for_all(str(values), n)
    remedy, listed = f"Give every row its {what}.", np.asarray(values).tolist()
    if not isinstance(listed, list) or len(listed) != n or any(isinstance(v, list) for v in listed):
        raise InputError(f"{what} has shape {np.shape(values)} for {pluralise(n, 'row')}", remedy)
    for row, value in enumerate(listed, start=1):
        if value is None or value != value or not str(value).strip():
            raise InputError(f"row {row} has no {what}", remedy)
    names, codes = np.unique(np.array([str(v) for v in listed]), return_inverse=True)
    return names.tolist(), codes
