"""Do the regimes differ from the control in all directions, by more than the rows allow?

A regime with one target moves one plane, and one with two targets two. Along all other directions
`D = M − I` is the sampling error of n rows, which has entries of variance `1/w_D` (and `2/w_D` on
the diagonal). If it is larger there in most regimes, rows say less than their number: rows of one
subject are alike and the subjects are not named, gains drift, or the sensors are not linear. The
squared size over what is expected is then how many rows stand for one, and all errors use it.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.client.white import White

__all__ = ["excess_spread", "spread_edge"]

# Directions at either end of the spectrum that targets may have moved.
MOVED = 2
# Fewer latents leave no direction, and a few regimes show what most of them do.
FEWEST, MOST_REGIMES = 5, 16
# A factor below this is not worth a line; beyond it, chance allows this many standard deviations.
# Larger factors are those of a model that does not fit, not of rows that are alike.
NOTICEABLE, DEVIATIONS, MOST = 1.5, 4.0, 25.0
# Random matrices behind the null: so many numbers, for at most so many clients.
NUMBERS, DRAWS = 500_000, 200
# Sound clients show this share of its mean: the pooled control fits every regime a little.
FITTED = 0.8


def excess_spread(white: White) -> float:
    """How many times the error of independent rows most regimes show; 1 if that is within chance.

    One regime in two may differ in other ways. Few directions show nothing, and give 1.
    """
    p, r = white.dimension, len(white.n)
    if white.exact or p < FEWEST:
        return 1.0
    chosen = np.unique(np.linspace(0, r - 1, min(r, MOST_REGIMES)).astype(np.intp))
    mean, edge = _null(p, len(chosen))
    value = float(np.median(white.size[chosen] * _bulk(white.M[chosen], white.noise))) / mean
    return value / FITTED if edge < value < MOST else 1.0


def spread_edge(p: int, regimes: int) -> float:
    """The factor that chance allows in p dimensions."""
    return _null(p, min(regimes, MOST_REGIMES))[1]


def _bulk(M: FloatArray, noise: FloatArray | None) -> FloatArray:
    """Sum of the squared eigenvalues of each D without the outermost ones."""
    if noise is not None:
        root = np.linalg.inv(np.linalg.cholesky(np.eye(len(noise)) + noise))
        M = root @ (M + noise) @ root.T
    values = np.linalg.eigvalsh((M + np.swapaxes(M, 1, 2)) / 2) - 1.0
    return np.asarray(np.sum(values[:, MOVED:-MOVED] ** 2, axis=1))


@lru_cache(maxsize=64)
def _null(p: int, r: int) -> tuple[float, float]:
    """Mean of the median of `_bulk` over r regimes with one target each, and its edge over it.

    For errors of variance 1. A target takes one direction at either end, so that of p − 2 others
    the outermost are left out.
    """
    draws = int(np.clip(NUMBERS // (r * p**2), 4, DRAWS))
    A = np.random.default_rng(p).normal(size=(draws, r, p - 2, p - 2))
    values = np.linalg.eigvalsh((A + np.swapaxes(A, 2, 3)) / np.sqrt(2.0))
    median = np.median(np.sum(values[..., 1:-1] ** 2, axis=2), axis=1)
    mean = float(median.mean())
    return mean, max(NOTICEABLE, 1.0 + DEVIATIONS * float(median.std()) / mean)
