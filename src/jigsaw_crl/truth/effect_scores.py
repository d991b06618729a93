"""Effects and edges from hard interventions, against the truth.

Public as part of `metrics`. Counts of several worlds add up with `+`.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import NO
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.simulate.effects import TrueEffects

__all__ = ["EdgeCounts", "EffectScores", "edge_counts", "effect_scores"]

# Rounding error of an effect from exact moments, whose interval has no width.
ROUNDING = 1e-8


@dataclass(frozen=True)
class EffectScores:
    """How far effects are from the truth, and how often their 95 % intervals hold it.

    Parameters
    ----------
    zero, zero_covered : int
        Ordered pairs with an estimate whose true effect is zero, and how many intervals hold it.
    other, other_covered : int
        The same for pairs with an effect.
    squares : float
        Sum over these pairs of the squared error of `total` in `Result.effects`.
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

    def __add__(self, other: EffectScores) -> EffectScores:
        both = zip(astuple(self), astuple(other), strict=True)
        return EffectScores(*(a + b for a, b in both))


@dataclass(frozen=True)
class EdgeCounts:
    """How many edges there are, how many are stated as "direct", and how many of these are there.

    Parameters
    ----------
    true, stated, right : int
    undetermined : int
        Ordered pairs with the verdict "undetermined".
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

    def __add__(self, other: EdgeCounts) -> EdgeCounts:
        both = zip(astuple(self), astuple(other), strict=True)
        return EdgeCounts(*(a + b for a, b in both))


def effect_scores(truth: TrueEffects, order: GlobalOrder) -> EffectScores:
    """Compare the total effects of an order with the truth.

    The direction of a label whose interventions do not shift it is arbitrary; effects of and on
    such a label are compared by their size.

    Parameters
    ----------
    truth : TrueEffects
        `world.effects(order.labels)`.
    order : GlobalOrder

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    >>> order = jc.recover(world.clients(), interventions="hard").order
    >>> scores = jc.metrics.effect_scores(world.effects(order.labels), order)
    >>> scores.coverage, round(scores.rms, 8)
    (1.0, 0.0)
    """
    _check_labels(truth, order)
    effects = order.effects
    if effects is None:
        return EffectScores()
    known = effects.known & ~np.eye(len(order.labels), dtype=bool)
    by_size = ~(effects.oriented[:, None] & effects.oriented)
    true, estimate = (np.where(by_size, np.abs(x), x) for x in (truth.total, effects.estimate))
    half = (effects.high - effects.low) / 2 + ROUNDING
    covered = np.abs(estimate - true) <= half
    total: FloatArray = np.where(order.verdicts == NO, 0.0, estimate)
    zero = truth.total == 0
    return EffectScores(
        zero=int((known & zero).sum()),
        zero_covered=int((known & zero & covered).sum()),
        other=int((known & ~zero).sum()),
        other_covered=int((known & ~zero & covered).sum()),
        squares=float(((total - true)[known] ** 2).sum()),
    )


def edge_counts(truth: TrueEffects, order: GlobalOrder, above: float = 0.0) -> EdgeCounts:
    """Compare the direct edges of an order with those of the truth.

    Parameters
    ----------
    truth : TrueEffects
        `world.effects(order.labels)`.
    order : GlobalOrder
    above : float
        Edges up to this size, in standard deviations, count neither as found nor as missed.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    >>> order = jc.recover(world.clients(), interventions="hard").order
    >>> jc.metrics.edge_counts(world.effects(order.labels), order).f1
    1.0
    """
    _check_labels(truth, order)
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


def _check_labels(truth: TrueEffects, order: GlobalOrder) -> None:
    if truth.labels != order.labels:
        raise InputError(
            "the true effects are not those of the order's labels",
            "Pass world.effects(order.labels).",
        )


def _ratio(part: float, whole: int) -> float:
    return part / whole if whole else float("nan")
