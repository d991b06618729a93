"""What a user passes for each matrix of each regime, and the moments of rows and of covariances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.algebra import fixed_rank_pinv
from jigsaw_crl.base.arrays import AnyArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import check_features, check_names, rank_of
from jigsaw_crl.client.reduction import WIDE_TABLE, ColumnSketch, Reduction, reduce_columns
from jigsaw_crl.moments.accumulator import Accumulator, Coded
from jigsaw_crl.moments.checks import check_rows, check_second_moment, check_values
from jigsaw_crl.moments.preparing import RowOptions
from jigsaw_crl.moments.regime import MOST_PARTS, Moments

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


@dataclass(frozen=True)
class Given:
    """One matrix as a user passes it, its regime, and what the arguments in `_EACH` say of it."""

    regime: str
    values: Any
    beside: dict[str, Any] = field(default_factory=dict)


def given_matrices(
    client: str,
    observational: Any,
    interventions: Mapping[str, LabelData],
    control: str,
    **arguments: Any,
) -> list[Given]:
    """Every matrix of a client, the control's first; arguments that are None give None."""
    check_names(client, interventions, control)
    fail, matrices = partial(InputError, client=client), {control: [Given(control, observational)]}
    for label, value in interventions.items():
        try:
            several = isinstance(value, list | tuple) and bool(value) and np.ndim(value[0]) == 2
        except ValueError:  # rows of unequal length, which `check_rows` reports
            several = False
        each: Any = value if several else [value]
        matrices[label] = [Given(label, x) for x in each]
    for what, given in arguments.items():
        if what == "n_samples" and isinstance(given, int | np.integer):
            given = dict.fromkeys(matrices, given)
        if given is not None and not isinstance(given, Mapping):
            remedy = f"Pass a mapping from regime to {_EACH[what]}."
            raise fail(f"{what} is a {type(given).__name__}", remedy)
        for regime in given or ():
            if regime not in matrices:
                near = did_you_mean(regime, matrices) or f"The regimes are {few(matrices)}."
                wrong = f"{what} names the regime {regime!r}, which the client does not have"
                raise fail(wrong, near)
        for regime, own in matrices.items():
            if given is not None and regime not in given and what != "means":
                remedy = f"Give {_EACH[what]} for every regime, the control under {control!r}."
                raise fail(f"{what} has no entry for this regime", remedy, regime=regime)
            said: Any = None if given is None else given.get(regime)
            one = isinstance(said, str) or not isinstance(said, Iterable)
            one |= len(own) == 1 and what != "n_samples"  # a size is no list, what else may be one
            entries = [said] * len(own) if one else list(said)
            if len(entries) != len(own):
                wrong = f"{what} lists {pluralise(len(entries), 'entry', 'entries')} for "
                wrong += pluralise(len(own), "matrix", "matrices")
                raise fail(wrong, "Give one per matrix.", regime=regime)
            for matrix, entry in zip(own, entries, strict=True):
                matrix.beside[what] = entry
    return [matrix for own in matrices.values() for matrix in own]


def moments_of_matrices(
    client: str, given: Sequence[Given], *, inverse: bool = False, rank: int | None = None
) -> tuple[Moments, dict[str, list[Moments]]]:
    """The control's moments, and those by label, with these covariances about their own means.

    If `inverse`, the matrices are precisions: covariances are their pseudo-inverses of this rank,
    by default that of the control's. A regime without a mean has the control's, and a control
    without one has zeros.
    """
    found = dict[str, list[Moments]]()
    exact = all(one.beside["n_samples"] is None for one in given)
    for one in given:
        regime, own, n = one.regime, one.beside["means"], one.beside["n_samples"]
        if not exact and not isinstance(n, int | np.integer):
            remedy = (
                "Give every regime a whole number of rows, or n_samples=None for exact moments."
            )
            raise InputError(f"its sample size is {n!r}", remedy, client=client, regime=regime)
        c = check_second_moment(one.values, client=client, regime=regime)
        if inverse:
            # The control is the first.
            labels = len({x.regime for x in given}) - 1
            rank = max(rank_of(c), labels) if rank is None else rank
            rank_of(c, min(rank, len(c)), client=client, regime=regime)
            c = fixed_rank_pinv(c, min(rank, len(c)))
        own = given[0].beside["means"] if own is None else own
        try:
            mean = np.asarray(np.zeros(len(c)) if own is None else own, dtype=np.float64)
        except (TypeError, ValueError):
            mean = np.array([np.nan])
        found.setdefault(regime, []).append(Moments(None if n is None else int(n), mean, c))
    return found.pop(given[0].regime)[0], found


