"""Null distributions of eigenvalues and of shifts of the mean, by which findings are judged.

The ratio of two sample covariances of the same p-dimensional law, `(A/m)⁻¹ (B/n)`, has eigenvalues
around 1. The logarithm of the largest is, to second order, Tracy–Widom with

    μ = 2 log tan((φ + γ)/2) + log(m/n) ,   σ³ = 16 / ((m+n−1)² sin²(φ+γ) sin φ sin γ) ,
    sin²(γ/2) = (p − ½)/(m+n−1) ,           sin²(φ/2) = (n − ½)/(m+n−1)

(Johnstone 2008); the smallest is the reciprocal of the largest with A and B exchanged. This holds
from p = 2 and a dozen rows up to thousands of features, so no threshold is tuned. It also holds for
n < p, because γ and φ then exchange their roles; the smallest eigenvalue is then zero.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import chdtri, fdtri, gammaincinv

from jigsaw_crl.base.arrays import FloatArray

# Chance of a false alarm of one kind at one client: a finding, a count of rows, a noise of its own
# for each sensor.
FALSE_ALARM = 1e-3
# The same where a client with many regimes is then read in another way, and errors have wider tails
# than those of the null: rows that count for their own, claims that are doubted, a linear system
# that is taken for a bent one, means that are not used.
RARE_ALARM = 1e-4
# The same where a false alarm costs little, and to miss something costs more.
LENIENT = 0.05
# The null knows the tails of the features, not those of the latents, which are heavier and push
# single eigenvalues out of their interval. A regime is left out only when it exceeds the edge of
# chance by half. The same holds for a single feature that differs from the control.
CLEARLY = 1.5
# Standard errors from which a shift of the mean, or the lean of a line, is clear.
CLEAR_ERRORS = 5.0
# Tracy–Widom of order 1 is a shifted gamma law to two digits down to tails of 1e-4 (Chiani 2014).
_SHAPE, _SCALE, _SHIFT = 46.446, 0.186054, 9.84801


@lru_cache
def tracy_widom_quantile(probability: float) -> float:
    """Quantile of the Tracy–Widom law of real matrices; 0.98 at 95 %, 3.25 at 99.9 %."""
    return float(_SCALE * gammaincinv(_SHAPE, probability) - _SHIFT)


@lru_cache
def ratio_edges(p: int, m: float, n: float, level: float) -> tuple[float, float]:
    """Interval that holds all eigenvalues of `(A/m)⁻¹(B/n)` with probability 1 − 2·level.

    In p dimensions, with m and n degrees of freedom. With m < p there is no inverse, and with n < p
    the smallest eigenvalue is zero: nothing is then outside on that side.
    """
    quantile = tracy_widom_quantile(1 - level)
    low = 1 / _largest(p, n, m, quantile)
    return max(low, float(np.finfo(np.float64).tiny)), _largest(p, m, n, quantile)


def _largest(p: int, m: float, n: float, quantile: float) -> float:
    """Upper quantile of the largest eigenvalue of `(A/m)⁻¹(B/n)`."""
    if m < p:
        return float("inf")
    m, n = max(m, p + 1.0), max(n, 1.0)
    total = m + n - 1
    gam = 2 * np.arcsin(np.sqrt((p - 0.5) / total))
    phi = 2 * np.arcsin(np.sqrt((n - 0.5) / total))
    mu = 2 * np.log(np.tan((phi + gam) / 2)) + np.log(m / n)
    cube = 16 / (total**2 * np.sin(phi + gam) ** 2 * np.sin(phi) * np.sin(gam))
    return float(np.exp(mu + np.cbrt(cube) * quantile))


def beyond(values: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far eigenvalues (..., k) are below and above intervals (..., 2), on a log scale.

    1 is the edge of the interval.
    """
    size = np.log(np.maximum(values, np.finfo(np.float64).tiny))
    low, high = np.log(edges[..., :1]), np.log(edges[..., 1:])
    return np.asarray(size / low), np.asarray(size / high)


def noise_edge(p: int, n: float, level: float) -> float:
    """Upper quantile of the largest eigenvalue of a p-dimensional sample of unit noise.

    Marchenko–Pastur's edge with Tracy–Widom's margin: `(√(n−½) + √(p−½))² / n` plus the quantile
    times `(√(n−½) + √(p−½)) (1/√(n−½) + 1/√(p−½))^⅓ / n`.
    """
    root_n, root_p = np.sqrt(n - 0.5), np.sqrt(p - 0.5)
    scale = (root_n + root_p) * np.cbrt(1 / root_n + 1 / root_p)
    return float(((root_n + root_p) ** 2 + tracy_widom_quantile(1 - level) * scale) / n)


def shift_edge(p: int, n: float, level: float) -> float:
    """Upper quantile of Hotelling's T², the squared length of a difference of two means.

    The difference is in units of its standard error, from a covariance with n degrees of freedom:
    `T² (n − p + 1)/(n p)` follows F with p and n − p + 1 degrees of freedom. Infinite if n < p.
    """
    if n < p:
        return float("inf")
    return float(n * p / (n - p + 1) * fdtri(p, n - p + 1, 1 - level))


def mean_square_edge(variances: FloatArray, copies: float, level: float) -> float:
    """Upper quantile of the mean square of independent normal numbers, over its expectation.

    Each variance belongs to so many `copies` of numbers. The law is that of a χ² with the same
    mean, variance and skewness: where few parts carry most, its tail is longer than with two.
    """
    one, two, three = (copies * float(np.sum(variances**k)) for k in (1, 2, 3))
    degrees = two**3 / three**2
    excess = float(chdtri(degrees, level)) - degrees
    return float(1.0 + excess * np.sqrt(two / degrees) / one)
