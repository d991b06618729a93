"""What a user passes for each matrix of each regime, and moments of covariances and precisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import check_rank
from jigsaw_crl.moments.checks import check_second_moment
from jigsaw_crl.moments.regime import Moments, fixed_rank_pinv

__all__ = [
    "Given",
    "LabelData",
    "MeansGiven",
    "RowNames",
    "SampleSizes",
    "given_matrices",
    "moments_of_matrices",
]

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
    matrices |= {label: _matrices_of(value) for label, value in interventions.items()}
    counts = {regime: len(own) for regime, own in matrices.items()}
    beside = {
        what: _by_matrix(what, value, counts, client, control) for what, value in arguments.items()
    }
    return [
        Given(regime, x, {what: found[regime][i] for what, found in beside.items()})
        for regime, own in matrices.items()
        for i, x in enumerate(own)
    ]


def _matrices_of(value: Any) -> list[Any]:
    """The matrices of a label: those of a list of matrices, or the only one."""
    try:
        several = isinstance(value, list | tuple) and bool(value) and np.ndim(value[0]) == 2
    except ValueError:  # rows of unequal length, which `check_rows` reports
        several = False
    return list(value) if several else [value]


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
) -> list[Moments]:
    """Moments with these covariances, each about its regime's own mean.

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
        found.append(Moments(None if n is None else int(n), mean, c))
    return found
