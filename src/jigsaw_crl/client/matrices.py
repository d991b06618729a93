"""Moments of one regime from a covariance or a precision matrix that a user passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.checks import (
    LabelData,
    SampleSizes,
    check_rank,
    matrices_of,
    numerical_rank,
    sizes_of,
)
from jigsaw_crl.moments.checks import check_second_moment
from jigsaw_crl.moments.regime import Moments, fixed_rank_pinv

__all__ = [
    "MeansGiven",
    "moments_of_covariance",
    "moments_of_precision",
    "rank_of_precision",
    "sizes_and_means",
]

# Mean of each regime, or a list of means for a label with several matrices.
MeansGiven = Mapping[str, npt.ArrayLike | Sequence[npt.ArrayLike]]
# Sample size and mean of one matrix; None where they are not given.
_Beside = tuple[int | None, FloatArray | None]


def sizes_and_means(
    name: str,
    n_samples: SampleSizes,
    means: MeansGiven | None,
    interventions: Mapping[str, LabelData],
    control_name: str,
) -> dict[str, list[_Beside]]:
    """Sample size and mean of each matrix of each regime.

    A regime that `means` does not name has the control's mean, and the control has zeros.
    """
    sizes = sizes_of(name, n_samples, interventions, control_name)
    if means is None:
        return {regime: [(n, None) for n in own] for regime, own in sizes.items()}
    if not isinstance(means, Mapping):
        raise InputError(
            f"means is a {type(means).__name__}",
            "Pass a mapping from regime to the mean of its rows.",
            client=name,
        )
    for regime in means:
        if regime not in sizes:
            raise InputError(
                f"means names the regime {regime!r}, which the client does not have",
                did_you_mean(str(regime), list(sizes)) or f"The regimes are {few(list(sizes))}.",
                client=name,
            )
    found: dict[str, list[_Beside]] = {}
    base = _mean(means[control_name], name, control_name) if control_name in means else None
    for regime, own in sizes.items():
        fail = partial(InputError, client=name, regime=regime)
        given: list[Any] = [base] * len(own)
        if regime in means:
            value = means[regime]
            several = regime != control_name and len(matrices_of(interventions[regime])) > 1
            given = list(value) if several else [value]  # type: ignore[arg-type]
        if len(given) != len(own):
            raise fail(
                f"means lists {pluralise(len(given), 'mean')} for "
                f"{pluralise(len(own), 'matrix', 'matrices')}",
                "Give one mean per matrix.",
            )
        each = [None if m is None else _mean(m, name, regime) for m in given]
        found[regime] = list(zip(own, each, strict=True))
    return found


def _mean(value: Any, client: str, regime: str) -> FloatArray:
    try:
        mean = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        mean = np.array(np.nan)
    if mean.ndim != 1 or not np.isfinite(mean).all():
        raise InputError(
            "its mean is not a row of finite numbers",
            "Give one number per feature.",
            client=client,
            regime=regime,
        )
    return mean


def moments_of_covariance(
    client: str, matrix: npt.ArrayLike, regime: str, beside: _Beside
) -> Moments:
    """Moments with this covariance, about the regime's own mean."""
    c = check_second_moment(matrix, client=client, regime=regime)
    return _moments(c, client, regime, beside)


def moments_of_precision(
    client: str, rank: int, matrix: npt.ArrayLike, regime: str, beside: _Beside
) -> Moments:
    """Moments whose covariance is the pseudo-inverse of a matrix of this rank."""
    theta = check_second_moment(matrix, client=client, regime=regime)
    d = len(theta)
    check_rank(theta, min(rank, d), client=client, regime=regime)
    return _moments(fixed_rank_pinv(theta, min(rank, d)), client, regime, beside)


def _moments(covariance: FloatArray, client: str, regime: str, beside: _Beside) -> Moments:
    n, mean = beside
    if mean is not None and len(mean) != len(covariance):
        raise InputError(
            f"its mean has {pluralise(len(mean), 'entry', 'entries')} for "
            f"{pluralise(len(covariance), 'feature')}",
            "Give one number per feature.",
            client=client,
            regime=regime,
        )
    return Moments(n, np.zeros(len(covariance)) if mean is None else mean, covariance)


def rank_of_precision(client: str, control: str, matrix: npt.ArrayLike, labels: int) -> int:
    """The rank of the control's precision matrix, at least the number of labels."""
    return max(numerical_rank(check_second_moment(matrix, client=client, regime=control)), labels)
