"""Which verdicts rest on one client?

A verdict rests on client k if what the others say would not give it: without k's share of the
pooled log-odds, the decided pairs that still have enough evidence of their own no longer include or
imply it. The posterior is not sampled again for every client: "enough" is the evidence that a pair
on its own needs to pass the threshold of a verdict.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.assembly.posterior.rounds import OrderModel, cover_cost
from jigsaw_crl.assembly.verdict import CERTAIN_YES, NO, SILENT, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import refuted, transitive_closure

__all__ = ["NOBODY", "rests_on"]

# No single client: several, or nobody in particular.
NOBODY = -1


def rests_on(
    panel: Panel,
    model: OrderModel,
    verdicts: npt.NDArray[np.int8],
    evidence: FloatArray,
    probability: FloatArray,
    least_against: float,
) -> npt.NDArray[np.int32]:
    """The client that each decided pair rests on, by number; `NOBODY` elsewhere, shape (p, p).

    Parameters
    ----------
    panel : Panel
    model : OrderModel
    verdicts : array of int8, shape (p, p)
    evidence : array, shape (p, p)
        Log-odds of every pair, all clients together.
    probability : array, shape (p, p)
    least_against : float
        Log-odds that "not ancestor" needs against it.
    """
    p = len(panel.labels)
    needed = cover_cost(p) + float(np.log(CERTAIN_YES / (1.0 - CERTAIN_YES)))
    out = np.full((p, p), NOBODY, dtype=np.int32)
    yes, no = verdicts == YES, verdicts == NO
    np.fill_diagonal(no, False)
    informed = model.informed(probability)
    shares = informed.cover_shares(probability)
    leans = panel.missed.leans
    whole = informed.pooled.log_odds(shares, leans)
    for k in range(len(panel.claims)):
        members = panel.claims[k].members
        grid = np.ix_(members, members)
        rest = informed.without(k)
        # Doubts about the pair itself stay as they are.
        change = rest.log_odds(shares, leans[grid]) - whole[grid]
        alone = evidence.copy()
        alone[grid] = np.where(rest.n_clients > 0, alone[grid] + change, 0.0)
        if not _loses(evidence[grid], alone[grid], yes[grid], no[grid], needed, least_against):
            continue
        own = alone > np.minimum(needed, evidence - 1e-9)
        still = transitive_closure(yes & (evidence > SILENT) & own)
        against = no & (alone < -least_against)
        denied = refuted(still, against)
        gone = (yes & ~still) | (no & ~(against | denied) & (evidence < -least_against))
        out[gone & (out == NOBODY)] = k
    return out


def _loses(
    evidence: FloatArray,
    alone: FloatArray,
    yes: BoolArray,
    no: BoolArray,
    needed: float,
    against: float,
) -> bool:
    """Does some pair of the client have too little evidence without it?"""
    weak = yes & (alone <= np.minimum(needed, evidence - 1e-9))
    return bool(weak.any() or (no & (evidence < -against) & (alone >= -against)).any())
