"""Scores of effects, edges, latents and stated probabilities against the truth of a world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.assembly.verdict import NO
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.truth.metrics import Counts

# Rounding error of an effect from exact moments, whose interval has no width.
ROUNDING = 1e-8
# Inner edges of the bins of `reliability`: below 1 %, 1 to 5 %, …, above 99 %.
PROBABILITY_BINS = (0.01, 0.05, 0.2, 0.8, 0.95, 0.99)


def reliability(truth: PartialOrder[str], order: jc.GlobalOrder) -> np.ndarray:
    """Stated probabilities against the truth, in the bins of `PROBABILITY_BINS`.

    Per bin: number of ordered pairs, sum of their stated probabilities, number of true ancestors
    among them. Arrays of several worlds add up.
    """
    off = ~np.eye(len(order.labels), dtype=bool)
    stated = order.probabilities[off]
    true = truth.restrict(order.labels).matrix[off]
    which = np.digitize(stated, PROBABILITY_BINS)
    size = len(PROBABILITY_BINS) + 1
    columns = (np.bincount(which, weights=w, minlength=size) for w in (None, stated, true))
    return np.column_stack([*columns]).astype(np.float64)


def latent_correlation(truth: jc.simulate.Truth, fragment: jc.Fragment) -> float:
    """Mean absolute correlation of the latents that `Fragment.transform` gives with the true ones.

    Each label's latent is compared with its own, over the control's population: the correlation
    has no sampling error of its own. A latent that was not recovered scores 0.
    """
    assert fragment.basis is not None
    covariance = np.linalg.inv(truth.marginal.precision())
    at = [truth.labels.index(label) for label in fragment.labels]
    N = fragment.basis @ truth.mixing  # Ẑ = N Z
    with np.errstate(invalid="ignore", divide="ignore"):
        own = (N @ covariance)[range(len(at)), at]
        spread = np.einsum("ij,jk,ik->i", N, covariance, N) * np.diag(covariance)[at]
        return float(np.nan_to_num(np.abs(own) / np.sqrt(spread)).sum() / len(truth.labels))


@dataclass(frozen=True)
class EffectScores(Counts):
    """How far effects are from the truth, and how often their 95 % intervals hold it.

    Ordered pairs with an estimate whose true effect is zero, and how many intervals hold it; the
    same for pairs with an effect; and the sum over all of the squared error of `total` in
    `Result.effects`.
    """

    zero: int = 0
    zero_covered: int = 0
    other: int = 0
    other_covered: int = 0
    squares: float = 0.0

    @property
    def rms(self) -> float:
        """Root mean square error; NaN without pairs."""
        return float(np.sqrt(_ratio(self.squares, self.zero + self.other)))

    @property
    def coverage(self) -> float:
        """Share of intervals that hold the true effect."""
        return _ratio(self.zero_covered + self.other_covered, self.zero + self.other)

    @property
    def coverage_of_zero(self) -> float:
        """The same where there is no effect."""
        return _ratio(self.zero_covered, self.zero)

    @property
    def coverage_of_effects(self) -> float:
        """The same where there is one."""
        return _ratio(self.other_covered, self.other)


@dataclass(frozen=True)
class EdgeCounts(Counts):
    """How many edges there are, how many are stated as "direct", and how many of these are there;
    and the number of ordered pairs with the verdict "undetermined".
    """

    true: int = 0
    stated: int = 0
    right: int = 0
    undetermined: int = 0

    @property
    def f1(self) -> float:
        """`2 right / (true + stated)`; 1 when both are zero."""
        size = self.true + self.stated
        return 2 * self.right / size if size else 1.0


def effect_scores(world: jc.simulate.World, order: jc.GlobalOrder) -> EffectScores:
    """Compare the total effects of an order with the truth.

    The direction of a label whose interventions do not shift it is arbitrary; effects of and on
    such a label are compared by their size.
    """
    effects, truth = order.effects, world.effects(order.labels)
    if effects is None:
        return EffectScores()
    known = effects.known & ~np.eye(len(order.labels), dtype=bool)
    by_size = ~(effects.oriented[:, None] & effects.oriented)
    true, estimate = (np.where(by_size, np.abs(x), x) for x in (truth.total, effects.estimate))
    half = (effects.high - effects.low) / 2 + ROUNDING
    covered = np.abs(estimate - true) <= half
    total = np.where(order.verdicts == NO, 0.0, estimate)
    zero = truth.total == 0
    return EffectScores(
        zero=int((known & zero).sum()),
        zero_covered=int((known & zero & covered).sum()),
        other=int((known & ~zero).sum()),
        other_covered=int((known & ~zero & covered).sum()),
        squares=float(((total - true)[known] ** 2).sum()),
    )


def edge_counts(world: jc.simulate.World, order: jc.GlobalOrder, above: float = 0.0) -> EdgeCounts:
    """Compare the direct edges of an order with those of the truth.

    Edges up to the size `above`, in standard deviations, count neither as found nor as missed.
    """
    truth = world.effects(order.labels)
    edge, small = truth.direct != 0, np.abs(truth.direct) <= above
    true = edge & ~small
    direct = order.direct_effects
    if direct is None:
        return EdgeCounts(true=int(true.sum()))
    p = range(len(order.labels))
    verdicts = np.array([[direct.verdict(a, d) for d in p] for a in p])
    stated = (verdicts == "direct") & ~(edge & small)
    return EdgeCounts(
        true=int(true.sum()),
        stated=int(stated.sum()),
        right=int((stated & true).sum()),
        undetermined=int((verdicts == "undetermined").sum()),
    )


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else float("nan")
