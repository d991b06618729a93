"""How far each client is trusted: its agreement with what the others say without it.

For client k let R₋ₖ be the order assembled from the rest. Over the pairs on which k speaks and
the rest has an opinion, its balanced agreement is the mean of "k says yes where R₋ₖ has yes" and
"k says no where R₋ₖ has no". It is compared with the agreement that k's own log-odds promise:

    ratio = (agreement − ½) / (promised − ½),    w = clip((ratio / typical − 0.2) / 0.6, 0, 1),

with `typical` the median ratio of all clients, held in [½, 1]: where the rest is itself in error,
everybody agrees less. A client that claims certainty (promised = 1) among reliable ones has full
weight from an agreement of 0.9 and none below 0.6; one that says itself that it errs is not
punished for erring as often as it said. A client that is surer than it is right has at most the
weight that would make its log-odds honest (`_heat`). Clients that sent the same evidence have the
weight of one together (`copies`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.copies import find_copies, shares, with_copies
from jigsaw_crl.assembly.panel import SPEAKS, Claims, Panel
from jigsaw_crl.assembly.posterior.search import best_order
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import boolean_product
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.evidence.priors import MODEL_ERROR, PAIR_COST
from jigsaw_crl.fragment.fragment import YES

__all__ = ["Trust", "client_evidence", "lacks_common_cause", "pool", "weigh_clients"]

Agreement = tuple[float, float, float, float, float]


# Clients are left out one by one up to this many, in groups beyond: the cost stays bounded.
MOST_GROUPS = 32
# p² × groups above which fewer groups are used (at least 8), and without local search.
MOST_WORK, MOST_SEARCH = 8_000_000, 4_000_000
ROUNDS = 5
# Error rate that statements without one of their own are first given, and its floor.
FIRST_RATE, LEAST_RATE = 0.02, MODEL_ERROR
# From about a third of the weight lost, collusion can no longer be told from consensus.
DISAGREEMENT = 0.3
# Independent errors leave the median ratio near 1 (0.8 and more was seen at 30 % of errors); below
# this, parties of similar size contradict each other.
TRUCE = 0.7
# Factors on a client's log-odds that are tried, and what speaks before the data for log-odds that
# mean what they say.
HEATS = (1.0, 0.85, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.0)
AS_CLAIMED = 3.0


@dataclass(frozen=True, eq=False)
class Trust:
    """Weights and what they rest on.

    Parameters
    ----------
    weights : array, shape (n_clients,)
    agreement : array, shape (n_clients,)
        Balanced agreement with the others; nan where they have no pair in common.
    rate : float
        Estimated error rate of statements that came without log-odds.
    typical : float
        The median ratio of agreement to what was promised.
    copies : tuple of tuple of int
        Clients that sent the same evidence. Together they have the weight of one.
    """

    weights: FloatArray
    agreement: FloatArray
    rate: float
    typical: float = 1.0
    copies: tuple[tuple[int, ...], ...] = ()

    @property
    def _believed(self) -> FloatArray:
        """The weights before copies share one."""
        return np.asarray(self.weights / shares(len(self.weights), self.copies))

    @property
    def distrusted(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(self._believed < 0.5)]

    @property
    def disagreement(self) -> bool:
        """About a third of the clients contradicts the rest, or they all agree too little."""
        lost = float(np.sum(1.0 - self._believed))
        return lost >= DISAGREEMENT * len(self.weights) or self.typical < TRUCE


def client_evidence(claims: Claims, rate: float, n_scales: int) -> Pooled:
    """What a client says as evidence; a statement counts as wrong with probability `rate`."""
    if claims.evidence is not None:
        return claims.evidence
    strength = np.log((1.0 - rate) / rate)
    p = len(claims.members)
    stated = np.where(claims.certain == YES, strength, -strength)
    none = np.zeros(p, dtype=bool)
    return Pooled.of_client(
        np.broadcast_to(stated, (n_scales, p, p)), np.zeros((p, p)), none, claims.says
    )


def opinion(claims: Claims, rate: float, n_scales: int) -> FloatArray:
    """What a client says about each pair on its own: log-odds of a → d against all else.

    Evidence is given against "unrelated". Both directions may be more likely than that, and only
    one of them can hold. Statements say no to the other direction themselves.
    """
    if claims.evidence is None:
        return client_evidence(claims, rate, n_scales).log_odds()
    return np.asarray(claims.odds - np.logaddexp(0.0, claims.odds.T))


def pool(panel: Panel, weights: FloatArray, rate: float) -> Pooled:
    """Weighted sum of what all clients say."""
    everyone = np.arange(len(panel.claims))
    return Pooled.sum(panel.n_scales, len(panel.labels), parts(panel, weights, rate, everyone))


def parts(
    panel: Panel, weights: FloatArray, rate: float, clients: npt.NDArray[np.int64]
) -> Iterator[tuple[float, IntArray, Pooled]]:
    for k in clients.tolist():
        claims = panel.claims[k]
        yield float(weights[k]), claims.members, client_evidence(claims, rate, panel.n_scales)


def weigh_clients(panel: Panel, rng: np.random.Generator) -> Trust:
    """Trust in each client by leaving it out, in groups if there are many.

    Weights must agree with what they lead to: a fixpoint in a few damped rounds.
    """
    n = len(panel.claims)
    copies = tuple(find_copies(panel.fragments))
    stating = np.array([c.certain is not None for c in panel.claims])
    agreement, rate, typical = np.full(n, np.nan), FIRST_RATE, 1.0
    counts = shares(n, copies)
    if n < 3:
        # Two clients that disagree cannot tell which of them is wrong.
        return Trust(counts, agreement, rate, typical, copies)
    weights = _first_weights(panel) * counts
    for number in range(ROUNDS):
        ratio, errors, said, heat = np.empty((4, n))
        for k, found in _agreements(panel, weights, rate, copies, rng):
            agreement[k], ratio[k], errors[k], said[k], heat[k] = found
        fresh, typical = _weights(ratio)
        fresh = np.minimum(fresh, heat) * counts
        asked = float(fresh[stating] @ said[stating])
        change = float(np.abs(fresh - weights).max())
        weights = 0.5 * (weights + fresh) if number < ROUNDS - 1 else fresh
        if asked > 0:
            wrong = float(fresh[stating] @ errors[stating])
            rate = float(np.clip(wrong / asked, LEAST_RATE, 0.45))
        if change < 0.02 and number:
            weights = fresh
            break
    return Trust(weights, agreement, rate, typical, copies)


def _agreements(
    panel: Panel,
    weights: FloatArray,
    rate: float,
    copies: tuple[tuple[int, ...], ...],
    rng: np.random.Generator,
) -> Iterator[tuple[int, Agreement]]:
    """Number and agreement of every client, given weights and the error rate of statements."""
    n, p = len(panel.claims), len(panel.labels)
    n_groups = int(min(n, max(8, min(MOST_GROUPS, MOST_WORK // (p * p)))))
    search = int(p * p * n_groups <= MOST_SEARCH)
    groups = np.array_split(rng.permutation(n), n_groups)
    total = pool(panel, weights, rate)
    for group in groups:
        out = with_copies(group, copies)
        rest = total.minus(parts(panel, weights, rate, out)).log_odds()
        order = best_order(rest - PAIR_COST, rng, rounds=search)
        for k in group.tolist():
            claims = panel.claims[k]
            grid = np.ix_(claims.members, claims.members)
            weighs = claims.evidence is not None
            joined = lacks_common_cause(order, claims.members) if weighs else None
            others = _Others(order[grid], rest[grid], joined)
            yield k, _agreement_of(claims, others, rate, panel.n_scales)


def _first_weights(panel: Panel) -> FloatArray:
    """Where the rounds begin: how near each client is to the largest party.

    Clients are compared two by two (the correlation of what they say on shared pairs); the
    leading eigenvector of that matrix gathers the largest party that agrees within itself. Without
    it, two parties of similar size can settle in a truce where nobody is believed.
    """
    n, p = len(panel.claims), len(panel.labels)
    if n * p * p > 2 * MOST_WORK:
        return np.ones(n)
    said = np.zeros((n, p * p), dtype=np.float32)
    for k, c in enumerate(panel.claims):
        odds = opinion(c, FIRST_RATE, panel.n_scales)
        firm = np.sign(odds) * (np.abs(odds) > SPEAKS)
        said[k, (c.members[:, None] * p + c.members[None, :]).ravel()] = firm.ravel()
    spoke = np.abs(said)
    shared = np.maximum(spoke @ spoke.T, 1.0)
    mean = (said @ spoke.T) / shared
    spread = np.sqrt(np.maximum((1.0 - mean**2) * (1.0 - mean.T**2), 1e-6))
    alike = ((said @ said.T) / shared - mean * mean.T) / spread
    # Few shared pairs correlate by accident: five imagined ones without any correlation.
    alike *= shared / (shared + 5.0)
    np.fill_diagonal(alike, 0.0)
    leading = np.linalg.eigh((alike + alike.T) / 2.0)[1][:, -1].astype(np.float64)
    leading *= np.sign(leading.sum()) or 1.0
    # Against a firm member of that party: none below 0.3, full weight from 0.7.
    share = leading / max(float(np.quantile(leading, 0.75)), 1e-9)
    return np.clip((share - 0.3) / 0.4, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class _Others:
    """What all other clients say about the labels of one, shape (p, p) each.

    Parameters
    ----------
    order : array of bool
        The order that they imply.
    log_odds : array
        Their pooled log-odds.
    joined : array of bool or None
        Pairs with a common ancestor that the client lacks; None for one that states.
    """

    order: BoolArray
    log_odds: FloatArray
    joined: BoolArray | None


def _agreement_of(claims: Claims, others: _Others, rate: float, n_scales: int) -> Agreement:
    """Balanced agreement, its ratio to what was promised, errors, statements compared, `_heat`.

    Both nan when there is nothing to compare. A pair counts by how firmly the client speaks on it,
    |tanh(x/2)|, and only where the others imply an ancestor or speak against one, by how firmly.
    """
    mean, says = opinion(claims, rate, n_scales), claims.says
    theirs, direct, joined = others.order, others.log_odds, others.joined
    # Evidence for a pair that was too little for the others' order is no contradiction of it.
    known = says & ((direct < -1e-6) | theirs | theirs.T)
    right = (mean > 0) == theirs
    heat = 1.0
    if claims.evidence is not None and joined is not None:
        # Where the client lacks a common cause of the pair, it may see ancestry that is not there;
        # that it differs from clients that have the cause does not make it a bad one.
        heat = _heat(claims.odds, theirs, direct, known & known.T, joined)
        known &= right | ~joined
    firm = np.abs(np.tanh(mean / 2.0)) * known
    firm = firm * np.where(theirs | theirs.T, 1.0, np.abs(np.tanh(direct / 2.0)))
    sides = []
    for side in (theirs, ~theirs):
        size = float(firm[side].sum())
        if size > 0:
            sides.append((float(firm[side & right].sum()), size))
    compared = sum(size for _, size in sides)
    if compared < 1.0:
        return np.nan, np.nan, 0.0, 0.0, heat
    score = float(np.mean([_doubt(hits, size) for hits, size in sides]))
    promised = float((firm / (1.0 + np.exp(-np.abs(mean)))).sum() / compared)
    ratio = (score - 0.5) / max(promised - 0.5, 0.05)
    wrong = float((known & ~right).sum())
    return score, ratio, wrong, float(known.sum()), heat


def lacks_common_cause(order: BoolArray, members: IntArray) -> BoolArray:
    """Pairs of a client's labels with a common ancestor that the client lacks, shape (p, p)."""
    lacking = np.ones(len(order), dtype=bool)
    lacking[members] = False
    above = order[np.ix_(np.flatnonzero(lacking), members)]
    return np.asarray(boolean_product(above.T, above))


