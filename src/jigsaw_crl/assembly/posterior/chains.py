"""How probable is each pair? Several chains through the posterior, run until they agree.

Labels are shuffled first, so that their order has no influence. Of a few labels all orders are
weighed instead (`enumeration`).
"""

from __future__ import annotations

from collections.abc import Sequence
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
from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["entailed", "sample_orders"]


N_CHAINS = 4
# Sweeps per half of a chain in the first stage: an error of 0.03 needs about 300 independent orders
# of all chains together, and neighbouring sweeps are not independent.
FIRST = 100
# Proposals over all chains and stages: within a minute on two cores for any number of labels. Half
# of them are bridges; what one costs, and how many labels it goes through, grow with the words of
# an order's rows (5 at 300 labels, 16 at 1,000).
BUDGET = 4e8
# With more labels than this, chains start where `grow` leads them, and pairs on which they differ
# are set aside.
FEW = 100
# Chains propose the pairs that might change where they start and, after a first walk (at most a
# share WARM of their budget), those that were seen to change: with a probability between MOVES and
# 1 − MOVES. Short rounds of many labels have a share SHORT of the budget.
WARM, MOVES, SHORT = 0.1, 0.02, 0.15
# Orders that are kept to draw from, and the bytes that they may take.
KEPT, BYTES = 400, 64_000_000
# Proposals of one chain from which on threads save time.
THREADS = 1_000_000


def sample_orders(
    evidence: Weights | FloatArray,
    rng: np.random.Generator,
    *,
    n_chains: int = N_CHAINS,
    first: int = FIRST,
    most: int | None = None,
    before: Posterior | None = None,
    start: BoolArray | None = None,
    judged: BoolArray | None = None,
) -> Posterior:
    """Probability of every ordered pair, from several chains run until they agree.

    Of a few labels all orders are weighed, and the probabilities are exact. Otherwise each stage
    doubles the sweeps that are recorded, and of many labels discards the earlier ones. Stages stop
    when the chains' halves agree (see `agreement`) or at `most` sweeps. Every stage proposes
    mostly the pairs that changed in the stage before.

    Parameters
    ----------
    evidence : Weights, or array of shape (p, p)
        What an order is worth, or pooled log-odds E: see `Weights.of`.
    rng : numpy.random.Generator
    n_chains : int
    first, most : int
        Sweeps per half in the first stage, and the largest number in any stage.
    before : Posterior, optional
        Sampled from similar weights: the chains go on where its chains ended.
    start : array of bool, shape (p, p), optional
        Where the first chain starts; the others start at different orders of high worth.
    judged : array of bool, shape (p, p), optional
        Of many labels: the pairs on which the chains must agree; by default all.
    """
    given = Weights.of(evidence)
    p = len(given)
    if p <= ENUMERATED:
        return _enumerated(given, n_chains)
    shuffle = rng.permutation(p)
    grid = np.ix_(shuffle, shuffle)
    weights = given.shuffled(shuffle)
    orders = [] if start is None else [start[grid]]
    if before is not None:
        orders = [order[grid] for order in before.ends()]
    chains = _scattered(weights, n_chains, orders, rng)
    asked = None
    if p > FEW:
        asked = ~np.eye(p, dtype=bool) if judged is None else judged[grid]
    if before is None:
        warm = min(first, _longest(chains, WARM))
        _focus(chains, _recorded(chains, warm, parts=1).mean())
    else:
        _focus(chains, before.probability[grid])
    longest = _longest(chains) if most is None else most
    if asked is not None and most is not None:
        longest = min(most, _longest(chains, SHORT))
    # One stage, if there is no time for another of twice the length.
    half = longest if longest < 2 * first else first
    _recorded(chains, max(half // 4, 1), parts=1)
    record = _recorded(chains, half)
    while True:
        convergence = record.convergence(asked)
        if convergence.converged or 2 * half > longest:
            break
        _focus(chains, record.mean())
        half *= 2
        if asked is None:
            record = record.then(_recorded(chains, half, parts=1))
        else:
            record = _recorded(chains, half)
    probability, alone = np.zeros((p, p)), np.zeros((n_chains, p, p))
    probability[grid] = record.mean()
    for matrix, shuffled in zip(alone, record.alone(), strict=True):
        matrix[grid] = shuffled
    pairs = sorted((int(shuffle[a]), int(shuffle[d])) for a, d in convergence.disputed)
    convergence = replace(convergence, disputed=tuple(pairs))
    return Posterior(probability, alone, convergence, record.kept(), shuffle)


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


def _enumerated(weights: Weights, n_chains: int) -> Posterior:
    """All orders, weighed."""
    found, p = Enumeration.of(weights), len(weights)
    probability, convergence = found.probability(), Convergence(True, 1.0, 0.0, 0, 0)
    alone = np.repeat(probability[None], n_chains, axis=0)
    listed = np.arange(p)
    return Posterior(probability, alone, convergence, found.orders, listed, found.posterior)


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
