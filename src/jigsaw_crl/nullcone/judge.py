"""How each regime differs from the control: one judgement for all that is decided about regimes.

In coordinates whitened by the control, `M_j − I = D_j` has at most one positive and one negative
eigenvalue in the population (T1). From samples, chance fills an interval around 1
(`client.nulls.ratio_edges`). Eigenvalues are judged as the checks judge them, on a log scale on
which 1 is the edge of that interval: a direction beyond it was moved.

Along all directions but those that targets may have moved, `D_j` is the sampling error of n rows.
Its squared size there over what is expected is the regime's *misfit*. If it is above chance in most
regimes, rows say less than their number: rows of one subject are alike and the subjects are not
named, gains drift, or the sensors are not linear. All errors then count so many times fewer rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.client.nulls import FALSE_ALARM, ratio_edges
from jigsaw_crl.client.white import White

__all__ = ["SEVERAL", "Judged", "beyond", "excess_spread", "judge", "spread_edge"]

# A regime is left out only on clear evidence: heavy tails push single eigenvalues out of the
# interval. As in the checks, it must exceed the edge of chance by half.
SEVERAL = 1.5
# Directions at either end of the spectrum that targets may have moved. In fewer dimensions than
# FEWEST they leave nothing to judge a misfit by.
MOVED, FEWEST = 2, 5
# A misfit below the first number is not worth a line; chance allows so many standard deviations;
# larger ones are those of a model that does not fit, not of rows that are alike.
NOTICEABLE, DEVIATIONS, MOST = 1.5, 4.0, 25.0
# Sound clients show this share of the expected misfit: the pooled control fits every regime.
FITTED = 0.8
# Numbers in the random matrices behind the null.
NUMBERS = 500_000


@dataclass(frozen=True, eq=False)
class Judged:
    """How clearly each regime differs from the control; 1 is the edge of chance.

    Parameters
    ----------
    low, high : array, shape (r,)
        Of the smallest and the largest eigenvalue.
    third : array, shape (r,)
        Of the next ones inwards: beyond `SEVERAL`, more than one target moved.
    misfit : array, shape (r,)
        See the module's docstring; NaN in few dimensions.
    edges : array, shape (r, 2)
        The interval of chance.
    """

    low: FloatArray
    high: FloatArray
    third: FloatArray
    misfit: FloatArray
    edges: FloatArray

    @property
    def strength(self) -> FloatArray:
        """Of the clearest direction, shape (r,)."""
        return np.maximum(self.low, self.high)

    @property
    def several(self) -> BoolArray:
        """Regimes in which more than one target moved, shape (r,)."""
        return self.third > SEVERAL


def beyond(values: FloatArray, edges: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How far eigenvalues are below and above an interval, log scale; shape (..., k) each.

    Parameters
    ----------
    values : array, shape (..., k)
    edges : array, shape (..., 2)
    """
    size = np.log(np.maximum(values, np.finfo(np.float64).tiny))
    low, high = np.log(edges[..., :1]), np.log(edges[..., 1:])
    return np.asarray(size / low), np.asarray(size / high)


def judge(white: White) -> Judged:
    """Which directions each regime moved, and how well "one target" fits it."""
    p, values = white.dimension, white.seen
    # The direction that a target moved is none of the noise.
    edges = np.array(
        [ratio_edges(max(p - 1, 1), white.n_eff, n, FALSE_ALARM) for n in white.n.tolist()]
    )
    below, above = beyond(values, edges)
    third = np.maximum(below[:, 1], above[:, 2]) if p > 2 else np.zeros(len(values))
    misfit = np.full(len(values), np.nan)
    if p >= FEWEST and not white.exact:
        D = white.rows.M - np.eye(p)
        bulk = np.einsum("rpq,rpq->r", D, D) - ((values - 1.0) ** 2).sum(axis=1)
        misfit = white.size * bulk / _null(p)[0]
    return Judged(below[:, 0], above[:, 3], third, misfit, edges)


def excess_spread(judged: Judged, p: int) -> float:
    """How many times the error of independent rows most regimes show; 1 if that is within chance.

    One regime in two may differ in other ways.
    """
    value = float(np.median(judged.misfit))
    excess = value < MOST and value > spread_edge(p, len(judged.misfit))
    return value / FITTED if excess else 1.0


def spread_edge(p: int, regimes: int) -> float:
    """The median misfit that chance allows in p dimensions."""
    # The median of r numbers varies by 1.25 of their mean's error.
    return max(NOTICEABLE, 1.0 + DEVIATIONS * 1.25 * _null(p)[1] / float(np.sqrt(regimes)))


@lru_cache(maxsize=64)
def _null(p: int) -> tuple[float, float]:
    """Mean and relative standard deviation of the misfit's sum, for errors of variance 1.

    A target takes one direction at either end, so that of p − 2 others the outermost are left out.
    """
    draws = int(np.clip(NUMBERS // p**2, 60, 3000))
    A = np.random.default_rng(p).normal(size=(draws, p - 2, p - 2))
    values = np.linalg.eigvalsh((A + np.swapaxes(A, 1, 2)) / np.sqrt(2.0))
    bulk = np.sum(values[:, 1:-1] ** 2, axis=1)
    return float(bulk.mean()), float(bulk.std() / bulk.mean())
