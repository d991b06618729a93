"""Moments of one regime from a covariance or a precision matrix that a user passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.checks import (
    LabelData,
    SampleSizes,
    by_matrix,
    check_rank,
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
    given = by_matrix(
        {} if means is None else means, interventions, control_name, lambda _, count: count == 1,
        client=name, what="means", each="the mean of its rows", default=None,
    )  # fmt: skip
    base = given[control_name][0]
    found: dict[str, list[_Beside]] = {}
    for regime, own in sizes.items():
        each = [base if m is None else m for m in given[regime]]
        read = [None if m is None else _mean(m, name, regime) for m in each]
        found[regime] = list(zip(own, read, strict=True))
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
