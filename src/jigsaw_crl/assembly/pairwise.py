"""Verdicts from each pair's own evidence, where there are too many labels to sample orders.

With more than `MOST_SAMPLED` labels, tables hold the pairs that some client speaks about, in single
precision, and clients are read one at a time, once a pass. Given are: the weight of every client,
the pooled log-odds of every pair, and verdicts. A pair is one of three things, a → d, d → a or
neither, with

    P(a → d) : P(d → a) : P(neither) = π exp E_ad : π exp E_da : 1 − 2π

and π, the share of ancestors among the pairs that clients speak about, estimated from all of them.
Verdicts on different pairs must not contradict each other: an order is grown from the "ancestor"
verdicts, the surest first, and what does not fit is left undetermined. So are pairs that no client
has, and pairs on which the evidence is short of a verdict although other pairs would complete it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.hearing import Hearing, Here, Spoken
from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.assembly.posterior.doubts import INVISIBLE
from jigsaw_crl.assembly.posterior.rounds import VISIBLE_SHARES, OrderModel
from jigsaw_crl.assembly.posterior.weights import Agreement, Trust, settle
from jigsaw_crl.assembly.said import CHUNK, Given, Single, Words
from jigsaw_crl.assembly.verdict import (
    CERTAIN_NO,
    CERTAIN_YES,
    LEAST_AGAINST,
    NO,
    OPEN,
    SILENT,
    YES,
)
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.evidence.priors import PAIR_COST

__all__ = ["Pairwise", "evidence_of", "judge_pairs"]

# The share of ancestors before the data, worth so many pairs, and steps of EM.
SHARE, PRIOR_PAIRS, STEPS = 0.05, 100.0, 15
# Rounds in which weights and what they lead to are brought to agreement.
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Pairwise:
    """What is said where orders are not sampled.

    Parameters
    ----------
    trust : Trust
    evidence : array of float32, shape (p, p)
        Pooled log-odds; 0 where no client speaks about the pair.
    probability : array of float32, shape (p, p)
        0 where no client speaks about the pair.
    verdicts : array of int8, shape (p, p)
    order : array of bool, shape (p, p)
        The "ancestor" verdicts and what they imply.
    share : float
        π: ancestors among the pairs that clients speak about, in one direction.
    """

    trust: Trust
    evidence: FloatArray
    probability: FloatArray
    verdicts: npt.NDArray[np.int8]
    order: BoolArray
    share: float


# -- trust ----------------------------------------------------------------------------------------


def _weigh(hearing: Hearing, rng: np.random.Generator) -> Trust:
    """Trust in each client: its agreement with all others, without it and its copies."""
    twins = {k: [j for j in found if j != k] for found in hearing.copies for k in found}

    def measure(weights: FloatArray, rate: float) -> Iterator[tuple[int, Agreement]]:
        given = Given(weights.copy(), rate, twins)
        total = hearing.pooled(given)
        evidence = hearing.log_odds(total)
        _, share = _probabilities(hearing.spoken, evidence)
        cost = float(np.log((1.0 - 2.0 * share) / share))
        order = _grown(hearing.spoken, evidence - np.float32(cost), -cost, rng)
        yield from hearing.agreements(total, given, cost, _packed_ancestors(order))

    return settle(hearing.stating, hearing.copies, measure, ROUNDS)


def _grown(spoken: Spoken, weight: Single, other: float, rng: np.random.Generator) -> BoolArray:
    """The order that greedy insertion finds, of numbered pairs with these weights.

    Labels are shuffled, so that ties are broken at random and not by position.
    """
    from jigsaw_crl.base.bitsets import greedy_order  # loads the compiler

    place = rng.permutation(spoken.p)
    table = np.full((spoken.p, spoken.p), other, dtype=np.float32)
    table[place[spoken.a], place[spoken.d]] = weight
    return greedy_order(table)[np.ix_(place, place)]


def _packed_ancestors(order: BoolArray) -> Words:
    """The ancestors of every label as bits, shape (p, words)."""
    from jigsaw_crl.base.bitsets import pack  # loads the compiler

    return pack(order.T)


# -- verdicts -------------------------------------------------------------------------------------


def judge_pairs(hearing: Hearing, rng: np.random.Generator) -> Pairwise:
    """Weights, probabilities and verdicts of all pairs."""
    trust = _weigh(hearing, rng)
    evidence = _evidence(hearing, trust.weights, trust.rate)
    chance, share = _probabilities(hearing.spoken, evidence)
    verdicts, order = _verdicts(hearing.spoken, evidence, chance, rng)
    log_odds: Any = hearing.spoken.table(evidence, 0.0)
    probability: Any = hearing.spoken.table(chance, 0.0)
    for table in (log_odds, probability, verdicts, order):
        table.flags.writeable = False  # tables of so many pairs are not copied
    return Pairwise(trust, log_odds, probability, verdicts, order, share)


def evidence_of(
    panel: Panel, trust: FloatArray, rate: float, probability: FloatArray | None
) -> FloatArray:
    """Pooled log-odds of every pair, shape (p, p); all doubts applied where orders are sampled."""
    if not panel.many:
        return OrderModel.of(panel, trust, rate).evidence(probability)
    hearing = Here(panel)
    out: Any = hearing.spoken.table(_evidence(hearing, trust, rate), 0.0)
    return cast(FloatArray, out)


def _evidence(hearing: Hearing, weights: FloatArray, rate: float) -> Single:
    """Pooled log-odds; a single direction counts against a label without a likely ancestor."""
    spoken, missed, n = hearing.spoken, hearing.missed, hearing.n_scales
    visible = VISIBLE_SHARES if len(VISIBLE_SHARES) == n else (1.0 / n,) * n
    shares = [*(v * (1.0 - INVISIBLE) for v in visible), INVISIBLE]
    evidence = hearing.log_odds(hearing.pooled(Given(weights, rate, {})), shares)
    likely = np.zeros(spoken.p, dtype=bool)
    likely[spoken.d[evidence > PAIR_COST]] = True
    against = np.where(likely, 0.0, np.minimum(missed.ancestry, 0.0)).astype(np.float32)
    return np.asarray(evidence + against[spoken.d])


def _probabilities(spoken: Spoken, evidence: Single) -> tuple[Single, float]:
    """Probability of each numbered pair, and π; both directions and "neither" sum to one."""
    other = spoken.table(evidence, 0.0)[spoken.d, spoken.a]

    def chance(share: float, part: slice) -> Single:
        yes = np.log(share) + evidence[part]
        rest = np.logaddexp(np.log1p(-2.0 * share), np.log(share) + other[part])
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(rest - yes, 80.0))), dtype=np.float32)

    # A share needs no more pairs than this, evenly spread.
    some = slice(None, None, len(evidence) // CHUNK + 1)
    share = SHARE
    for _ in range(STEPS):
        found = chance(share, some)
        total = float(found.sum(dtype=np.float64))
        share = (total + PRIOR_PAIRS * SHARE) / (len(found) + PRIOR_PAIRS)
    out = np.empty_like(evidence)
    for start in range(0, len(out), CHUNK):
        part = slice(start, start + CHUNK)
        out[part] = chance(share, part)
    return out, share


def _verdicts(
    spoken: Spoken, evidence: Single, chance: Single, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int8], BoolArray]:
    """Verdicts that fit together, and the order of the ancestors among them."""
    yes = (chance > CERTAIN_YES) & (evidence > SILENT)
    no = (chance < CERTAIN_NO) & (evidence < -LEAST_AGAINST)
    order = _grown(spoken, np.where(yes, evidence, np.float32(0)), 0.0, rng)
    kept = yes & order[spoken.a, spoken.d]
    verdicts = np.full((spoken.p, spoken.p), OPEN, dtype=np.int8)
    verdicts[spoken.a[no], spoken.d[no]] = NO
    verdicts[order] = OPEN
    verdicts[order.T] = NO
    verdicts[spoken.a[kept], spoken.d[kept]] = YES
    np.fill_diagonal(verdicts, NO)
    return verdicts, order
