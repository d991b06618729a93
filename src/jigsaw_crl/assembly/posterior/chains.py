"""How probable is each pair? Several chains through the posterior, run until they agree.

Labels are shuffled first, so that their order has no influence. Of a few labels all orders are
weighed instead (`enumeration`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from jigsaw_crl.assembly.posterior.agreement import Convergence, Halves
from jigsaw_crl.assembly.posterior.enumeration import FEW as ENUMERATED
from jigsaw_crl.assembly.posterior.enumeration import Enumeration
from jigsaw_crl.assembly.posterior.posterior import Posterior
from jigsaw_crl.assembly.posterior.search import best_order
from jigsaw_crl.assembly.posterior.starts import grow, likely, recombine
from jigsaw_crl.assembly.posterior.walk import (
    FACT,
    SETTLED,
    Chain,
    OneOf,
    Proposals,
    Weights,
    Words,
)
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["entailed", "sample_orders"]


# Chains; of many labels two for the first weights, one per core.
N_CHAINS, FIRST_CHAINS_OF_MANY = 4, 2
# Sweeps per half of a chain in the first stage. An error of 0.03 needs about 300 independent orders
# of all chains together, and neighbouring sweeps are not independent: further stages follow.
FIRST = 50
# Proposals over all chains and stages: within a minute on two cores for any number of labels. Half
# of them are bridges; what one costs, and how many labels it goes through, grow with the words of
# an order's rows (5 at 300 labels, 16 at 1,000).
BUDGET = 4e8
# With more labels than this, chains start where `grow` leads them, weights change once, and pairs
# on which chains differ are set aside.
FEW = 100
# How often weights follow the probabilities, and the change of a weight that does not matter. In
# studies of 15 to 25 labels the second change is mostly 0.
ROUNDS, STEADY = 3, 0.1
# Chains propose the pairs that might change where they start and, after a first walk (at most a
# share WARM of their budget), those that were seen to change: with a probability between MOVES and
# 1 − MOVES. The first weights of many labels have a share SHORT of the budget.
WARM, MOVES, SHORT = 0.1, 0.02, 0.15
# Orders that are kept to draw from, and the bytes that they may take.
KEPT, BYTES = 400, 64_000_000
# Proposals of one chain from which on threads save time.
THREADS = 1_000_000

# Probabilities of all pairs → the weights that follow, and the pairs on which chains must agree.
Doubts = Callable[[FloatArray], tuple[Weights, BoolArray]]


def sample_orders(
    evidence: Weights | FloatArray,
    rng: np.random.Generator,
    *,
    doubts: Doubts | None = None,
    start: BoolArray | None = None,
    first: int = FIRST,
    most: int | None = None,
) -> Posterior:
    """Probability of every ordered pair, from several chains run until they agree.

    Of a few labels all orders are weighed, and the probabilities are exact. Otherwise each stage
    doubles the sweeps that are recorded, and of many labels discards the earlier ones. Stages stop
    when the chains' halves agree (see `agreement`) or at `most` sweeps. Every stage proposes
    mostly the pairs that changed in the stage before. Weights that depend on the probabilities
    follow those of the first stage, which then begins anew, until they no longer change.

    Parameters
    ----------
    evidence : Weights, or array of shape (p, p)
        What an order is worth, or pooled log-odds E: see `Weights.of`.
    rng : numpy.random.Generator
    doubts : callable, optional
        The weights that follow from probabilities; by default those given stay.
    start : array of bool, shape (p, p), optional
        Where the first chain starts; the others start at different orders of high worth.
    first, most : int
        Sweeps per half in the first stage, and the largest number in any stage.
    """
    weights = Weights.of(evidence)
    p = len(weights)
    many, changes = p > FEW, 0 if doubts is None else ROUNDS
    if p <= ENUMERATED:
        return _enumerated(weights, doubts)
    shuffle = rng.permutation(p)
    orders = [] if start is None else [start[np.ix_(shuffle, shuffle)]]
    mean: FloatArray | None = None
    judged = ~np.eye(p, dtype=bool)
    while True:
        early = many and changes > 0
        number = FIRST_CHAINS_OF_MANY if early else N_CHAINS
        chains = _scattered(weights.shuffled(shuffle), number, orders, rng)
        if mean is None:
            mean = _recorded(chains, min(first, _longest(chains, WARM)), parts=1).mean()
        _focus(chains, mean)
        longest = _longest(chains, SHORT if early else 1.0) if most is None else most
        # One stage, if there is no time for another of twice the length.
        half = first if early or longest >= 2 * first else longest
        half = min(half, longest)
        _recorded(chains, max(half // 4, 1), parts=1)
        record = _recorded(chains, half)
        if doubts is None or changes == 0:
            break
        new, judged = doubts(_in_order(record.mean(), shuffle))
        if not many and _change(weights, new) < STEADY:
            break
        weights, changes = new, 0 if many else changes - 1
        # Of many labels, chains that went on would stay near where the first weights led them.
        orders = [] if many else [chain.matrix() for chain in chains]
        mean = None if many else record.mean()
    asked = judged[np.ix_(shuffle, shuffle)] if many else None
    convergence = record.convergence(asked)
    while not convergence.converged and 2 * half <= longest:
        _focus(chains, record.mean())
        half *= 2
        record = _recorded(chains, half) if many else record.then(_recorded(chains, half, parts=1))
        convergence = record.convergence(asked)
    pairs = sorted((int(shuffle[a]), int(shuffle[d])) for a, d in convergence.disputed)
    return Posterior(
        probability=_in_order(record.mean(), shuffle),
        chains=np.array([_in_order(alone, shuffle) for alone in record.alone()]),
        convergence=replace(convergence, disputed=tuple(pairs)),
        orders=record.kept(),
        listed=shuffle,
    )


def _in_order(shuffled: FloatArray, shuffle: IntArray) -> FloatArray:
    """A matrix over shuffled labels as one over the labels themselves."""
    out = np.empty_like(shuffled)
    out[np.ix_(shuffle, shuffle)] = shuffled
    return out


def _change(one: Weights, other: Weights) -> float:
    """The largest difference between two weights of a pair; beyond `SETTLED` none matters."""
    parts = ((one.implied, other.implied), (one.direct, other.direct))
    clipped = [np.clip(x, -SETTLED, SETTLED) - np.clip(y, -SETTLED, SETTLED) for x, y in parts]
    return float(np.abs(clipped).max())


def entailed(
    yes: BoolArray, no: BoolArray, one_of: Sequence[OneOf], rng: np.random.Generator
) -> Posterior:
    """The prior over the orders that agree with what is certain.

    Parameters
    ----------
    yes, no : array of bool, shape (p, p)
        Pairs that every order has, and that none has.
    one_of : sequence of (tuple of int, int)
        Candidates, one of which is an ancestor of the last.
    rng : numpy.random.Generator
    """
    weights = Weights.of(np.where(yes, FACT, np.where(no, -FACT, 0.0)))
    opened = tuple((names, d) for names, d in one_of if not yes[list(names), d].any())
    start = None if (yes & yes.T).any() else yes
    return sample_orders(replace(weights, one_of=opened), rng, start=start)


def _enumerated(weights: Weights, doubts: Doubts | None) -> Posterior:
    """All orders, weighed."""
    found = Enumeration.of(weights)
    for _ in range(0 if doubts is None else ROUNDS):
        assert doubts is not None
        found = Enumeration.of(doubts(found.probability())[0])
    return Posterior(
        probability=found.probability(),
        chains=found.probability()[None],
        convergence=Convergence(True, 1.0, 0.0, 0, 0),
        orders=found.orders,
        listed=np.arange(len(weights)),
        shares=found.posterior,
    )


def _scattered(
    weights: Weights, n: int, starts: list[BoolArray], rng: np.random.Generator
) -> list[Chain]:
    """Chains from different orders; of few labels from greedy orders of distorted evidence."""
    # Imported here because it loads the compiler.
    from jigsaw_crl.base.bitsets import greedy_order

    orders = starts[:n]
    if len(weights) > FEW:
        with ThreadPoolExecutor(max_workers=2) as pool:
            orders += pool.map(lambda own: grow(weights, own), rng.spawn(n - len(orders)))
        orders = recombine(orders, weights)
    elif not orders:
        orders = [best_order(weights, rng)]
    direct = weights.direct
    for number in range(len(orders), n):
        noise = rng.normal(scale=2.0 * number, size=direct.shape)
        orders.append(greedy_order(direct + noise * (np.abs(direct) < SETTLED)))
    moving = np.any([x != orders[0] for x in orders], axis=0)
    for order in orders:
        moving |= likely(order, weights)
    proposals = Proposals.among(moving)
    return [
        Chain.at(order, weights, rng, proposals=proposals, score=weights.score(order))
        for order in orders
    ]


def _recorded(chains: list[Chain], half: int, parts: int = 2) -> Halves:
    """Walk every chain `parts` times for `half` sweeps."""
    p, words = chains[0].up.shape
    most = max(min(KEPT, BYTES // chains[0].up.nbytes) // (2 * len(chains)), 1)

    def run(chain: Chain) -> tuple[FloatArray, FloatArray, Words]:
        counts = np.zeros((p, p), dtype=np.int32)
        orders = np.empty((min(half, most), p, words), dtype=np.uint64)
        trace = chain.walk(half, counts=counts, kept=orders)
        return trace, counts / half, orders

    with ThreadPoolExecutor(max_workers=2) as pool:
        few = half * chains[0].proposals.number < THREADS
        walked = [x for _ in range(parts) for x in (map if few else pool.map)(run, chains)]
    return Halves(*map(list, zip(*walked, strict=True)))


def _focus(chains: list[Chain], mean: FloatArray) -> None:
    """From now on the chains propose mostly the pairs that changed."""
    proposals = Proposals.among((mean > MOVES) & (mean < 1.0 - MOVES))
    for chain in chains:
        chain.proposals = proposals


def _longest(chains: list[Chain], share: float = 1.0) -> int:
    """Sweeps per half in the last stage, for a budget of proposals over all chains and stages."""
    words = chains[0].up.shape[1]
    budget = share * BUDGET * (5 / max(words, 5)) ** 1.9
    return int(np.clip(budget / (3 * len(chains) * chains[0].proposals.number), 10, 16_000))
