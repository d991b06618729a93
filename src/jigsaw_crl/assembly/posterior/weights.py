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
from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.assembly.evidence import SPEAKS, Claims, Evidence
from jigsaw_crl.assembly.posterior.search import best_order
from jigsaw_crl.assembly.use import Use
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import boolean_product
from jigsaw_crl.evidence.priors import MODEL_ERROR, PAIR_COST

__all__ = ["Trust", "lacks_common_cause", "weigh_clients"]

Agreement = tuple[float, float, float, float, float]


# Clients are left out one by one up to this many, in groups beyond: the cost stays bounded.
MOST_GROUPS = 32
# p² × groups above which fewer groups are used (at least 8), and without local search.
MOST_WORK, MOST_SEARCH = 8_000_000, 4_000_000
ROUNDS = 5
# Floor of the error rate of statements without one of their own.
LEAST_RATE = MODEL_ERROR
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
    """A use with weights, and what they rest on.

    Parameters
    ----------
    use : Use
    agreement : array, shape (n_clients,)
        Balanced agreement with the others; nan where they have no pair in common.
    typical : float
        The median ratio of agreement to what was promised.
    """

    use: Use
    agreement: FloatArray
    typical: float = 1.0

    @property
    def _believed(self) -> FloatArray:
        """The weights before copies share one."""
        return np.asarray(self.use.weights / self.use.shares)

    @property
    def distrusted(self) -> list[int]:
        return [int(k) for k in np.flatnonzero(self._believed < 0.5)]

    @property
    def disagreement(self) -> bool:
        """About a third of the clients contradicts the rest, or they all agree too little."""
        lost = float(np.sum(1.0 - self._believed))
        return lost >= DISAGREEMENT * len(self._believed) or self.typical < TRUCE


def weigh_clients(evidence: Evidence, rng: np.random.Generator) -> Trust:
    """Trust in each client by leaving it out, in groups if there are many.

    Weights agree with what they lead to: a fixpoint in a few damped rounds.
    """
    n, use = len(evidence.claims), evidence.use
    agreement, typical, counts = np.full(n, np.nan), 1.0, use.shares
    if n < 3:
        # Two clients that disagree cannot tell which of them is wrong.
        return Trust(use, agreement, typical)
    weights, rate = _first_weights(evidence) * counts, use.rate
    stating = np.array([c.certain is not None for c in evidence.claims])
    for number in range(ROUNDS):
        ratio, errors, said, heat = np.empty((4, n))
        use = replace(use, weights=weights, rate=rate)
        if stating.any() and rate != evidence.use.rate:
            evidence = Evidence.of(evidence.panel, use)
        for k, found in _measured(evidence.reweighed(use), rng):
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
    return Trust(replace(use, weights=weights, rate=rate), agreement, typical)


def _measured(evidence: Evidence, rng: np.random.Generator) -> Iterator[tuple[int, Agreement]]:
    """How each client agrees with the others, which are assembled without it."""
    n, p = len(evidence.claims), len(evidence.labels)
    n_groups = int(min(n, max(8, min(MOST_GROUPS, MOST_WORK // (p * p)))))
    search = int(p * p * n_groups <= MOST_SEARCH)
    for group in np.array_split(rng.permutation(n), n_groups):
        out = {j for k in group.tolist() for j in evidence.use.with_copies(k)}
        rest = evidence.without(sorted(out)).log_odds()
        order = best_order(rest - PAIR_COST, rng, rounds=search)
        for k in group.tolist():
            claims = evidence.claims[k]
            grid = np.ix_(claims.members, claims.members)
            joined = lacks_common_cause(order, claims.members) if claims.bayes is not None else None
            yield k, agreement_of(claims, Others(order[grid], rest[grid], joined))


def _first_weights(evidence: Evidence) -> FloatArray:
    """Where the rounds begin: how near each client is to the largest party.

    Clients are compared two by two (the correlation of what they say on shared pairs); the
    leading eigenvector of that matrix gathers the largest party that agrees within itself. Without
    it, two parties of similar size can settle in a truce where nobody is believed.
    """
    n, p = len(evidence.claims), len(evidence.labels)
    if n * p * p > 2 * MOST_WORK:
        return np.ones(n)
    said = np.zeros((n, p * p), dtype=np.float32)
    for k, c in enumerate(evidence.claims):
        firm = np.sign(c.opinion) * (np.abs(c.opinion) > SPEAKS)
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
class Others:
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


def agreement_of(claims: Claims, others: Others) -> Agreement:
    """Balanced agreement, its ratio to what was promised, errors, statements compared, `_heat`.

    Both nan when there is nothing to compare. A pair counts by how firmly the client speaks on it,
    |tanh(x/2)|, and only where the others imply an ancestor or speak against one, by how firmly.
    """
    mean, says = claims.opinion, claims.says
    theirs, direct, joined = others.order, others.log_odds, others.joined
    # Evidence for a pair that was too little for the others' order is no contradiction of it.
    known = says & ((direct < -1e-6) | theirs | theirs.T)
    right = (mean > 0) == theirs
    heat = 1.0
    if joined is not None:
        # Where the client lacks a common cause of the pair, it may see ancestry that is not there;
        # that it differs from clients that have the cause does not make it a bad one.
        heat = _heat(
            np.where(says, claims.log_factor, 0.0), theirs, direct, known & known.T, joined
        )
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
