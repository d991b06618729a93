"""Direct effects: the weighted causal graph behind the total effects.

With M the matrix of total effects (rows the cause, ones on the diagonal), the direct effects are
`I − M⁻¹` (T8). An entry that the order excludes is zero. An entry that nobody measured is open: it
counts as zero with the variance of an effect that may be there, so that every edge which depends on
it gets a wide interval. To first order `δ(M⁻¹) = −M⁻¹ δM M⁻¹`, and the variance of a direct effect
is `Σ_kl (M⁻¹)_ik² (M⁻¹)_lj² Var M_kl`. Open pairs also count to second order, `M⁻¹ δM M⁻¹ δM M⁻¹`:
if nobody has k together with i or with j, i → k → j shows only there. An effect of which only the
size is known is open with that size.

Whether an open pair has an effect is one question, so an edge is weighed twice, with no effect in
open pairs and with one in all of them, and the two are averaged: with π the probability of an
effect in the open pairs on which the edge depends, `P = (1 − π) P₀ + π P₁`. An edge is a direct
cause only if the order says that it is a cause at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.effects import PooledEffects
from jigsaw_crl.assembly.verdict import NO, OPEN, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["DirectEffects", "EdgeVerdict", "direct_effects"]

EdgeVerdict = Literal["direct", "not direct", "undetermined"]

# Size of a direct effect, in standard deviations, and log-odds against there being one.
TYPICAL, AGAINST = 0.3, 1.0
# Log-odds beyond which an edge is decided: 19 to 1.
DECIDED = float(np.log(19.0))
# Variance of an effect that exact moments give.
NEGLIGIBLE = 1e-18


@dataclass(frozen=True, eq=False)
class DirectEffects:
    """Direct effects, rows the cause, columns the effect, shape (p, p).

    Parameters
    ----------
    labels : tuple of str
    weight, error : array
    log_odds : array
        That there is an edge; −inf where the order excludes it.
    by_open : array
        The part of the variance that comes from pairs that nobody measured.
    """

    labels: tuple[str, ...]
    weight: FloatArray
    error: FloatArray
    log_odds: FloatArray
    by_open: FloatArray

    @property
    def rests_on_open(self) -> BoolArray:
        """The interval is wide because pairs that nobody measured may lie between."""
        return np.asarray(self.by_open > self.error**2 / 2)

    def verdict(self, a: int, d: int) -> EdgeVerdict:
        """Is a a direct cause of d?"""
        return _verdict(self.log_odds[a, d])

    def verdict_at(self, a: int, d: int, factor: float) -> EdgeVerdict:
        """The verdict with `factor` times the rows at all sites, if the edge is as it looks."""
        open_ = self.by_open[a, d]
        variance = (self.error[a, d] ** 2 - open_) / factor + open_
        return _verdict(float(_log_odds(self.weight[a, d], variance, TYPICAL)) - AGAINST)


def _verdict(log_odds: float) -> EdgeVerdict:
    """What these log-odds of an edge say."""
    if log_odds > DECIDED:
        return "direct"
    return "not direct" if log_odds < -DECIDED else "undetermined"


def direct_effects(
    effects: PooledEffects,
    verdicts: npt.NDArray[np.int8],
    probabilities: FloatArray,
    *,
    entailed: bool = False,
) -> DirectEffects:
    """Direct effects from total effects and the order.

    Parameters
    ----------
    effects : PooledEffects
    verdicts : array of int8, shape (p, p)
        Of the order: see `verdict`.
    probabilities : array, shape (p, p)
        Of ancestry, for pairs that are open.
    entailed : bool
        Decide only edges that no open pair can explain, however improbable, as in exact mode.
    """
    p = len(effects.labels)
    possible = verdicts != NO
    np.fill_diagonal(possible, False)
    measured = effects.known & possible
    open_ = possible & ~effects.known
    M = np.eye(p)
    M[measured] += effects.estimate[measured]
    variance = np.zeros((p, p))
    variance[measured] = effects.error[measured] ** 2
    chance = np.where(open_, np.where(verdicts == OPEN, probabilities, 1.0), 0.0)
    size = np.where(np.isnan(effects.unsigned), TYPICAL, np.fmax(effects.unsigned, TYPICAL))
    inverse = np.linalg.inv(M)
    square: FloatArray = np.asarray(inverse**2, dtype=np.float64)
    own = square @ variance @ square
    by_open, if_all = (_by_open(square, open_ * size**2 * share) for share in (chance, 1.0))
    weight = np.eye(p) - inverse
    total = own + by_open
    odds = _averaged(_edge_odds(weight, own), _edge_odds(weight, own + if_all), by_open, if_all)
    odds[~possible] = -np.inf
    unsure = open_ | (entailed & possible & (if_all > NEGLIGIBLE))
    odds[unsure] = np.clip(odds[unsure], -DECIDED, DECIDED)
    # One judge says whether there is an effect: the order.
    odds = np.where(verdicts == YES, odds, np.minimum(odds, DECIDED))
    np.fill_diagonal(weight, 0.0)
    weight[~possible] = 0.0
    return DirectEffects(
        labels=effects.labels,
        weight=weight,
        error=np.where(possible, np.sqrt(total), 0.0),
        log_odds=odds,
        by_open=np.where(possible, by_open, 0.0),
    )


def _by_open(square: FloatArray, unseen: FloatArray) -> FloatArray:
    """Variance that open pairs of these variances bring to every edge."""
    through = square @ unseen @ square
    return np.asarray(through + square @ unseen @ through)


def _averaged(
    none: FloatArray, all_: FloatArray, by_open: FloatArray, if_all: FloatArray
) -> FloatArray:
    """Log-odds of edges, averaged over whether open pairs have an effect."""
    chance = np.divide(by_open, if_all, out=np.zeros_like(by_open), where=if_all > NEGLIGIBLE)
    with np.errstate(divide="ignore"):
        logs = np.log1p(-np.clip(chance, 0.0, 1.0)), np.log(np.clip(chance, 0.0, 1.0))
        yes, no = (
            np.logaddexp(
                logs[0] - np.logaddexp(0.0, -s * none), logs[1] - np.logaddexp(0.0, -s * all_)
            )
            for s in (1.0, -1.0)
        )
    return np.where(chance > 0, yes - no, none)


def _edge_odds(weight: FloatArray, variance: FloatArray) -> FloatArray:
    """Log-odds of an edge of typical size against none."""
    odds = _log_odds(weight, variance, TYPICAL) - AGAINST
    sure = np.where(np.abs(weight) > 1e-7, np.inf, -np.inf)
    return np.where(variance <= NEGLIGIBLE, sure, odds)


def _log_odds(weight: float | FloatArray, variance: float | FloatArray, size: float) -> FloatArray:
    """Log Bayes factor of an effect of this size against none."""
    v = np.maximum(variance, 1e-18)
    gain = 0.5 * weight**2 / v * (size**2 / (size**2 + v))
    return np.asarray(gain - 0.5 * np.log1p(size**2 / v))
