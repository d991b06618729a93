"""How probable is each pair? Several chains through the posterior, run until they agree.

Labels are shuffled first, so that their order has no influence. Of a few labels all orders are
weighed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.posterior.search import FEW, MANY, all_orders, all_scores, grow, likely
from jigsaw_crl.assembly.posterior.walk import FACT, SETTLED, Chains, OneOf, Weights
from jigsaw_crl.assembly.verdict import disputed
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.findings import CLOSED
from jigsaw_crl.base.order import greedy_order
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.evidence.priors import PAIR_COST

__all__ = ["Convergence", "Posterior", "convergence", "entailed", "sample_orders", "split_r_hat"]

Each = Callable[..., Iterable[Any]]

# Of up to ALONE labels a walk takes less time than handing it to a thread.
N_CHAINS, ALONE = 4, 16
# Sweeps per half of a chain in the first stage, of walks after which weights change, and the most.
# An error of 0.025 needs about 400 independent orders of all chains together.
FIRST, SHORT, MOST_SWEEPS = 50, 13, 16_000
# Bridges of all chains: about a minute on two cores at 1,000 labels. Of an order with many words
# (16 at 1,000 labels) a bridge costs more, and goes through more labels.
BUDGET, FEW_WORDS = 3e8, 5
# Open pairs have a probability in (MOVES, 1 − MOVES): after a first walk they alone are proposed.
MOVES = 0.02
# Chains agree when split-R̂ of the score is below R_HAT, the standard error of the probability of
# open pairs is ERROR (root mean square), and few open pairs are disputed: those are undetermined.
R_HAT, ERROR, MOST_DISPUTED = 1.05, 0.025, 0.05
# Least variance of the score within a half. Halves that each stay at one order differ by nothing
# that matters if their scores differ by less than its root, and R̂ stays finite if by more.
FLAT = 1e-3
# Orders that are kept to draw from, and the bytes that they may take.
KEPT, BYTES = 400, 64_000_000


@dataclass(frozen=True)
class Convergence:
    """Whether the chains agree, and how long they ran.

    Parameters
    ----------
    converged : bool
    r_hat : float
        Split-R̂ of the log posterior over the chains' halves; 1 when they agree.
    worst_error : float
        Largest standard error of a pair's probability, from the spread between half-chains;
        disputed pairs do not count.
    sweeps : int
        Recorded sweeps per chain.
    chains : int
        0 if all orders were weighed.
    disputed : tuple of (int, int)
        Pairs that one chain would decide and another would not. They are undetermined.
    """

    __pydantic_config__: ClassVar = CLOSED

    converged: bool
    r_hat: float
    worst_error: float
    sweeps: int
    chains: int
    disputed: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        if self.chains == 0:
            return "all orders were weighed"
        what = "agree" if self.converged else "do not agree yet"
        apart = ""
        if self.disputed:
            pairs = pluralise(len(self.disputed), "pair")
            apart = f" except on {pairs}" if self.converged else f", on {pairs} in particular"
        return (
            f"{self.chains} chains of {self.sweeps} sweeps {what}{apart} (split-R̂ "
            f"{self.r_hat:.3f}, largest error of a probability {self.worst_error:.3f})"
        )


@dataclass(frozen=True, eq=False)
class Posterior:
    """The probability of every ordered pair, and orders drawn with exactly these probabilities.

    Of a few labels both are exact. Otherwise the probabilities come from all sweeps of several
    chains, and the orders are some of those sweeps, evenly spaced.

    Parameters
    ----------
    probability : array, shape (p, p)
    chains : array, shape (n_chains, p, p)
        The same from each chain alone.
    convergence : Convergence
    orders : array of uint8, shape (n, p, bytes)
        Descendants of each label as bits, the lowest first; the labels in the order of `listed`.
    listed : array of int, shape (p,)
    shares : array, shape (n,), or None
        Probability of each of the orders, if they are not all equal.
    """

    probability: FloatArray
    chains: FloatArray
    convergence: Convergence
    orders: npt.NDArray[np.uint8]
    listed: IntArray
    shares: FloatArray | None = None

    def sample(self, n: int, *, seed: int | Sequence[int] = 0) -> list[BoolArray]:
        """`n` orders drawn at random, shape (p, p) each; none twice while there are others left."""
        rng, total = np.random.default_rng(seed), len(self.orders)
        if self.shares is not None:
            chosen = rng.choice(total, size=n, p=self.shares)
        else:
            chosen = np.concatenate([rng.permutation(total) for _ in range(n // total + 1)])[:n]
        bits = self.orders[chosen]
        orders = np.unpackbits(bits, axis=2, count=len(self.listed), bitorder="little")
        return [_in_order(order.astype(bool), self.listed) for order in orders]


def sample_orders(
    weights: Weights,
    rng: np.random.Generator,
    *,
    doubts: Callable[[FloatArray], Weights] | None = None,
) -> Posterior:
    """Probability of every ordered pair, from several chains run until they agree.

    Of a few labels all orders are weighed, and the probabilities are exact. Otherwise chains walk a
    little, weights that depend on the probabilities follow what was found, and the chains go on.
    (Of many labels they start anew: they would stay near where the first weights led them.) Then
    every stage doubles the sweeps that are recorded (of many labels it discards the earlier ones,
    in which chains still climb), and proposes the bridges of pairs that changed before, until the
    chains' halves agree or their budget is spent. That weights change once is enough:
    twice changed E1 by .001 (96 worlds).

    Parameters
    ----------
    weights : Weights
    rng : numpy.random.Generator
    doubts : callable, optional
        Probabilities of all pairs → the weights that follow; by default those given stay.
    """
    p = len(weights)
    if p <= FEW:
        return _enumerated(weights, doubts)
    many, shuffle = p > MANY, rng.permutation(p)
    orders: list[BoolArray] = []
    with ThreadPoolExecutor(max_workers=2) as pool:
        each: Each = pool.map if p > ALONE else map
        n = N_CHAINS // 2 if many and doubts else N_CHAINS
        short = SHORT * (2 if many else 1)
        chains = _scattered(weights.shuffled(shuffle), n, orders, rng, each)
        _, counts, _ = chains.walk(short, each=each)
        if doubts is not None:
            weights = doubts(_in_order(counts.mean(axis=0) / short, shuffle))
            orders = [] if many else chains.matrices()
            chains = _scattered(weights.shuffled(shuffle), N_CHAINS, orders, rng, each)
            _, counts, _ = chains.walk(short, each=each)
        kept = max(min(KEPT, BYTES // chains.up[0].nbytes) // N_CHAINS, 1)
        chains.propose(_moving(counts.mean(axis=0) / short, chains.weights))
        longest = _longest(chains)
        half, walk = min(FIRST, longest), partial(chains.walk, kept=kept, each=each)
        (trace, counts, _), (more, again, drawn) = walk(half), walk(half)
        while True:
            traces, means = (trace, more), np.array([counts, again]) / half
            found = convergence(means, np.concatenate(traces), shuffle)
            if found.converged or 2 * half > longest:
                break
            half *= 2
            chains.propose(_moving(means.mean(axis=(0, 1)), chains.weights))
            trace, counts = np.concatenate(traces, axis=1), counts + again
            if many:
                trace, counts, _ = walk(half)
            more, again, drawn = walk(half)
    alone = means.mean(axis=0)
    return Posterior(
        probability=_in_order(alone.mean(axis=0), shuffle),
        chains=np.array([_in_order(mean, shuffle) for mean in alone]),
        convergence=found,
        orders=drawn.astype("<u8").view(np.uint8).reshape(-1, p, 8 * drawn.shape[-1]),
        listed=shuffle,
    )


def _in_order(shuffled: npt.NDArray[Any], shuffle: IntArray) -> npt.NDArray[Any]:
    """A matrix over shuffled labels as one over the labels themselves."""
    out = np.empty_like(shuffled)
    out[np.ix_(shuffle, shuffle)] = shuffled
    return out


def _open(mean: FloatArray) -> BoolArray:
    return np.asarray((mean > MOVES) & (mean < 1.0 - MOVES))


def _moving(mean: FloatArray, weights: Weights) -> BoolArray:
    """Pairs that change, and pairs that evidence speaks for although the orders lack them.

    Without the latter, chains that all start on one side of a barrier stay there.
    """
    return _open(mean) | np.asarray((weights.direct > 0) & (mean < 1.0 - MOVES))


def convergence(means: FloatArray, traces: FloatArray, shuffle: IntArray) -> Convergence:
    """Do the chains agree?

    Parameters
    ----------
    means : array, shape (2, n_chains, p, p)
        Probabilities from the halves of each chain, which are equally long.
    traces : array, shape (2 n_chains, sweeps)
        The score after each sweep of each half.
    shuffle : array of int, shape (p,)
        The labels in the order of the matrices.
    """
    n, sweeps = traces.shape
    alone = means.mean(axis=0)
    mean = alone.mean(axis=0)
    variance = ((means - mean) ** 2).sum(axis=(0, 1)) / (n - 1) / n
    apart, opened = disputed(alone.min(axis=0), alone.max(axis=0)), _open(mean)
    error = np.sqrt(variance[opened].mean()) if opened.any() else 0.0
    r_hat = split_r_hat(traces)
    few = apart.sum() <= MOST_DISPUTED * opened.sum()
    worst = float(np.sqrt(np.max(variance[~apart], initial=0.0)))
    pairs = sorted((int(shuffle[a]), int(shuffle[d])) for a, d in np.argwhere(apart))
    agreed = bool(r_hat <= R_HAT and error <= ERROR and few)
    return Convergence(agreed, r_hat, worst, 2 * sweeps, n // 2, tuple(pairs))


def split_r_hat(traces: FloatArray) -> float:
    """Potential scale reduction of the chains' halves, shape (n, sweeps)."""
    within = max(float(traces.var(axis=1).mean()), FLAT)
    return float(np.sqrt((within + float(traces.mean(axis=1).var(ddof=1))) / within))


