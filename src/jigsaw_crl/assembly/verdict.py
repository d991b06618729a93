"""The possible answers about a pair, and the one rule that turns evidence into them.

A pair is decided when its probability passes 0.95 or 0.05, in all chains together and nearly so in
every chain, and when its own evidence points the same way or decided pairs imply the answer. The
prior alone decides nothing, and neither do chains that disagree, nor clients one of which clearly
says the opposite.

A "no" excludes effects above some size. Evidence that leaves room for a large effect says no "no".
A "no" that follows from others needs a size too: its own where the pair was measured, else that of
a "no" from which it follows. Only a decided ancestor excludes the opposite whatever its size.

With a smallest effect that matters, "not ancestor" means that no effect is larger, as in an
equivalence test. Then a bound above that size leaves the pair open, and a bound below it decides a
pair that is more likely no ancestor than one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import refuted, transitive_closure
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import CANNOT_SAY
from jigsaw_crl.fragment.fragment import NO as NO
from jigsaw_crl.fragment.fragment import YES as YES

# Arrays of verdicts use the codes of a fragment's statements: YES, NO, and OPEN for undetermined.
OPEN = CANNOT_SAY
# A pair is decided when its probability is above CERTAIN_YES or below CERTAIN_NO.
CERTAIN_YES, CERTAIN_NO = 0.95, 0.05
# The same as log-odds: 19 to 1.
SURE = math.log(CERTAIN_YES / CERTAIN_NO)
# Probability that every single chain must pass before all of them decide together.
EACH_YES, EACH_NO = 0.85, 0.15


class Verdict(Enum):
    """Is one label an ancestor of another?

    Examples
    --------
    >>> from jigsaw_crl import Verdict
    >>> str(Verdict.NOT_ANCESTOR)
    'not ancestor'
    """

    ANCESTOR = "ancestor"
    NOT_ANCESTOR = "not ancestor"
    UNDETERMINED = "undetermined"

    def __str__(self) -> str:
        return self.value


VERDICTS = {YES: Verdict.ANCESTOR, NO: Verdict.NOT_ANCESTOR, OPEN: Verdict.UNDETERMINED}


def tally(counts: Mapping[str, int]) -> str:
    """The numbers of pairs with each verdict, as every repr and heading gives them.

    Examples
    --------
    >>> tally({"ancestor": 1, "not ancestor": 3, "undetermined": 2})
    '1 ancestor pair, 3 not ancestor, 2 undetermined'
    """
    yes, no, opened = (counts[str(VERDICTS[code])] for code in (YES, NO, OPEN))
    return f"{pluralise(yes, 'ancestor pair')}, {no} not ancestor, {opened} undetermined"


# -- the rule -------------------------------------------------------------------------------------

# Log Bayes factors that a verdict needs from the pair's own evidence, unless decided pairs imply
# it. Against, it needs more: the prior already makes ancestry improbable, and small effects hide.
LEAST_FOR, LEAST_AGAINST = float(np.log(2.0)), 1.0
# With so much evidence for the reverse, and half as much as for a pair, the data show that two
# labels belong together, and hardly which way. In networks with weak effects 13 of 22 wrong "yes"
# had it and 23 of 1,119 right ones; in ten other kinds of studies 8 of 4,606 right ones.
BOTH_WAYS = 4.0


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
    BOTH = 10  # the evidence clearly speaks for either direction


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
    room: FloatArray | None = None,
    size_matters: bool = False,
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
    room : array, shape (p, p), optional
        The size of effect that the data do not exclude, over that which "no" must exclude; NaN
        where nobody measured the pair. By default sizes do not count.
    size_matters : bool
        A room of at most 1 decides "no" where it is more likely than not.
    known : array of int8, shape (p, p), optional
        What the user said (`Panel.known`): it is decided, whatever the numbers.
    """
    p = len(probability)
    eye = np.eye(p, dtype=bool)
    said = np.full((p, p), OPEN, dtype=np.int8) if known is None else known
    size = np.where((said == NO) | eye, 0.0, np.zeros((p, p)) if room is None else room)
    least, most = (probability,) * 2 if chains is None else (chains.min(axis=0), chains.max(axis=0))
    high = (probability > CERTAIN_YES) & (least > EACH_YES) & ~eye | (said == YES)
    low = (probability < CERTAIN_NO) & (most < EACH_NO) | eye | (said == NO)
    free = True if opposed is None else ~opposed
    both = (evidence.T > BOTH_WAYS) & (evidence < 2.0 * evidence.T)
    yes = high & (free & (evidence > LEAST_FOR) & ~both | (said == YES))
    against = low & (free & (evidence < -LEAST_AGAINST) | (said == NO))
    with np.errstate(invalid="ignore"):
        small, large = size <= 1.0, size > 1.0
    no, above = against & ~large, transitive_closure(yes)
    # What follows from a "no": with its own size, or if nobody measured it with that of the "no".
    below = refuted(above, no & small) & ~large
    if (no & ~small).any():
        below |= refuted(above, no) & small
    verdicts = np.full((p, p), OPEN, dtype=np.int8)
    verdicts[low & (no | below | above.T | eye)] = NO
    verdicts[high & (yes | above)] = YES
    why = np.full((p, p), Why.UNSURE, dtype=np.int8)
    why[(probability > CERTAIN_YES) | (probability < CERTAIN_NO)] = Why.PRIOR
    why[disputed(least, most)] = Why.DISPUTED
    if large.any():
        why[large & low & (against | refuted(above, against))] = Why.LARGE
    why[high & both] = Why.BOTH
    if opposed is not None:
        why[(high | low) & opposed] = Why.OPPOSED
    why[verdicts != OPEN] = Why.IMPLIED
    why[yes | (no & (verdicts == NO))] = Why.EVIDENCE
    if size_matters:
        decided = small & (verdicts == OPEN) & (probability <= 0.5)
        verdicts[decided], why[decided] = NO, Why.SMALL
    why[said != OPEN] = Why.KNOWN
    return Decided(verdicts, why)


def implied(codes: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """What follows from verdicts, and these: closed, shape (p, p)."""
    above = transitive_closure(codes == YES)
    return np.where(above, YES, np.where(refuted(above, codes == NO), NO, OPEN)).astype(np.int8)


def disputed(least: FloatArray, most: FloatArray) -> BoolArray:
    """Pairs that one chain would decide, and another one not even nearly."""
    yes, no = (most > CERTAIN_YES) & (least < EACH_YES), (least < CERTAIN_NO) & (most > EACH_NO)
    return np.asarray(yes | no)
