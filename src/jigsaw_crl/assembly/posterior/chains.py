"""How probable is each pair? Several chains through the posterior, run until they agree.

Of a few labels all orders are weighed instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.posterior.walk import FACT, Chains, OneOf, Weights, is_open
from jigsaw_crl.assembly.verdict import disputed
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.findings import CLOSED
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.evidence.priors import PAIR_COST

# Most labels whose orders are all weighed: there are 4,231 of five labels, which take a few
# milliseconds, and 130,023 of six.
FEW = 5
N_CHAINS = 4
# Moves of each label before anything else moves. Greedy orders where they are more probable brought
# chains of 1,000 labels together (split-R̂ 2.4, then 1.3) and those of a tree of 300 apart (1.05,
# then 2.1).
GROWTH = 8
# Sweeps per half of a chain in the first stage, of the walks before and after weights change, and
# the most. With 13 before, seeds differed by up to .17 in a pair of a study of doubtful clients.
# An error of 0.025 needs about 400 independent orders of all chains together.
FIRST, EARLY, SHORT, MOST_SWEEPS = 50, 26, 13, 16_000
# Bridges of all chains, times the words of a label's bits (16 at 1,000 labels), which each of them
# goes through: about a minute on two cores at 1,000 labels.
BUDGET = 5e8
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
        Descendants of each label as bits, the lowest first.
    shares : array, shape (n,), or None
        Probability of each of the orders, if they are not all equal.
    """

    probability: FloatArray
    chains: FloatArray
    convergence: Convergence
    orders: npt.NDArray[np.uint8]
    shares: FloatArray | None = None

    def sample(self, n: int, *, seed: int | Sequence[int] = 0) -> list[BoolArray]:
        """`n` orders drawn at random, shape (p, p) each; none twice while there are others left."""
        rng, total = np.random.default_rng(seed), len(self.orders)
        if self.shares is not None:
            chosen = rng.choice(total, size=n, p=self.shares)
        else:
            chosen = np.concatenate([rng.permutation(total) for _ in range(n // total + 1)])[:n]
        p, bits = len(self.probability), self.orders[chosen]
        return list(np.unpackbits(bits, axis=2, count=p, bitorder="little").astype(bool))


def sample_orders(
    weights: Weights,
    rng: np.random.Generator,
    *,
    doubts: Callable[[FloatArray], Weights] | None = None,
) -> Posterior:
    """Probability of every ordered pair, from several chains run until they agree.

    Of a few labels all orders are weighed, and the probabilities are exact. Otherwise chains start
    at orders that grow label by label and walk a little, weights that depend on the probabilities
    follow what was found, and the chains go on. Then every stage doubles the sweeps that are
    recorded, of which it discards the earliest, in which chains still climb, and proposes the
    bridges of pairs that changed before, until the chains' halves agree or their budget is spent.
    That weights change once is enough: twice changed E1 by .001 (96 worlds).

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
    chains = Chains.at([np.zeros((p, p), dtype=bool)] * N_CHAINS, weights, rng)
    chains.grow(GROWTH)
    if doubts is not None:
        _, counts, _ = chains.walk(EARLY)
        chains = Chains.at(chains.matrices(), doubts(counts.mean(axis=0) / EARLY), rng)
    _, counts, _ = chains.walk(SHORT)
    chains.propose(counts.mean(axis=0) / SHORT)
    kept = max(min(KEPT, BYTES // chains.up[0].nbytes) // N_CHAINS, 1)
    # Sweeps per half of the last stage; a flip costs a quarter of a bridge.
    bridges = N_CHAINS * (len(chains.active) + chains.flips / 4)
    longest = int(np.clip(BUDGET / (bridges * chains.up[0].shape[1]), 10, MOST_SWEEPS))
    half = min(FIRST, longest)
    (trace, counts, _), (more, again, drawn) = chains.walk(half), chains.walk(half, kept=kept)
    while True:
        means = np.array([counts, again]) / half
        found = convergence(means, np.concatenate((trace, more)))
        if found.converged or 2 * half > longest:
            break
        chains.propose(means.mean(axis=(0, 1)))
        rest, further, _ = chains.walk(half)
        trace, counts = np.concatenate((more, rest), axis=1), again + further
        half *= 2
        more, again, drawn = chains.walk(half, kept=kept)
    alone = means.mean(axis=0)
    return Posterior(
        probability=alone.mean(axis=0),
        chains=alone,
        convergence=found,
        orders=drawn.astype("<u8").view(np.uint8).reshape(-1, p, 8 * drawn.shape[-1]),
    )


def convergence(means: FloatArray, traces: FloatArray) -> Convergence:
    """Do the chains agree?

    Parameters
    ----------
    means : array, shape (2, n_chains, p, p)
        Probabilities from the halves of each chain, which are equally long.
    traces : array, shape (2 n_chains, sweeps)
        The score after each sweep of each half.
    """
    n, sweeps = traces.shape
    alone = means.mean(axis=0)
    mean = alone.mean(axis=0)
    variance = ((means - mean) ** 2).sum(axis=(0, 1)) / (n - 1) / n
    apart, opened = disputed(alone.min(axis=0), alone.max(axis=0)), is_open(mean)
    error = np.sqrt(variance[opened].mean()) if opened.any() else 0.0
    r_hat = split_r_hat(traces)
    few = apart.sum() <= MOST_DISPUTED * opened.sum()
    worst = float(np.sqrt(np.max(variance[~apart], initial=0.0)))
    pairs = tuple((int(a), int(d)) for a, d in np.argwhere(apart))
    agreed = bool(r_hat <= R_HAT and error <= ERROR and few)
    return Convergence(agreed, r_hat, worst, 2 * sweeps, n // 2, pairs)


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


@lru_cache(maxsize=FEW + 1)
def all_orders(p: int) -> BoolArray:
    """Every strict partial order of p labels, transitively closed, shape (n, p, p).

    A new label is added to every order of those before it: its ancestors A hold all ancestors of
    their members, its descendants D all descendants of theirs, and all of A is above all of D.
    """
    if p == 0:
        return np.zeros((1, 0, 0), dtype=bool)
    before = all_orders(p - 1)
    subsets = (np.arange(2 ** (p - 1))[:, None] >> np.arange(p - 1)) & 1 == 1
    found = []
    for order in before:
        above = subsets[~((subsets @ order.T) & ~subsets).any(axis=1)]
        below = subsets[~((subsets @ order) & ~subsets).any(axis=1)]
        # Every pair of A × D is in the order.
        a, d = np.nonzero(~(above @ ~order @ below.T))
        new = np.zeros((len(a), p, p), dtype=bool)
        new[:, :-1, :-1], new[:, :-1, -1], new[:, -1, :-1] = order, above[a], below[d]
        found.append(new)
    out = np.concatenate(found)
    out.flags.writeable = False
    return out


def _enumerated(weights: Weights, doubts: Callable[[FloatArray], Weights] | None) -> Posterior:
    """All orders, weighed."""
    orders = all_orders(len(weights))
    for last in (False, True):
        scores = weights.scores(orders)
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
        shares=share,
    )