def entailed(
    yes: BoolArray, no: BoolArray, one_of: Sequence[OneOf], rng: np.random.Generator
) -> Posterior:
    """The prior over the orders that agree with what is certain.

    It has a cost of `PAIR_COST` for every pair, and of 1 for every cover.

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
    cover, ancestry = np.full(yes.shape, -1.0), np.zeros(len(yes))
    return sample_orders(Weights(certain - PAIR_COST, cover, ancestry, opened), rng)


def _enumerated(weights: Weights, doubts: Callable[[FloatArray], Weights] | None) -> Posterior:
    """All orders, weighed."""
    orders = all_orders(len(weights))
    for last in (False, True):
        scores = all_scores(weights)
        share = np.exp(scores - scores.max())
        share /= share.sum()
        # Rounding takes no probability beyond one.
        probability = np.minimum(np.tensordot(share, orders, axes=1), 1.0)
        if last or doubts is None:
            break
        weights = doubts(probability)
    return Posterior(
        probability=probability,
        chains=probability[None],
        convergence=Convergence(True, 1.0, 0.0, 0, 0),
        orders=np.packbits(orders, axis=-1, bitorder="little"),
        listed=np.arange(len(weights)),
        shares=share,
    )


def _scattered(
    weights: Weights, n: int, orders: list[BoolArray], rng: np.random.Generator, each: Each
) -> Chains:
    """Chains from the given orders, and from others of high worth."""
    if len(weights) > MANY:
        orders = [*orders, *each(lambda r: grow(weights, r), rng.spawn(n - len(orders)))]
    direct = weights.direct
    for number in range(len(orders), n):
        noise = rng.normal(scale=2.0 * number, size=direct.shape)
        orders = [*orders, greedy_order(direct + noise * (np.abs(direct) < SETTLED))]
    moving = np.any([x != orders[0] for x in orders], axis=0)
    for order in orders:
        moving |= likely(order, weights)
    return Chains.at(orders, weights, rng, moving)


def _longest(chains: Chains) -> int:
    """Sweeps per half of the last stage, for a budget of bridges; a flip costs a quarter of one."""
    words = max(chains.up[0].shape[1], FEW_WORDS)
    cost = N_CHAINS * (len(chains.active) + chains.flips / 4)
    return int(np.clip(BUDGET * (FEW_WORDS / words) ** 2 / cost, 10, MOST_SWEEPS))
