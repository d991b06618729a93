"""What an order is worth, and one chain that walks through orders.

    log posterior(R) = Σ_{(a, d) ∈ R} implied[a, d] + Σ_{covers of R} cover[a, d]
                       + Σ_{d with an ancestor in R} ancestry[d] − FACT · broken(R) + constant

The three weights hold the clients' evidence and the prior (see `rounds`). `Weights.of` is the
simplest case: log-odds less a cost for every pair, and a cost for every cover. `broken` is the
number of statements "one of these is an ancestor of d" that R contradicts.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import cover_matrix
from jigsaw_crl.evidence.priors import PAIR_COST

__all__ = ["BRIDGES", "FACT", "KNOWN", "SETTLED", "Chain", "OneOf", "Weights", "Words"]

Words = npt.NDArray[np.uint64]
# Candidates, one of which is an ancestor of the last.
OneOf = tuple[tuple[int, ...], int]

# Log-odds that stand for certainty: e^−200 of the orders contradict a fact.
FACT = 200.0
# Log-odds of what the user knows: more than the evidence of all clients can outweigh.
KNOWN = 1e6
# Weights further than this from zero say the same: a pair of this weight has odds of e^12.
SETTLED = 12.0
# Bridges that a sweep proposes for every active pair.
BRIDGES = 2
# Flips that a sweep proposes for every label: one for each of its pairs, up to this many.
MOST_FLIPS = 128


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

    @classmethod
    def of(
        cls,
        log_odds: FloatArray,
        *,
        pair_cost: float = PAIR_COST,
        cover_cost: float = 1.0,
        one_of: tuple[OneOf, ...] = (),
    ) -> Weights:
        """Log-odds of every pair, and the same costs for all pairs and for all covers."""
        cover = np.full(log_odds.shape, -cover_cost)
        ancestry = np.zeros(len(log_odds))
        return cls(np.ascontiguousarray(log_odds - pair_cost), cover, ancestry, one_of)

    def __len__(self) -> int:
        return len(self.implied)

    @property
    def direct(self) -> FloatArray:
        """Worth of each pair if it is a cover, shape (p, p)."""
        return self.implied + self.cover

    @property
    def insertion(self) -> FloatArray:
        """Worth of each pair for greedy insertion; a cost that all covers share does not count."""
        return self.implied if np.ptp(self.cover) == 0.0 else self.direct

    def shuffled(self, order: IntArray) -> Weights:
        """The weights of the labels in another order."""
        grid = np.ix_(order, order)
        place = np.argsort(order)
        return Weights(
            np.ascontiguousarray(self.implied[grid]),
            np.ascontiguousarray(self.cover[grid]),
            np.ascontiguousarray(self.ancestry[order]),
            tuple((tuple(place[list(names)].tolist()), int(place[d])) for names, d in self.one_of),
        )

    def broken(self, orders: BoolArray) -> IntArray:
        """Number of statements that each order of shape (..., p, p) contradicts."""
        total = np.zeros(orders.shape[:-2], dtype=np.int64)
        for names, d in self.one_of:
            total += ~orders[..., list(names), d].any(axis=-1)
        return total

    def score(self, matrix: BoolArray) -> float:
        """Worth of one order."""
        pairs = float(self.implied[matrix].sum() + self.cover[cover_matrix(matrix)].sum())
        certain = FACT * float(self.broken(matrix))
        return pairs + float(self.ancestry[matrix.any(axis=0)].sum()) - certain


@dataclass(eq=False)
class Chain:
    """The state of one Markov chain over orders.

    Parameters
    ----------
    up, down : array of uint64, shape (p, words)
        The order as bit sets: descendants of each label, and ancestors.
    weights : Weights
    named : array of uint64, shape (n, words)
    targets : array of int, shape (n,)
        Candidates of each statement `weights.one_of`, and the label below one of them.
    active : array of int, shape (m,)
        Pairs `a * p + d` whose bridges are proposed.
    starts : array of int, shape (p + 1,)
    touching : array of int, shape (2 m,)
        The active pairs of label x are `touching[starts[x] : starts[x + 1]]`.
    random : array of uint64, shape (1,)
        State of the chain's own random generator.
    score : float
        Score of the order (less the score at the start, if that was not given).
    """

    up: Words
    down: Words
    weights: Weights
    named: Words
    targets: IntArray
    active: IntArray
    starts: IntArray
    touching: IntArray
    random: Words
    score: float

    @classmethod
    def at(
        cls,
        matrix: BoolArray,
        weights: Weights,
        rng: np.random.Generator,
        *,
        moving: BoolArray,
        score: float = 0.0,
    ) -> Chain:
        """A chain that starts at the given order, and proposes the bridges of `moving` pairs."""
        # Imported here because it loads the compiler.
        from jigsaw_crl.base.bitsets import pack

        named = np.zeros((len(weights.one_of), len(matrix)), dtype=bool)
        for row, (names, _) in zip(named, weights.one_of, strict=True):
            row[list(names)] = True
        none = np.zeros(0, dtype=np.int64)
        chain = cls(
            up=pack(matrix),
            down=pack(matrix.T),
            weights=weights,
            named=pack(named),
            targets=np.array([d for _, d in weights.one_of], dtype=np.int64),
            active=none,
            starts=none,
            touching=none,
            random=rng.integers(0, 2**63, size=1, dtype=np.uint64),
            score=score,
        )
        chain.propose(moving)
        return chain

    def propose(self, moving: BoolArray) -> None:
        """From now on propose the bridges of these pairs, shape (p, p)."""
        p = len(moving)
        a, d = (x.astype(np.int64) for x in np.nonzero(moving))
        self.active = a * p + d
        label = np.concatenate([a, d])
        self.starts = np.searchsorted(np.sort(label), np.arange(p + 1)).astype(np.int64)
        self.touching = np.tile(self.active, 2)[np.argsort(label, kind="stable")]

    @property
    def flips(self) -> int:
        """Flips in a sweep."""
        return len(self.up) * min(len(self.up), MOST_FLIPS)

    def matrix(self) -> BoolArray:
        """The order, shape (p, p)."""
        from jigsaw_crl.base.bitsets import unpack

        return unpack(self.up, len(self.up))

    def walk(
        self,
        sweeps: int,
        *,
        flips: int | None = None,
        beta: float = 1.0,
        counts: npt.NDArray[np.int32] | None = None,
        kept: Words | None = None,
    ) -> FloatArray:
        """Move through `sweeps` sweeps; returns the score after each, shape (sweeps,).

        Parameters
        ----------
        sweeps : int
        flips : int, optional
            Flips in a sweep, if not `self.flips`.
        beta : float
            Inverse temperature; 1 samples the posterior.
        counts : array of int32, shape (p, p), optional
            Incremented at the pairs of the order after each sweep.
        kept : array of uint64, shape (n, p, words), optional
            Filled with `up` as it is at n evenly spaced sweeps, at most one a sweep.
        """
        from jigsaw_crl.assembly.posterior.metropolis import metropolis

        trace = np.empty(sweeps)
        self.score = metropolis(
            up=self.up,
            down=self.down,
            implied=self.weights.implied,
            cover=self.weights.cover,
            ancestry=self.weights.ancestry,
            named=self.named,
            targets=self.targets,
            random=self.random,
            score=self.score,
            active=self.active,
            starts=self.starts,
            touching=self.touching,
            flips=self.flips if flips is None else flips,
            beta=float(beta),
            counts=np.empty((0, 0), dtype=np.int32) if counts is None else counts,
            kept=np.empty((0, 0, 0), dtype=np.uint64) if kept is None else kept,
            trace=trace,
        )
        return trace
