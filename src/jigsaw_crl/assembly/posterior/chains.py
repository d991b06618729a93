"""How probable is each pair? Several chains through the posterior, run until they agree.

Labels are shuffled first, so that their order has no influence. Of a few labels all orders are
weighed instead (`enumeration`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from jigsaw_crl.assembly.posterior.agreement import Convergence, Record
from jigsaw_crl.assembly.posterior.enumeration import FEW, Enumeration
from jigsaw_crl.assembly.posterior.posterior import Posterior
from jigsaw_crl.assembly.posterior.search import MANY, grow, likely
from jigsaw_crl.assembly.posterior.starts import recombine
from jigsaw_crl.assembly.posterior.walk import BRIDGES, FACT, SETTLED, Chain, OneOf, Weights, Words
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.terminal import counted

__all__ = ["entailed", "sample_orders"]

Each = Callable[..., Iterable[Any]]

# Chains, and of many labels two for the first weights, one per core.
N_CHAINS, FIRST_OF_MANY = 4, 2
# Of up to so many labels a walk takes less time than handing it to a thread.
ALONE = 16
# Sweeps per half of a chain in the first stage. An error of 0.03 needs about 300 independent orders
# of all chains together, and neighbouring sweeps are not independent: further stages follow.
FIRST = 50
# Bridges over all chains and stages: about a minute on two cores at 1,000 labels. What one costs,
# and how many labels it goes through, grow with the words of an order's rows (16 at 1,000 labels).
BUDGET = 1e9
# How often weights follow the probabilities, and the change of a weight that does not matter.
# A third time, and walks of twice the length between, changed E1 by .001 (96 worlds).
ROUNDS, STEADY = 2, 0.1
# Chains propose the pairs that might change where they start and, after a first walk, those that
# were seen to change: with a probability between MOVES and 1 − MOVES.
MOVES = 0.02
# Orders that are kept to draw from, and the bytes that they may take.
KEPT, BYTES = 400, 64_000_000


def sample_orders(
    weights: Weights,
    rng: np.random.Generator,
    *,
    doubts: Callable[[FloatArray], Weights] | None = None,
    start: BoolArray | None = None,
    first: int = FIRST,
    most: int | None = None,
) -> Posterior:
    """Probability of every ordered pair, from several chains run until they agree.

    Of a few labels all orders are weighed, and the probabilities are exact. Otherwise chains walk a
    little; weights that depend on the probabilities follow what was found, until they no longer
    change, and the chains go on from where they are. (Of many labels weights change once, and
    chains start anew: they would stay near where the first weights led them.) Then every stage
    doubles the sweeps that are recorded (of many labels it discards the earlier ones), and proposes
    the bridges of pairs that changed before, until the chains' halves agree (see `agreement`) or
    there are `most` sweeps in a half.

    Parameters
    ----------
    weights : Weights
    rng : numpy.random.Generator
    doubts : callable, optional
        Probabilities of all pairs → the weights that follow; by default those given stay.
    start : array of bool, shape (p, p), optional
        Where the first chain starts; the others start at different orders of high worth.
    first, most : int
        Sweeps per half in the first stage, and the largest number in any stage.
    """
    p = len(weights)
    if p <= FEW:
        return _enumerated(weights, doubts)
    many, changes = p > MANY, 0 if doubts is None else ROUNDS
    shuffle = rng.permutation(p)
    orders = [] if start is None else [start[np.ix_(shuffle, shuffle)]]
    with ThreadPoolExecutor(max_workers=2) as pool:
        each: Each = pool.map if p > ALONE else map
        while True:
            number = FIRST_OF_MANY if many and changes > 0 else N_CHAINS
            chains = _scattered(weights.shuffled(shuffle), number, orders, rng, each)
            longest = _longest(chains) if most is None else most
            short = min(first, longest) // (2 if many else 4) + 1
            mean = _recorded(chains, short, 1, each).mean()
            if doubts is None or changes == 0:
                break
            new = doubts(_in_order(mean, shuffle))
            changes = 0 if many or _change(weights, new) < STEADY else changes - 1
            weights, orders = new, [] if many else [chain.matrix() for chain in chains]
        _focus(chains, mean)
        half = min(first, longest)
        record = _recorded(chains, half, 2, each)
        convergence = record.convergence()
        while not convergence.converged and 2 * half <= longest:
            _focus(chains, record.mean())
            half *= 2
            # Of many labels, chains still climb in the stages before.
            record = (
                _recorded(chains, half, 2, each)
                if many
                else record.then(_recorded(chains, half, 1, each))
            )
            convergence = record.convergence()
    pairs = sorted((int(shuffle[a]), int(shuffle[d])) for a, d in convergence.disputed)
    return Posterior(
        probability=_in_order(record.mean(), shuffle),
        chains=np.array([_in_order(alone, shuffle) for alone in record.alone()]),
        convergence=replace(convergence, disputed=tuple(pairs)),
        orders=record.orders.reshape(-1, *chains[0].up.shape),
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
    opened = tuple((names, d) for names, d in one_of if not yes[list(names), d].any())
    certain = np.where(yes, FACT, np.where(no, -FACT, 0.0))
    start = None if (yes & yes.T).any() else yes
    return sample_orders(Weights.of(certain, one_of=opened), rng, start=start)


def _enumerated(weights: Weights, doubts: Callable[[FloatArray], Weights] | None) -> Posterior:
    """All orders, weighed."""
    found = Enumeration.of(weights)
    for _ in range(0 if doubts is None else ROUNDS):
        assert doubts is not None
        found = Enumeration.of(doubts(found.probability()))
    return Posterior(
        probability=found.probability(),
        chains=found.probability()[None],
        convergence=Convergence(True, 1.0, 0.0, 0, 0),
        orders=found.orders,
        listed=np.arange(len(weights)),
        shares=found.posterior,
    )


def _scattered(
    weights: Weights,
    n: int,
    orders: list[BoolArray],
    rng: np.random.Generator,
    each: Each,
) -> list[Chain]:
    """Chains from the given orders, and from others of high worth."""
    # Imported here because it loads the compiler.
    from jigsaw_crl.base.bitsets import greedy_order

    if len(weights) > MANY:
        own = rng.spawn(n - len(orders))
        orders = recombine([*orders, *each(lambda r: grow(weights, r), own)], weights)
    direct = weights.direct
    for number in range(len(orders), n):
        noise = rng.normal(scale=2.0 * number, size=direct.shape)
        orders = [*orders, greedy_order(direct + noise * (np.abs(direct) < SETTLED))]
    moving = np.any([x != orders[0] for x in orders], axis=0)
    for order in orders:
        moving |= likely(order, weights)
    return [
        Chain.at(order, weights, rng, moving=moving, score=weights.score(order)) for order in orders
    ]


def _recorded(chains: list[Chain], half: int, halves: int, each: Each) -> Record:
    """Walk every chain `halves` times for `half` sweeps."""
    p, words = chains[0].up.shape
    most = max(min(KEPT, BYTES // chains[0].up.nbytes) // (2 * len(chains)), 1)

    def run(chain: Chain) -> tuple[FloatArray, FloatArray, Words]:
        counts = np.zeros((p, p), dtype=np.int32)
        orders = np.empty((min(half, most), p, words), dtype=np.uint64)
        trace = chain.walk(half, counts=counts, kept=orders)
        return trace, counts / half, orders

    walked = [list(counted(each(run, chains), len(chains))) for _ in range(halves)]
    return Record(*(np.array([[one[k] for one in row] for row in walked]) for k in range(3)))


def _focus(chains: list[Chain], mean: FloatArray) -> None:
    """From now on the chains propose mostly the pairs that changed."""
    for chain in chains:
        chain.propose((mean > MOVES) & (mean < 1.0 - MOVES))


def _longest(chains: list[Chain]) -> int:
    """Sweeps per half in the last stage, for a budget of bridges over all chains and stages."""
    words = chains[0].up.shape[1]
    budget = BUDGET * (5 / max(words, 5)) ** 1.9
    # A flip costs about an eighth of a bridge.
    cost = BRIDGES * len(chains[0].active) + chains[0].flips / 8
    return int(np.clip(budget / (3 * len(chains) * cost), 10, 16_000))
