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

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.copies import find_copies
from jigsaw_crl.assembly.panel import Claims, Panel
from jigsaw_crl.assembly.posterior.doubts import INVISIBLE
from jigsaw_crl.assembly.posterior.rounds import VISIBLE_SHARES, OrderModel
from jigsaw_crl.assembly.posterior.weights import (
    Agreement,
    Others,
    Trust,
    agreement_of,
    client_evidence,
    settle,
)
from jigsaw_crl.assembly.verdict import (
    CERTAIN_NO,
    CERTAIN_YES,
    LEAST_AGAINST,
    NO,
    OPEN,
    SILENT,
    YES,
)
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.spool import kept_like
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.evidence.priors import PAIR_COST

__all__ = ["Pairwise", "evidence_of", "judge_pairs"]

Single = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]

# Pairs that are worked on at once: bounds the memory of intermediate arrays.
CHUNK = 1 << 20
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


@dataclass(frozen=True, eq=False)
class _Spoken:
    """The ordered pairs that some client speaks about, numbered.

    Parameters
    ----------
    number : array of int32, shape (p, p)
        -1 where nobody speaks.
    a, d : array of int32, shape (n,)
    """

    number: npt.NDArray[np.int32]
    a: npt.NDArray[np.int32]
    d: npt.NDArray[np.int32]

    @classmethod
    def of(cls, p: int, claims: Iterable[Claims]) -> _Spoken:
        spoken = np.zeros((p, p), dtype=bool)
        for c in claims:
            spoken[np.ix_(c.members, c.members)] |= c.says
        a, d = (x.astype(np.int32) for x in np.nonzero(spoken))
        number = np.full((p, p), -1, dtype=np.int32)
        number[a, d] = np.arange(len(a), dtype=np.int32)
        return cls(number, a, d)

    def numbers(self, claims: Claims) -> npt.NDArray[np.int32]:
        """The pairs about which a client speaks, row by row of what it says."""
        return self.number[np.ix_(claims.members, claims.members)][claims.says]

    def table(self, values: Single, other: float) -> Single:
        """Values of the numbered pairs as a matrix, with another value elsewhere."""
        out = np.full(self.number.shape, other, dtype=np.float32)
        out[self.a, self.d] = values
        return out


class _Hearing:
    """All clients' evidence about the pairs that some of them speak about."""

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.claims = kept_like(panel.fragments, map(_slim, panel.claims))
        self.spoken = _Spoken.of(len(panel.labels), self.claims)

    def add(self, total: Pooled, claims: Claims, weight: float, rate: float, sign: int = 1) -> None:
        evidence = client_evidence(claims, rate, self.panel.n_scales).at(claims.says)
        total.add_at((self.spoken.numbers(claims),), evidence, weight, sign)

    def pooled(self, weights: FloatArray, rate: float) -> Pooled:
        """Weighted sum of what all clients say."""
        n_scales = self.panel.n_scales
        total = Pooled.empty(n_scales, (len(self.spoken.a),), np.float32)
        for claims, weight in zip(self.claims, weights.tolist(), strict=True):
            self.add(total, claims, weight, rate)
        return total


def _slim(claims: Claims) -> Claims:
    """What the passes need, in single precision."""
    evidence = claims.evidence
    if evidence is not None:
        evidence = replace(
            evidence,
            ancestor=evidence.ancestor.astype(np.float32),
            leaning=evidence.leaning.astype(np.float32),
            lean=evidence.lean.astype(np.float32),
        )
    nothing = np.zeros((0, 0), dtype=bool)
    return replace(claims, bayes=None, log_open=None, evidence=evidence, together=nothing)


def _log_odds(
    total: Pooled, shares: list[float] | None = None, leans: FloatArray | None = None
) -> Single:
    """`Pooled.log_odds` of numbered pairs, a part at a time."""
    out = np.empty(len(total.lean), dtype=np.float32)
    for start in range(0, len(out), CHUNK):
        part = slice(start, start + CHUNK)
        out[part] = total.at(part).log_odds(shares, None if leans is None else leans[part])
    return out


# -- trust ----------------------------------------------------------------------------------------


def _weigh(hearing: _Hearing, rng: np.random.Generator) -> Trust:
    """Trust in each client: its agreement with all others, without it and its copies."""
    copies = tuple(find_copies(hearing.panel.fragments))
    twins = {k: [j for j in found if j != k] for found in copies for k in found}

    def measure(weights: FloatArray, rate: float) -> Iterator[tuple[int, Agreement]]:
        total = hearing.pooled(weights, rate)
        evidence = _log_odds(total)
        _, share = _probabilities(hearing.spoken, evidence)
        cost = float(np.log((1.0 - 2.0 * share) / share))
        order = _grown(hearing.spoken, evidence - np.float32(cost), -cost, rng)
        above = _packed_ancestors(order)
        for k, claims in enumerate(hearing.claims):
            out = [(hearing.claims[j], float(weights[j])) for j in twins.get(k, ())]
            for one, weight in out:
                hearing.add(total, one, weight, rate, sign=-1)
            rest = total.at(hearing.spoken.numbers(claims))
            for one, weight in out:
                hearing.add(total, one, weight, rate)
            own = client_evidence(claims, rate, hearing.panel.n_scales).at(claims.says)
            rest.add_at((slice(None),), own, float(weights[k]), sign=-1)
            direct = np.zeros(claims.says.shape)
            direct[claims.says] = rest.log_odds()
            theirs = (direct > cost) & (direct > direct.T)
            others = Others(theirs, direct, _joined(above, claims.members))
            yield k, agreement_of(claims, others, rate, hearing.panel.n_scales)

    stating = np.array([c.certain is not None for c in hearing.claims])
    return settle(stating, copies, lambda: np.ones(len(stating)), measure, ROUNDS)


