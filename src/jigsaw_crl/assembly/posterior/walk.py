"""What an order is worth, and chains that walk through orders.

    log posterior(R) = Σ_{(a, d) ∈ R} implied[a, d] + Σ_{covers of R} cover[a, d]
                       + Σ_{d with an ancestor in R} ancestry[d] − FACT · broken(R) + constant

The three weights hold the clients' evidence and the prior (see `model`). `broken` is the number of
statements "one of these is an ancestor of d" that R contradicts.

Orders are bit sets in machine words (see `moves`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import boolean_product, cover_matrix, greedy_order
from jigsaw_crl.base.terminal import counted

Words = npt.NDArray[np.uint64]
# Candidates, one of which is an ancestor of the last.
OneOf = tuple[tuple[int, ...], int]

# Log-odds that stand for certainty: e^−200 of the orders contradict a fact.
FACT = 200.0
# Log-odds of what the user knows: more than the evidence of all clients can outweigh.
KNOWN = 1e6
# Open pairs have a probability in (MOVES, 1 − MOVES).
MOVES = 0.02
# Of 1,000 labels, 19 in 20 of the flips that are accepted are of pairs that cost less: one in nine.
COSTLY = 3.0
# Flips that a sweep proposes for every label: one for each of its pairs, up to this many.
MOST_FLIPS = 128
# A sweep moves two labels, and another one for every so many.
MOVED = 64


def pack(matrix: BoolArray) -> Words:
    """Rows of a boolean matrix as 64-bit words; bit j of word w stands for column 64 w + j."""
    whole = np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % 64)))
    packed = np.ascontiguousarray(np.packbits(whole, axis=1, bitorder="little"))
    return packed.view(np.dtype("<u8")).astype(np.uint64)


def unpack(words: Words, m: int) -> BoolArray:
    """The boolean matrix with `m` columns that was given to `pack`."""
    raw = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(raw, axis=1, count=m, bitorder="little").astype(bool)


def is_open(mean: FloatArray) -> BoolArray:
    """Pairs that some orders have and some do not."""
    return np.asarray((mean > MOVES) & (mean < 1.0 - MOVES))


@dataclass(frozen=True, eq=False)
class Weights:
    """What an order is worth.

    Parameters
    ----------
    implied : array, shape (p, p)
        Worth of each ordered pair.
    cover : array, shape (p, p)
        Worth of a pair in addition if no label lies between.
    ancestry : array, shape (p,)
        Worth of a label's having ancestors.
    one_of : tuple of (tuple of int, int)
        Statements that an order should not contradict.
    """

    implied: FloatArray
    cover: FloatArray
    ancestry: FloatArray
    one_of: tuple[OneOf, ...] = ()

    def __len__(self) -> int:
        return len(self.implied)

    @property
    def direct(self) -> FloatArray:
        """Worth of each pair if it is a cover, shape (p, p)."""
        return self.implied + self.cover

    def broken(self, orders: BoolArray) -> IntArray:
        """Number of statements that each order of shape (..., p, p) contradicts."""
        total = np.zeros(orders.shape[:-2], dtype=np.int64)
        for names, d in self.one_of:
            total += ~orders[..., list(names), d].any(axis=-1)
        return total

    def scores(self, orders: BoolArray) -> FloatArray:
        """Worth of each order of shape (..., p, p)."""
        covers = orders & ~boolean_product(orders, orders)
        pairs = np.where(orders, self.implied, 0.0) + np.where(covers, self.cover, 0.0)
        labels = orders.any(axis=-2) @ self.ancestry
        return np.asarray(pairs.sum(axis=(-2, -1)) + labels - FACT * self.broken(orders))


@dataclass(eq=False)
class Chains:
    """Markov chains over orders, each with its own order, score and random numbers.

    Parameters
    ----------
    weights : Weights
    up, down : list of array of uint64, shape (p, words)
        Each chain's order as bit sets: descendants of each label, and ancestors.
    random : list of array of uint64, shape (1,)
        State of each chain's random generator.
    score : list of float
        Score of each order.
    """

    weights: Weights
    up: list[Words]
    down: list[Words]
    random: list[Words]
    score: list[float]
    # Pairs `a * p + d` whose bridges are proposed.
    active: IntArray = field(init=False)

    @classmethod
    def at(
        cls,
        orders: Sequence[BoolArray],
        weights: Weights,
        rng: np.random.Generator,
    ) -> Chains:
        """Chains that start at the given orders."""
        random = list(rng.integers(0, 2**63, size=(len(orders), 1), dtype=np.uint64))
        up, down = [pack(order) for order in orders], [pack(order.T) for order in orders]
        chains = cls(weights, up, down, random, weights.scores(np.array(orders)).tolist())
        chains.propose(np.mean(orders, axis=0))
        return chains

    def propose(self, mean: FloatArray) -> None:
        """From now on propose bridges of open pairs, of covers, and of what is worth adding.

        `mean` are the shares of the orders so far that have each pair. A bridge may be worth adding
        though its pair is not: with A the pairs of R and those of a label with itself, its pairs
        are worth Aᵀ (implied ∘ ¬R) Aᵀ together. Chains of 300 labels came to where they stay in
        some 200 sweeps without these, and in 30 with them.
        """
        moving = is_open(mean)
        for order in self.matrices():
            path = order | np.eye(len(mean), dtype=bool)
            rest = np.where(order, 0.0, self.weights.implied)
            worth = path.T @ rest @ path.T + self.weights.cover
            moving |= cover_matrix(order) | ((worth > 0) & ~path & ~path.T)
        self.active = np.flatnonzero(moving).astype(np.int64)

    def grow(self, times: int) -> None:
        """Move nothing but labels, each of them so many times on average."""
        self.walk(times, grow=True)
        self.propose(np.mean(self.matrices(), axis=0))

    @property
    def flips(self) -> int:
        """Flips in a sweep."""
        return len(self.weights) * min(len(self.weights), MOST_FLIPS)

    def matrices(self) -> list[BoolArray]:
        """The orders, shape (p, p) each."""
        return [unpack(up, len(self.weights)) for up in self.up]

    def walk(
        self,
        sweeps: int,
        *,
        kept: int = 0,
        grow: bool = False,
    ) -> tuple[FloatArray, npt.NDArray[np.int32], Words]:
        """Move every chain through `sweeps` sweeps; to `grow`, these are of labels alone.

        Returns
        -------
        trace : array, shape (n, sweeps)
            The score after each sweep.
        counts : array of int32, shape (n, p, p)
            Number of sweeps after which the order had each pair.
        orders : array of uint64, shape (n, kept, p, words)
            `kept` orders of each chain, evenly spaced, at most one a sweep.
        """
        # Imported here because it loads the compiler.
        from jigsaw_crl.assembly.posterior.moves import metropolis

        w, (n, (p, words)) = self.weights, (len(self.up), self.up[0].shape)
        trace, counts = np.empty((n, sweeps)), np.zeros((n, p, p), dtype=np.int32)
        orders = np.empty((n, min(kept, sweeps), p, words), dtype=np.uint64)
        named = np.zeros((len(w.one_of), p), dtype=bool)
        for row, (names, _) in zip(named, w.one_of, strict=True):
            row[list(names)] = True
        likely = np.flatnonzero((w.implied > -COSTLY) & ~np.eye(p, dtype=bool))
        said = pack(named), np.array([d for _, d in w.one_of], dtype=np.int64)

        active, flips, moved = self.active, self.flips, 2 + p // MOVED
        if grow:
            active, flips, moved = active[:0], 0, p

        def run(k: int) -> float:
            order = self.up[k], self.down[k], w.implied, w.cover, w.ancestry, *said
            moves = self.random[k], self.score[k], active, likely, flips, moved
            return float(metropolis(*order, *moves, counts[k], orders[k], trace[k]))

        with ThreadPoolExecutor(max_workers=2) as pool:
            self.score = list(counted(pool.map(run, range(n)), n))
        return trace, counts, orders


def best_order(worth: FloatArray, rng: np.random.Generator) -> BoolArray:
    """A closed order with a high sum of the worths of its pairs, shape (p, p) like the worths.

    The labels are shuffled, so that ties are broken at random and not by position. Local search
    after greedy insertion changed neither trust nor best guesses (E1 .806 and .807, 96 worlds).
    """
    p = len(worth)
    grid = np.ix_(*(rng.permutation(p),) * 2)
    out = np.zeros((p, p), dtype=bool)
    out[grid] = greedy_order(np.ascontiguousarray(worth[grid]))
    return out


def decode(probability: FloatArray, rng: np.random.Generator) -> BoolArray:
    """The closed order R with the largest Σ_R (2π − 1): the most right pairs, less the wrong ones.

    So a pair with a probability below one half is claimed only if other pairs imply it. The
    expected F1 would allow less probable pairs, but in sparse systems these are overstated: over
    180 worlds of six families the F1 was .875, with a threshold of F1/2 .869, and .836 against
    .796 in sparse ones.
    """
    return best_order(2.0 * probability - 1.0, rng)
