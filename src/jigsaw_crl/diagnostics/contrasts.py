"""How far one regime is from another: in its covariance, and in its mean.

Both are compared with what samples of one law show, and both are strengths: 1 is the edge of
chance, and a strength grows as the square root of the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.client.nulls import ratio_edges
from jigsaw_crl.moments.regime import Moments, inverse_square_root

__all__ = [
    "HEAVY",
    "Contrast",
    "beyond",
    "contrast",
    "edges",
    "gaussian_kurtosis",
    "kurtosis",
    "tail_factor",
]


# Beyond a kurtosis of 9 the error of a variance is twice what Gaussian rows give, (9−1)/2 = 2²,
# and probabilities computed for Gaussian rows are no longer to be trusted. Laplace rows have 6.
HEAVY = 9.0
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Contrast:
    """Eigenvalues of one regime against another, and the interval that holds them by chance."""

    values: Sequence[float]
    low: float
    high: float

    @property
    def seen(self) -> bool:
        """Does any direction differ?"""
        return bool(self.values[-1] > self.high or self.values[0] < self.low)

    @property
    def strength(self) -> float:
        """Size of the strongest direction on a log scale; 1 is the edge of chance."""
        return float(beyond(np.array(self.values), self.low, self.high))

    @property
    def third(self) -> float:
        """The same for the strongest direction beside one increase and one decrease."""
        return float(beyond(np.array(self.values[1:-1]), self.low, self.high))


def beyond(values: FloatArray, low: float | FloatArray, high: float | FloatArray) -> FloatArray:
    """How far ascending eigenvalues leave an interval, the edge being 1; 0 if there are none.

    Shape (..., k) for the values, and (...,) for the result.
    """
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    lowest, highest = np.maximum(values[..., 0], TINY), np.maximum(values[..., -1], TINY)
    return np.asarray(np.maximum(np.log(highest) / np.log(high), np.log(lowest) / np.log(low)))


def kurtosis(moments: Moments) -> FloatArray | None:
    """Kurtosis of each feature (3 for Gaussian rows), 0 for constant ones; None if unknown."""
    if moments.fourth is None:
        return None
    variance = np.diagonal(moments.covariance)
    zero = np.zeros_like(variance)
    return np.asarray(np.divide(moments.fourth, variance**2, out=zero, where=variance > 0))


def tail_factor(moments: Moments, *, worst: bool = False) -> float:
    """The factor by which heavy tails increase the variance of a variance: `(κ − 1)/2`, at least 1.

    κ is the mean kurtosis of the features, or the largest if `worst`. Divided by this factor, n is
    the number of Gaussian rows with the same error; what `n` contains already is left out.
    """
    own = kurtosis(moments)
    if own is None or not own.any():
        return 1.0
    value = float(own.max()) if worst else float(own[own > 0].mean())
    counted = moments.counted
    if counted is None:
        return max(1.0, (value - 1) / 2)
    factor = (value - 1) / 2
    if worst and counted.mean == 1:
        # Tails of a latent are heavier than those of directions on average: see `client/counting`.
        factor = max(factor, 1 + (counted.covariance - 1) * (len(own) + 2) / 3)
    return max(1.0, factor / counted.covariance)


def gaussian_kurtosis(n: int, level: float) -> float:
    """Upper quantile of the sample kurtosis of n Gaussian rows (Anscombe and Glynn 1983).

    The sample kurtosis is skewed: its cube root, suitably scaled, is close to normal from 20 rows
    on. Infinite for fewer.
    """
    if n < 20:
        return float("inf")
    mean = 3 * (n - 1) / (n + 1)
    variance = 24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
    skew = (
        6
        * (n * n - 5 * n + 2)
        / ((n + 7) * (n + 9))
        * np.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    )
    a = 6 + 8 / skew * (2 / skew + np.sqrt(1 + 4 / skew**2))
    c = 2 / (9 * a)
    root = 1 - c - np.sqrt(c) * float(ndtri(1 - level))
    if root <= 0:
        return float("inf")
    x = ((1 - 2 / a) / root**3 - 1) / np.sqrt(2 / (a - 4))
    return float(mean + np.sqrt(variance) * x)


def edges(
    p: int, base: Moments, other: Moments, level: float, *, rows: float | None = None
) -> tuple[float, float]:
    """Interval of the eigenvalues of `other` against `base`, each about its own mean.

    Parameters
    ----------
    p : int
        Dimension.
    base, other : Moments
        Of estimates; their rows and tails count.
    level : float
        Chance that the largest (or the smallest) eigenvalue lies outside.
    rows : float, optional
        Most rows that `base` counts for.
    """
    assert base.n is not None
    assert other.n is not None
    n_base = base.n if rows is None else min(base.n, rows)
    m, n = (n_base - 1) / tail_factor(base), (other.n - 1) / tail_factor(other)
    return ratio_edges(p, m, n, level)


def contrast(base: FloatArray, other: FloatArray, interval: tuple[float, float]) -> Contrast:
    """Eigenvalues of `base^(−½) other base^(−½)`, and the interval that holds them by chance."""
    root = inverse_square_root(base)
    return Contrast(np.linalg.eigvalsh(root @ other @ root).tolist(), *interval)