# -- rows -----------------------------------------------------------------------------------------


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
) -> tuple[Moments, dict[str, list[Moments]], Reduction | None]:
    """The control's moments, those by label, and the directions that replace the columns if many.

    The control is `given` first; `reduce` says whether columns are replaced, None for wide tables.
    """
    if reduce and options.missing == "em":
        wrong = 'missing="em" needs all columns, and reduce=True would replace them'
        remedy = 'Leave incomplete rows out (missing="drop"), or leave reduce out.'
        raise InputError(wrong, remedy, client=client)
    # The regime of each matrix, and rows and groups of each of its batches.
    matrices = [(one.regime, _batches(client, features, options, one)) for one in given]
    labels, reduction = len({regime for regime, _ in matrices}) - 1, None
    (control, own), found = matrices[0], dict[str, list[Moments]]()
    width = next(iter(own.values()))[0].shape[1]
    if reduce or (reduce is None and width >= WIDE_TABLE and options.missing != "em"):
        names = check_features(client, features, width)
        sketch = ColumnSketch(width, wanted=max(labels, n_latent or 0))
        cells = [(regime, x) for regime, batches in matrices for x, _ in batches.values()]
        for cell, (regime, x) in enumerate(cells):
            if x.shape[1] != width:
                wrong = f"it has {pluralise(x.shape[1], 'feature')} where the control has {width}"
                remedy = "Use the same columns in every regime."
                raise InputError(wrong, remedy, client=client, regime=regime)
            sketch.add(x, np.full(len(x), cell))
        reduction = reduce_columns(
            sketch, names, labels=labels, n_latent=n_latent, control=list(range(len(own)))
        )
    for regime, batches in matrices:
        moments = {}
        try:
            for name, (x, groups) in batches.items():
                x = x if reduction is None else reduction.project(x)
                rows = Accumulator(
                    x.shape[1], options, most=MOST_PARTS if regime == control else None
                )
                rows.add(x, groups)
                moments[name] = rows.moments(n_latent or labels)
        except InputError as error:
            raise error.located(client=client, regime=regime) from None
        whole = Moments.of_batches(moments) if options.batched else moments[""]
        found.setdefault(regime, []).append(whole)
    return found.pop(control)[0], found, reduction


def _batches(
    client: str, features: Sequence[str] | None, options: RowOptions, given: Given
) -> dict[str, tuple[AnyArray, Coded | None]]:
    """The rows of each batch of a matrix and their groups, without those that are dropped.

    The batch is "" if none are named.
    """
    try:
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
        batches, groups = (_coded(given.beside[what], len(x), what) for what in ("batch", "group"))
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
        if options.missing != "em":
            # All bad values are counted, in whatever batch they are.
            check_values(x)
    except InputError as error:
        raise error.located(client=client, regime=given.regime) from None
    if batches is None:
        return {"": (x, groups)}
    found = {}
    for code in np.unique(batches[1]).tolist():
        here = batches[1] == code
        found[batches[0][code]] = x[here], groups and (groups[0], groups[1][here])
    return found


def _coded(values: RowNames | None, n: int, what: str) -> Coded | None:
    """The names of batches or groups, and the code of each of n rows."""
    if values is None:
        return None
    if isinstance(values, str | int | np.integer):
        return [str(values)], np.zeros(n, dtype=np.intp)
    remedy, listed = f"Give every row its {what}.", np.asarray(values).tolist()
    if not isinstance(listed, list) or len(listed) != n or any(isinstance(v, list) for v in listed):
        raise InputError(f"{what} has shape {np.shape(values)} for {pluralise(n, 'row')}", remedy)
    for row, value in enumerate(listed, start=1):
        if value is None or value != value or not str(value).strip():
            raise InputError(f"row {row} has no {what}", remedy)
    names, codes = np.unique(np.array([str(v) for v in listed]), return_inverse=True)
    return names.tolist(), codes
