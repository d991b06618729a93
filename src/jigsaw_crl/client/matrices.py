"""Moments of one regime from a covariance or a precision matrix that a user passes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.client.checks import check_rank, numerical_rank
from jigsaw_crl.moments.checks import check_second_moment
from jigsaw_crl.moments.regime import Moments, fixed_rank_pinv

__all__ = ["moments_of_covariance", "moments_of_precision", "rank_of_precision"]


def moments_of_covariance(
    client: str, matrix: npt.ArrayLike, regime: str, n: int | None
) -> Moments:
    """Moments with this covariance about the control's mean."""
    c = check_second_moment(matrix, client=client, regime=regime)
    return Moments(n, np.zeros(len(c)), c)


def moments_of_precision(
    client: str, rank: int, matrix: npt.ArrayLike, regime: str, n: int | None
) -> Moments:
    """Moments whose covariance is the pseudo-inverse of a matrix of this rank."""
    theta = check_second_moment(matrix, client=client, regime=regime)
    d = len(theta)
    check_rank(theta, min(rank, d), client=client, regime=regime)
    return Moments(n, np.zeros(d), fixed_rank_pinv(theta, min(rank, d)))


def rank_of_precision(client: str, control: str, matrix: npt.ArrayLike, labels: int) -> int:
    """The rank of the control's precision matrix, at least the number of labels."""
    return max(numerical_rank(check_second_moment(matrix, client=client, regime=control)), labels)
