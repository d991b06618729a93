"""The one rule that turns probabilities and evidence into verdicts.

A pair is decided when its probability passes 0.95 or 0.05, in all chains together and nearly so in
every chain, and when its own evidence points the same way or decided pairs imply the answer. The
prior alone decides nothing, and neither do chains that disagree, nor clients one of which clearly
says the opposite. Evidence that leaves room for a large effect says no "no"; decided pairs may
still imply it.

With a smallest effect that matters, "not ancestor" means that no effect is larger, as in an
equivalence test. Then a bound above that size leaves the pair open, and a bound below it decides a
pair that is more likely no ancestor than one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.verdict import CERTAIN_NO, CERTAIN_YES, EACH_NO, EACH_YES, NO, OPEN, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import refuted, transitive_closure

__all__ = ["LEAST_AGAINST", "LEAST_FOR", "Decided", "Why", "decide", "disputed"]

# Log Bayes factors that a verdict needs from the pair's own evidence, unless decided pairs imply
# it. Against, it needs more: the prior already makes ancestry improbable, and small effects hide.
LEAST_FOR, LEAST_AGAINST = float(np.log(2.0)), 1.0


class Why(IntEnum):
    """Why a pair has its verdict, or none."""

    EVIDENCE = 0  # its own evidence decides it
    IMPLIED = 1  # decided pairs imply it
    SMALL = 2  # no effect above the size that matters
    UNSURE = 3  # the probability lies between the thresholds
    DISPUTED = 4  # chains disagree
    PRIOR = 5  # the probability is beyond a threshold, the evidence is not
    LARGE = 6  # an effect above the size that matters is not excluded
    KNOWN = 7  # the user said so
    OPPOSED = 8  # a client that counts clearly says the opposite
    FEW = 9  # it would rest on fewer clients than are asked for


@dataclass(frozen=True, eq=False)
class Decided:
    """Verdicts, and why, shape (p, p) each; the diagonal is "no"."""

    verdicts: npt.NDArray[np.int8]
    why: npt.NDArray[np.int8]


def decide(
    probability: FloatArray,
    evidence: FloatArray,
    *,
    chains: FloatArray | None = None,
    opposed: BoolArray | None = None,
    bound: FloatArray | None = None,
    too_large: BoolArray | None = None,
    smallest: float | None = None,
    known: npt.NDArray[np.int8] | None = None,
) -> Decided:
    """Verdicts of all ordered pairs.

    Parameters
    ----------
    probability, evidence : array, shape (p, p)
        Probability and log Bayes factor of every pair.
    chains : array, shape (n_chains, p, p), optional
        The probabilities of each chain alone.
    opposed : array of bool, shape (p, p), optional
        Pairs on which a client clearly says the opposite of what is probable.
    bound : array, shape (p, p), optional
        The effect that the data exclude; NaN where nobody measured the pair.
    too_large : array of bool, shape (p, p), optional
        Pairs with so large a bound that their own evidence cannot decide "no".
    smallest : float, optional
        The smallest effect that matters; needs `bound`.
    known : array of int8, shape (p, p), optional
        What the user said (`Panel.known`): it is decided, whatever the numbers.
    """
    p = len(probability)
    said = np.full((p, p), OPEN, dtype=np.int8) if known is None else known
    eye = np.eye(p, dtype=bool)
    least, most = (probability,) * 2 if chains is None else (chains.min(axis=0), chains.max(axis=0))
    high = (probability > CERTAIN_YES) & (least > EACH_YES) & ~eye | (said == YES)
    low = (probability < CERTAIN_NO) & (most < EACH_NO) | eye | (said == NO)
    free = True if opposed is None else ~opposed
    yes = high & (free & (evidence > LEAST_FOR) | (said == YES))
    no = low & (free & (evidence < -LEAST_AGAINST) | (said == NO))
    large = np.zeros_like(no) if too_large is None else no & too_large & ~eye & (said != NO)
    no &= ~large
    above = transitive_closure(yes)
    below = refuted(above, no)
    verdicts = np.full((p, p), OPEN, dtype=np.int8)
    verdicts[low & (no | below | eye)] = NO
    verdicts[high & (yes | above)] = YES
    why = np.full((p, p), Why.UNSURE, dtype=np.int8)
    why[(probability > CERTAIN_YES) | (probability < CERTAIN_NO)] = Why.PRIOR
    why[disputed(least, most)] = Why.DISPUTED
    why[large] = Why.LARGE
    if opposed is not None:
        why[(high | low) & opposed] = Why.OPPOSED
    why[verdicts != OPEN] = Why.IMPLIED
    why[yes | (no & (verdicts == NO))] = Why.EVIDENCE
    if bound is not None and smallest is not None:
        _by_size(verdicts, why, probability, np.where(said == OPEN, bound, np.nan), smallest)
    why[said != OPEN] = Why.KNOWN
    return Decided(verdicts, why)


def disputed(least: FloatArray, most: FloatArray) -> BoolArray:
    """Pairs that one chain would decide, and another one not even nearly."""
    yes, no = (most > CERTAIN_YES) & (least < EACH_YES), (least < CERTAIN_NO) & (most > EACH_NO)
    return np.asarray(yes | no)


def _by_size(
    verdicts: npt.NDArray[np.int8],
    why: npt.NDArray[np.int8],
    probability: FloatArray,
    bound: FloatArray,
    smallest: float,
) -> None:
    """Let "no" mean that no effect is larger than the one that matters; in place."""
    with np.errstate(invalid="ignore"):
        small, large = bound <= smallest, bound > smallest
    # Decided ancestors exclude the opposite, whatever its size.
    reverse = transitive_closure(verdicts == YES).T
    open_again = large & (verdicts == NO) & ~reverse
    verdicts[open_again], why[open_again] = OPEN, Why.LARGE
    decided = small & (verdicts == OPEN) & (probability <= 0.5)
    verdicts[decided], why[decided] = NO, Why.SMALL
