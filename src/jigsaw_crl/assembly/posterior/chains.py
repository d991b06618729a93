"""How probable is each pair? Several chains through the posterior, run until they agree.

Labels are shuffled first, so that their order has no influence. Of a few labels all orders are
weighed instead (`enumeration`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.panel import check_size
from jigsaw_crl.assembly.posterior.agreement import Convergence, Draws, Halves
from jigsaw_crl.assembly.posterior.enumeration import FEW as ENUMERATED
from jigsaw_crl.assembly.posterior.enumeration import Enumeration
from jigsaw_crl.assembly.posterior.search import best_order
from jigsaw_crl.assembly.posterior.starts import grow, likely, recombine
from jigsaw_crl.assembly.posterior.walk import SETTLED, Chain, Proposals, Weights
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["draw_orders", "sample_orders"]


N_CHAINS = 4
# Proposals over all chains and stages: within a minute on two cores for any number of labels. With
# many labels half of them are bridges; what one costs, and how many labels it goes through, grow
# with the words of an order's rows (5 at 300 labels, 16 at 1,000).
BUDGET, BUDGET_OF_MANY = 4e8, 4e8
# With more labels than this, chains start where `starts` leads them. They propose the pairs that
# might change there and, after a share WARM of their budget, those that were seen to change: with a
# probability between MOVES and 1 − MOVES. Short rounds have a share SHORT.
FEW = 100
WARM, MOVES, SHORT = 0.1, 0.02, 0.15


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The posterior over shuffled labels, and an order to start from.

    `grid` indexes a matrix over the labels such that the result is over the shuffled labels.
    """

    weights: Weights
    start: BoolArray | None
    grid: tuple[IntArray, ...]

    @classmethod
    def of(
        cls, evidence: Weights | FloatArray, rng: np.random.Generator, start: BoolArray | None
    ) -> _Posterior:
        """With few labels, start from the best order that local search finds if none is given."""
        check_size(len(evidence))
        weights = Weights.of(evidence)
        if start is None and len(weights) <= FEW:
            start = best_order(weights, rng)
        shuffle = rng.permutation(len(weights))
        grid = np.ix_(shuffle, shuffle)
        return cls(weights.shuffled(shuffle), None if start is None else start[grid], grid)

    def chain(
        self, matrix: BoolArray, rng: np.random.Generator, proposals: Proposals | None = None
    ) -> Chain:
        score = self.weights.score(matrix)
        return Chain.at(matrix, self.weights, rng, proposals=proposals, score=score)

    def grown(self, n: int, rng: np.random.Generator) -> list[BoolArray]:
        """Different orders of high worth."""
        given = [] if self.start is None else [self.start]
        with ThreadPoolExecutor(max_workers=2) as pool:
            found = pool.map(lambda own: grow(self.weights, own), rng.spawn(n - len(given)))
            return recombine([*given, *found], self.weights)

    def scattered(self, n: int, rng: np.random.Generator) -> list[Chain]:
        """Chains from different orders.

        Of few labels: the start, and greedy orders of distorted evidence.
        """
        # Imported here because it loads the compiler.
        from jigsaw_crl.base.bitsets import greedy_order

        if self.start is None or len(self.weights) > FEW:
            orders = self.grown(n, rng)
            moving = np.any([x != orders[0] for x in orders], axis=0)
            for order in orders:
                moving |= likely(order, self.weights)
            proposals = Proposals.among(moving)
            return [self.chain(order, rng, proposals) for order in orders]
        weight = self.weights.direct
        proposals = Proposals.of(self.weights, self.start)
        chains = [self.chain(self.start, rng, proposals)]
        for number in range(1, n):
            noise = rng.normal(scale=2.0 * number, size=weight.shape)
            matrix = greedy_order(weight + noise * (np.abs(weight) < SETTLED))
            chains.append(self.chain(matrix, rng, proposals))
        return chains