def _heat(
    x: FloatArray, theirs: BoolArray, direct: FloatArray, known: BoolArray, joined: BoolArray
) -> float:
    """The factor on a client's log-odds that makes them honest, at most 1.

    Of a pair, one of three things holds: a → d, d → a or neither. If the client is right with the
    probability that its log-odds claim, β = 1 is the most likely factor in

        Σ log P(what the others say | β x) ,    P(a → d) : P(d → a) : P(neither)
                                                = exp(β x_ad − c) : exp(β x_da − c) : 1 ,

    with c the prior cost of an ancestor pair. A client that is surer than it is right has a smaller
    one, also where it calls both directions likely. Pairs share the errors of lines, so that they
    count half; a "neither" of the others counts by how firm it is.
    """
    a, d = np.triu_indices(len(x), 1)
    x1, x2 = x[a, d], x[d, a]
    forward, backward = theirs[a, d], theirs[d, a]
    neither = ~(forward | backward)
    use = known[a, d] & ~(neither & joined[a, d] & (np.maximum(x1, x2) > 0))
    firm = np.tanh(np.minimum(-direct[a, d], -direct[d, a]) / 2.0)
    weight = 0.5 * np.where(neither, np.maximum(firm, 0.0), 1.0) * use
    x1, x2, weight = x1[use], x2[use], weight[use]
    held = np.where(forward[use], 0, np.where(backward[use], 1, 2))
    fit = []
    for beta in HEATS:
        states = np.stack([beta * x1 - PAIR_COST, beta * x2 - PAIR_COST, np.zeros_like(x1)])
        gain = states[held, np.arange(len(held))] - np.logaddexp.reduce(states, axis=0)
        fit.append(float(weight @ gain) - AS_CLAIMED * (1.0 - beta))
    return HEATS[int(np.argmax(fit))]


def _doubt(hits: float, size: float) -> float:
    """The share hits / size, plus half a standard error: a side with few pairs proves little."""
    share = (hits + 0.5) / (size + 1.0)
    return float(min(share + 0.5 * np.sqrt(share * (1.0 - share) / (size + 1.0)), 1.0))


def _weights(ratio: FloatArray) -> tuple[FloatArray, float]:
    """Weights from the ratios, and the median ratio.

    A client that cannot be compared keeps its full weight.
    """
    if np.isnan(ratio).all():
        return np.ones(len(ratio)), 1.0
    typical = float(np.nanmedian(ratio))
    scaled: FloatArray = ratio / np.clip(typical, 0.5, 1.0)
    weights = np.where(np.isnan(ratio), 1.0, np.clip((scaled - 0.2) / 0.6, 0.0, 1.0))
    return weights, typical
