"""How probable is each pair? Several chains through the posterior, run until they agree.

Labels are shuffled first, so that their order has no influence. Of a few labels all orders are
weighed instead (`enumeration`).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.posterior.enumeration import FEW as ENUMERATED
from jigsaw_crl.assembly.posterior.enumeration import Enumeration
from jigsaw_crl.assembly.posterior.search import best_order, climb
from jigsaw_crl.assembly.posterior.walk import SETTLED, Chain, Weights, n_proposals, unsettled
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["Convergence", "Draws", "draw_orders", "sample_orders"]


N_CHAINS = 4
# Chains agree when split-R̂ of the score is below R_HAT and the standard error of every probability
# is below ERROR, which is too small to move a probability across both thresholds of a verdict.
R_HAT, ERROR = 1.05, 0.03
# With more labels than this, chains that start far from the mode climb before they are recorded.
FEW = 100


@dataclass(frozen=True)
class Convergence:
    """Whether the chains agree, and how long they ran.

    Parameters
    ----------
    converged : bool
    r_hat : float
        Split-R̂ of the log posterior over the chains' halves; 1 when they agree.
    worst_error : float
        Largest standard error of a pair's probability, from the spread between half-chains.
    sweeps : int
        Recorded sweeps per chain.
    chains : int
        0 if all orders were weighed.
    """

    converged: bool
    r_hat: float
    worst_error: float
    sweeps: int
    chains: int

    def __str__(self) -> str:
        if self.chains == 0:
            return "all orders were weighed"
        what = "agree" if self.converged else "do not agree yet"
        return (
            f"{self.chains} chains of {self.sweeps} sweeps {what} (split-R̂ {self.r_hat:.3f}, "
            f"largest error of a probability {self.worst_error:.3f})"
        )


@dataclass(frozen=True, eq=False)
class Draws:
    """Probability of every ordered pair, and whether the chains agree.

    Parameters
    ----------
    probability : array, shape (p, p)
    chains : array, shape (n_chains, p, p)
        The same from each chain alone.
    convergence : Convergence
    """

    probability: FloatArray
    chains: FloatArray
    convergence: Convergence


@dataclass(frozen=True, eq=False)
class _Posterior:
    """The posterior over shuffled labels, and an order to start from.

    `grid` indexes a matrix over the labels such that the result is over the shuffled labels.
    """

    weights: Weights
    start: BoolArray
    active: npt.NDArray[np.int64]
    grid: tuple[IntArray, ...]

    @classmethod
    def of(
        cls, evidence: Weights | FloatArray, rng: np.random.Generator, start: BoolArray | None
    ) -> _Posterior:
        """Start from the best order that local search finds if `start` is None."""
        weights = Weights.of(evidence)
        start = best_order(weights, rng) if start is None else start
        shuffle = rng.permutation(len(weights))
        grid = np.ix_(shuffle, shuffle)
        weights, start = weights.shuffled(shuffle), start[grid]
        return cls(weights, start, unsettled(weights, start), grid)

    def chain(self, matrix: BoolArray, rng: np.random.Generator) -> Chain:
        score = self.weights.score(matrix)
        return Chain.at(matrix, self.weights, rng, active=self.active, score=score)

    def scattered(self, n: int, rng: np.random.Generator) -> list[Chain]:
        """Chains from different orders: the start, and greedy orders of distorted evidence."""
        # Imported here because it loads the compiler.
        from jigsaw_crl.base.bitsets import greedy_order

        weight = self.weights.direct
        chains = [self.chain(self.start, rng)]
        for number in range(1, n):
            noise = rng.normal(scale=2.0 * number, size=weight.shape)
            matrix = greedy_order(weight + noise * (np.abs(weight) < SETTLED))
            if len(weight) > FEW:
                matrix = climb(matrix, self.weights, rng, active=self.active, sweeps=10)
            chains.append(self.chain(matrix, rng))
        return chains


def sample_orders(
    evidence: Weights | FloatArray,
    rng: np.random.Generator,
    *,
    n_chains: int = N_CHAINS,
    first: int = 250,
    most: int | None = None,
    start: BoolArray | None = None,
) -> Draws:
    """Probability of every ordered pair, from several chains run until they agree.

    Of a few labels all orders are weighed, and the probabilities are exact. Otherwise each stage
    records as many sweeps as were run in total before it and discards the earlier ones. Stages stop
    when the chains' halves agree (see `R_HAT`, `ERROR`) or at `most` sweeps.

    Parameters
    ----------
    evidence : Weights, or array of shape (p, p)
        What an order is worth, or pooled log-odds E: see `Weights.of`.
    rng : numpy.random.Generator
    n_chains : int
    first, most : int
        Sweeps per half in the first stage, and the largest number in any stage.
    start : array of bool, shape (p, p), optional
        Where the first chain starts; by default the best order that local search finds.
    """
    p = len(evidence)
    if p <= ENUMERATED:
        probability = Enumeration.of(Weights.of(evidence)).probability()
        alone = np.repeat(probability[None], n_chains, axis=0)
        return Draws(probability, alone, Convergence(True, 1.0, 0.0, 0, 0))
    posterior = _Posterior.of(evidence, rng, start)
    chains = posterior.scattered(n_chains, rng)
    if most is None:
        # About 4e8 proposals over all chains and stages: within a minute on two cores for any p.
        per_sweep = n_proposals(p, len(posterior.active))
        most = int(np.clip(4e8 / (4 * n_chains * per_sweep), 30, 16_000))
    half = min(first, most)

    def run(sweeps: int, chain: Chain) -> tuple[FloatArray, npt.NDArray[np.int32]]:
        counts = np.zeros((p, p), dtype=np.int32)
        return chain.walk(sweeps, counts=counts), counts

    with ThreadPoolExecutor(max_workers=2) as pool:
        list(pool.map(partial(run, half), chains))
        while True:
            parts = [part for _ in range(2) for part in pool.map(partial(run, half), chains)]
            r_hat = _split_r_hat([trace for trace, _ in parts])
            means = [counts / half for _, counts in parts]
            mean = sum(means[1:], means[0]) / len(means)
            spread = sum((m - mean) ** 2 for m in means) / (len(means) - 1)
            error = float(np.sqrt(np.max(spread, initial=0.0) / len(means)))
            agreed = r_hat <= R_HAT and error <= ERROR
            if agreed or 2 * half > most:
                break
            half *= 2
    probability, alone = np.zeros((p, p)), np.zeros((n_chains, p, p))
    probability[posterior.grid] = mean
    for number in range(n_chains):
        alone[number][posterior.grid] = (means[number] + means[number + n_chains]) / 2
    return Draws(probability, alone, Convergence(agreed, r_hat, error, 2 * half, n_chains))


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
    chain = posterior.chain(posterior.start, rng)
    chain.walk(10 * gap)
    out = []
    for _ in range(n):
        chain.walk(gap)
        matrix = np.zeros(posterior.start.shape, dtype=bool)
        matrix[posterior.grid] = chain.matrix()
        out.append(matrix)
    return out


def _split_r_hat(traces: list[FloatArray]) -> float:
    """Potential scale reduction of equally long sequences (the chains' halves)."""
    n = len(traces[0])
    means = np.array([t.mean() for t in traces])
    within = float(np.mean([t.var(ddof=1) for t in traces]))
    between = n * float(means.var(ddof=1))
    if within <= 1e-12:
        return 1.0 if between <= 1e-9 else float("inf")
    return float(np.sqrt((within * (n - 1) / n + between / n) / within))