def sample_orders(
    evidence: Weights | FloatArray,
    rng: np.random.Generator,
    *,
    n_chains: int = N_CHAINS,
    first: int = 250,
    most: int | None = None,
    start: BoolArray | None = None,
    judged: BoolArray | None = None,
) -> Draws:
    """Probability of every ordered pair, from several chains run until they agree.

    Of a few labels all orders are weighed, and the probabilities are exact. Otherwise each stage
    records as many sweeps as were run in total before it and discards the earlier ones. Stages stop
    when the chains' halves agree (see `agreement`) or at `most` sweeps. With many labels every
    stage proposes the pairs that changed in the stage before.

    Parameters
    ----------
    evidence : Weights, or array of shape (p, p)
        What an order is worth, or pooled log-odds E: see `Weights.of`.
    rng : numpy.random.Generator
    n_chains : int
    first, most : int
        Sweeps per half in the first stage, and the largest number in any stage.
    start : array of bool, shape (p, p), optional
        Where the first chain starts; by default the best order that local search finds, or with
        many labels one that is grown like those of the other chains.
    judged : array of bool, shape (p, p), optional
        Of many labels: the pairs on which the chains must agree; by default all.
    """
    p = len(evidence)
    if p <= ENUMERATED:
        probability = Enumeration.of(Weights.of(evidence)).probability()
        alone = np.repeat(probability[None], n_chains, axis=0)
        return Draws(probability, alone, Convergence(True, 1.0, 0.0, 0, 0))
    posterior = _Posterior.of(evidence, rng, start)
    chains = posterior.scattered(n_chains, rng)
    asked = None
    if p > FEW:
        asked = ~np.eye(p, dtype=bool) if judged is None else judged
        asked = asked[posterior.grid]
    with ThreadPoolExecutor(max_workers=2) as pool:
        if asked is not None:
            _focus(chains, _halves(pool, chains, _longest(chains, WARM), parts=1).mean())
        longest = _longest(chains) if most is None else most
        if asked is not None and most is not None:
            longest = min(most, _longest(chains, SHORT))
        # One stage, if there is no time for another of twice the length.
        half = longest if longest < 2 * first else first
        # Chains of many labels have walked before, and start where they belong.
        _halves(pool, chains, half if asked is None else max(half // 4, 1), parts=1)
        while True:
            halves = _halves(pool, chains, half)
            convergence = halves.convergence(asked)
            if convergence.converged or 2 * half > longest:
                break
            if asked is not None:
                _focus(chains, halves.mean())
            half *= 2
    probability, alone = np.zeros((p, p)), np.zeros((n_chains, p, p))
    probability[posterior.grid] = halves.mean()
    for matrix, shuffled in zip(alone, halves.alone(), strict=True):
        matrix[posterior.grid] = shuffled
    shuffle = posterior.grid[1][0]
    pairs = tuple((shuffle[a], shuffle[d]) for a, d in convergence.disputed)
    return Draws(probability, alone, replace(convergence, disputed=tuple(sorted(pairs))))


def _halves(pool: ThreadPoolExecutor, chains: list[Chain], half: int, parts: int = 2) -> Halves:
    """Walk every chain `parts` times for `half` sweeps."""

    def run(chain: Chain) -> tuple[FloatArray, npt.NDArray[np.int32]]:
        counts = np.zeros((len(chain.up),) * 2, dtype=np.int32)
        return chain.walk(half, counts=counts), counts

    walked = [part for _ in range(parts) for part in pool.map(run, chains)]
    return Halves([trace for trace, _ in walked], [counts / half for _, counts in walked])


def _focus(chains: list[Chain], mean: FloatArray) -> None:
    """From now on the chains propose mostly the pairs that changed."""
    proposals = Proposals.among((mean > MOVES) & (mean < 1.0 - MOVES))
    for chain in chains:
        chain.proposals = proposals


def _longest(chains: list[Chain], share: float = 1.0) -> int:
    """Sweeps per half in the last stage, for a budget of proposals over all chains and stages."""
    p, words = len(chains[0].up), chains[0].up.shape[1]
    budget = share * (BUDGET if p <= FEW else BUDGET_OF_MANY * (5 / max(words, 5)) ** 1.9)
    parts = 4 if p <= FEW else 3
    return int(np.clip(budget / (parts * len(chains) * chains[0].proposals.number), 10, 16_000))


def draw_orders(
    evidence: Weights | FloatArray,
    rng: np.random.Generator,
    n: int,
    *,
    start: BoolArray | None = None,
    gap: int = 20,
) -> list[BoolArray]:
    """`n` orders from the posterior, `gap` sweeps apart on one chain."""
    if len(evidence) <= ENUMERATED:
        return Enumeration.of(Weights.of(evidence)).drawn(n, rng)
    posterior = _Posterior.of(evidence, rng, start)
    first = posterior.grown(1, rng)[0] if posterior.start is None else posterior.start
    chain = posterior.chain(first, rng)
    chain.walk(10 * gap)
    out = []
    for _ in range(n):
        chain.walk(gap)
        matrix = np.zeros(first.shape, dtype=bool)
        matrix[posterior.grid] = chain.matrix()
        out.append(matrix)
    return out
