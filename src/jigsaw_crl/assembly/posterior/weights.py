"""How far each client is trusted: the factor that makes its log-odds honest.

For client k let R₋ₖ be the order assembled from the rest. If k is right as often as its log-odds
claim, a factor of 1 fits best to what the rest says; a client that is surer than it is right has a
smaller one (`_heat`), and one that contradicts the rest has none. The order of the rest depends on
the weights in turn, so that a few rounds are needed. Clients that sent the same evidence have the
weight of one together (`copies`).

Two further mechanisms were tried and left out: weights from each client's balanced agreement, and
a start from the largest party that agrees within itself. See `docs/decisions/doubts.md`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.copies import find_copies, shares, with_copies
from jigsaw_crl.assembly.panel import Claims, Panel
from jigsaw_crl.assembly.posterior.search import best_order
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import boolean_product
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.evidence.priors import MODEL_ERROR, PAIR_COST
from jigsaw_crl.fragment.fragment import YES

__all__ = [
    "Agreement",
    "Others",
    "Trust",
    "agreement_of",
    "client_evidence",
    "lacks_common_cause",
    "pool",
    "settle",
    "weigh_clients",
]

# The factor on a client's log-odds, and how many of its statements the rest contradicts, of how
# many.
Agreement = tuple[float, float, float]


# Clients are left out one by one up to this many, in groups beyond: the cost stays bounded.
MOST_GROUPS = 32
# p² × groups above which fewer groups are used (at least 8), and without local search.
MOST_WORK, MOST_SEARCH = 8_000_000, 4_000_000
ROUNDS = 5
# Error rate that statements without one of their own are first given, and its floor.
FIRST_RATE, LEAST_RATE = 0.02, MODEL_ERROR
# From about a third of the clients on, collusion can no longer be told from consensus.
DISAGREEMENT = 0.3
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
    rate : float
        Estimated error rate of statements that came without log-odds.
    copies : tuple of tuple of int
        Clients that sent the same evidence. Together they have the weight of one.
    """

    weights: FloatArray
    rate: float
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
        """About a third of the clients contradicts the rest."""
        return len(self.distrusted) >= DISAGREEMENT * len(self.weights)


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
    """Trust in each client by leaving it out, in groups if there are many."""
    n, p = len(panel.claims), len(panel.labels)
    copies = tuple(find_copies(panel.fragments))
    n_groups = int(min(n, max(8, min(MOST_GROUPS, MOST_WORK // (p * p)))))
    search = int(p * p * n_groups <= MOST_SEARCH)

    def measure(weights: FloatArray, rate: float) -> Iterator[tuple[int, Agreement]]:
        groups = np.array_split(rng.permutation(n), n_groups)
        total = pool(panel, weights, rate)
        for group in groups:
            out = with_copies(group, copies)
            rest = total.minus(parts(panel, weights, rate, out)).log_odds()
            order = best_order(rest - PAIR_COST, rng, rounds=search)
            for k in group.tolist():
                claims = panel.claims[k]
                grid = np.ix_(claims.members, claims.members)
                others = Others(order[grid], rest[grid], lacks_common_cause(order, claims.members))
                yield k, agreement_of(claims, others, rate, panel.n_scales)

    stating = np.array([c.certain is not None for c in panel.claims])
    return settle(stating, copies, measure)


def settle(
    stating: BoolArray,
    copies: tuple[tuple[int, ...], ...],
    measure: Callable[[FloatArray, float], Iterable[tuple[int, Agreement]]],
    rounds: int = ROUNDS,
) -> Trust:
    """Weights that agree with what they lead to: a fixpoint in a few rounds.

    Parameters
    ----------
    stating : array of bool, shape (n_clients,)
        Clients that state rather than weigh.
    copies : tuple of tuple of int
        Clients that sent the same evidence.
    measure : callable
        Number and agreement of every client, given weights and the error rate of statements.
    rounds : int
    """
    n = len(stating)
    rate, counts = FIRST_RATE, shares(n, copies)
    weights = counts
    # Two clients that disagree cannot tell which of them is wrong.
    for number in range(rounds if n > 2 else 0):
        heat, errors, said = np.empty((3, n))
        for k, found in measure(weights, rate):
            heat[k], errors[k], said[k] = found
        fresh = heat * counts
        change = float(np.abs(fresh - weights).max())
        asked = float(fresh[stating] @ said[stating])
        if asked > 0:
            wrong = float(fresh[stating] @ errors[stating])
            rate = float(np.clip(wrong / asked, LEAST_RATE, 0.45))
        weights = fresh
        if change < 0.02 and (number > 0 or not stating.any()):
            break
    return Trust(weights, rate, copies)


@dataclass(frozen=True, eq=False)
class Others:
    """What all other clients say about the labels of one, shape (p, p) each.

    Parameters
    ----------
    order : array of bool
        The order that they imply.
    log_odds : array
        Their pooled log-odds.
    joined : array of bool
        Pairs with a common ancestor that the client lacks. It may see ancestry there that is not;
        that it differs from clients that have the cause does not make it a bad one.
    """

    order: BoolArray
    log_odds: FloatArray
    joined: BoolArray


def agreement_of(claims: Claims, others: Others, rate: float, n_scales: int) -> Agreement:
    """What the others say of a client; 1, 0 and 0 when there is nothing to compare."""
    weighs = claims.evidence is not None
    x = claims.odds if weighs else client_evidence(claims, rate, n_scales).log_odds()
    theirs = others.order
    # Evidence for a pair that was too little for the others' order is no contradiction of it.
    known = claims.says & ((others.log_odds < -1e-6) | theirs | theirs.T)
    wrong = known & ((x > 0) != theirs)
    return _heat(x, others, known & known.T), float(wrong.sum()), float(known.sum())


def lacks_common_cause(order: BoolArray, members: IntArray) -> BoolArray:
    """Pairs of a client's labels with a common ancestor that the client lacks, shape (p, p)."""
    lacking = np.ones(len(order), dtype=bool)
    lacking[members] = False
    above = order[np.ix_(np.flatnonzero(lacking), members)]
    return np.asarray(boolean_product(above.T, above))


def _heat(x: FloatArray, others: Others, known: BoolArray) -> float:
    """The factor on a client's log-odds that makes them honest, at most 1.

    Of a pair, one of three things holds: a → d, d → a or neither. If the client is right with the
    probability that its log-odds claim, β = 1 is the most likely factor in

        Σ log P(what the others say | β x) ,    P(a → d) : P(d → a) : P(neither)
                                                = exp(β x_ad − c) : exp(β x_da − c) : 1 ,

    with c the prior cost of an ancestor pair. A client that is surer than it is right has a smaller
    one, also where it calls both directions likely. Pairs share the errors of lines, so that they
    count half; a "neither" of the others counts by how firm it is.
    """
    theirs, direct, joined = others.order, others.log_odds, others.joined
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