def _grown(spoken: _Spoken, weight: Single, other: float, rng: np.random.Generator) -> BoolArray:
    """The order that greedy insertion finds, of numbered pairs with these weights.

    Labels are shuffled, so that ties are broken at random and not by position.
    """
    from jigsaw_crl.base.bitsets import greedy_order  # loads the compiler

    place = rng.permutation(len(spoken.number))
    table = np.full(spoken.number.shape, other, dtype=np.float32)
    table[place[spoken.a], place[spoken.d]] = weight
    return greedy_order(table)[np.ix_(place, place)]


def _packed_ancestors(order: BoolArray) -> Words:
    """The ancestors of every label as bits, shape (p, words)."""
    from jigsaw_crl.base.bitsets import pack  # loads the compiler

    return pack(order.T)


def _joined(above: Words, members: IntArray) -> BoolArray:
    """Pairs of a client's labels with a common ancestor that the client lacks."""
    hidden = np.ones((1, 64 * above.shape[1]), dtype=bool)
    hidden[0, members] = False
    mask = np.packbits(hidden, axis=1, bitorder="little").view(np.dtype("<u8"))
    mine = above[members] & mask.astype(above.dtype)
    return np.asarray((mine[:, None] & mine).any(axis=2))


# -- verdicts -------------------------------------------------------------------------------------


def judge_pairs(panel: Panel, rng: np.random.Generator) -> Pairwise:
    """Weights, probabilities and verdicts of all pairs."""
    hearing = _Hearing(panel)
    trust = _weigh(hearing, rng)
    evidence = _evidence(hearing, trust.weights, trust.rate)
    chance, share = _probabilities(hearing.spoken, evidence)
    verdicts, order = _verdicts(hearing.spoken, evidence, chance, rng)
    log_odds: Any = hearing.spoken.table(evidence, 0.0)
    probability: Any = hearing.spoken.table(chance, 0.0)
    return Pairwise(trust, log_odds, probability, verdicts, order, share)


def evidence_of(
    panel: Panel, trust: FloatArray, rate: float, probability: FloatArray | None
) -> FloatArray:
    """Pooled log-odds of every pair, shape (p, p); all doubts applied where orders are sampled."""
    if not panel.many:
        return OrderModel.of(panel, trust, rate).evidence(probability)
    hearing = _Hearing(panel)
    out: Any = hearing.spoken.table(_evidence(hearing, trust, rate), 0.0)
    return cast(FloatArray, out)


def _evidence(hearing: _Hearing, weights: FloatArray, rate: float) -> Single:
    """Pooled log-odds; a single direction counts against a label without a likely ancestor."""
    spoken, missed, n = hearing.spoken, hearing.panel.missed, hearing.panel.n_scales
    visible = VISIBLE_SHARES if len(VISIBLE_SHARES) == n else (1.0 / n,) * n
    shares = [*(v * (1.0 - INVISIBLE) for v in visible), INVISIBLE]
    leans = missed.leans_of(spoken.a, spoken.d)
    evidence = _log_odds(hearing.pooled(weights, rate), shares, leans)
    del leans
    likely = np.zeros(len(hearing.panel.labels), dtype=bool)
    likely[spoken.d[evidence > PAIR_COST]] = True
    against = np.where(likely, 0.0, np.minimum(missed.ancestry, 0.0)).astype(np.float32)
    return np.asarray(evidence + against[spoken.d])


def _probabilities(spoken: _Spoken, evidence: Single) -> tuple[Single, float]:
    """Probability of each numbered pair, and π; both directions and "neither" sum to one."""
    reverse = spoken.number[spoken.d, spoken.a]
    other = np.where(reverse < 0, np.float32(0), evidence[reverse])

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
    spoken: _Spoken, evidence: Single, chance: Single, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int8], BoolArray]:
    """Verdicts that fit together, and the order of the ancestors among them."""
    yes = (chance > CERTAIN_YES) & (evidence > SILENT)
    no = (chance < CERTAIN_NO) & (evidence < -LEAST_AGAINST)
    order = _grown(spoken, np.where(yes, evidence, np.float32(0)), 0.0, rng)
    kept = yes & order[spoken.a, spoken.d]
    verdicts = np.full(spoken.number.shape, OPEN, dtype=np.int8)
    verdicts[spoken.a[no], spoken.d[no]] = NO
    verdicts[order] = OPEN
    verdicts[order.T] = NO
    verdicts[spoken.a[kept], spoken.d[kept]] = YES
    np.fill_diagonal(verdicts, NO)
    return verdicts, order
