"""What an order is worth, and one chain that walks through orders.

    log posterior(R) = Σ_{(a, d) ∈ R} implied[a, d] + Σ_{covers of R} cover[a, d]
                       + Σ_{d with an ancestor in R} ancestry[d] + constant

The three weights hold the clients' evidence and the prior (see `rounds`). `Weights.plain` is the
simplest case: log-odds less `PAIR_COST` for every pair, and `COVER_COST` for every cover.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import cover_matrix
from jigsaw_crl.evidence.priors import PAIR_COST

__all__ = ["COVER_COST", "SETTLED", "Chain", "Weights"]

Words = npt.NDArray[np.uint64]

# Cost of a cover where nothing else is known about covers.
COVER_COST = 1.0
# A pair whose weight is further than this from zero flips less than once in e^12 proposals.
SETTLED = 12.0
# Beyond this many unsettled pairs, absent ones with a weight below UNLIKELY are proposed less.
MANY, UNLIKELY = 50_000, -3.5
# Inverse temperature at which only moves that do not lower the score are accepted.
COLD = 1e9


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
    """

    implied: FloatArray
    cover: FloatArray
    ancestry: FloatArray

    @classmethod
    def plain(cls, weight: FloatArray, cover_cost: float = COVER_COST) -> Weights:
        """One weight per pair, and the same cost for every cover."""
        cover = np.full(weight.shape, -float(cover_cost))
        return cls(np.ascontiguousarray(weight), cover, np.zeros(len(weight)))

    @classmethod
    def of(cls, evidence: Weights | FloatArray) -> Weights:
        """The weights themselves, or those of log-odds E: `plain(E − PAIR_COST)`."""
        return evidence if isinstance(evidence, Weights) else cls.plain(evidence - PAIR_COST)

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
        return Weights(
            np.ascontiguousarray(self.implied[grid]),
            np.ascontiguousarray(self.cover[grid]),
            np.ascontiguousarray(self.ancestry[order]),
        )

    def score(self, matrix: BoolArray) -> float:
        """Worth of one order."""
        pairs = float(self.implied[matrix].sum() + self.cover[cover_matrix(matrix)].sum())
        return pairs + float(self.ancestry[matrix.any(axis=0)].sum())


def unsettled(weights: Weights, start: BoolArray) -> IntArray:
    """Pairs `a * p + d` to propose often: not settled and, if there are many, not unlikely."""
    weight = np.fmax(weights.direct, weights.implied)
    chosen = (np.abs(weight) < SETTLED) & ~np.eye(len(weight), dtype=bool)
    if chosen.sum() > MANY:
        chosen &= (weight > UNLIKELY) | start
    return np.flatnonzero(chosen).astype(np.int64)


def n_proposals(p: int, n_active: int) -> int:
    """Proposals per sweep: about two per active pair and, while that is cheap, one per pair."""
    return int(max(min(p * p, 20_000), 2 * n_active, 64))


@dataclass(eq=False)
class Chain:
    """The state of one Markov chain over orders.

    Parameters
    ----------
    up, down : array of uint64, shape (p, words)
        The order as bit sets: descendants of each label, and ancestors.
    weights : Weights
    active : array of int, shape (n,)
        Pairs that are proposed often; see `unsettled`.
    random : array of uint64, shape (1,)
        State of the chain's own random generator.
    score : float
        Score of the order (less the score at the start, if that was not given).
    """

    up: Words
    down: Words
    weights: Weights
    active: IntArray
    random: Words
    score: float

    @classmethod
    def at(
        cls,
        matrix: BoolArray,
        weights: Weights,
        rng: np.random.Generator,
        *,
        active: IntArray | None = None,
        score: float = 0.0,
    ) -> Chain:
        """A chain that starts at the given order.

        `active` is computed if None. Without `score`, the chain's score counts from zero.
        """
        # Imported here because it loads the compiler.
        from jigsaw_crl.base.bitsets import pack

        return cls(
            up=pack(matrix),
            down=pack(matrix.T),
            weights=weights,
            active=unsettled(weights, matrix) if active is None else active,
            random=rng.integers(0, 2**63, size=1, dtype=np.uint64),
            score=score,
        )

    def matrix(self) -> BoolArray:
        """The order, shape (p, p)."""
        from jigsaw_crl.base.bitsets import unpack

        return unpack(self.up, len(self.up))

    def walk(
        self, sweeps: int, *, beta: float = 1.0, counts: npt.NDArray[np.int32] | None = None
    ) -> FloatArray:
        """Move through `sweeps` sweeps; returns the score after each, shape (sweeps,).

        Parameters
        ----------
        sweeps : int
        beta : float
            Inverse temperature; 1 samples the posterior.
        counts : array of int32, shape (p, p), optional
            Incremented at the pairs of the order after each sweep.
        """
        from jigsaw_crl.assembly.posterior.moves import metropolis

        trace = np.empty(sweeps)
        self.score = metropolis(
            up=self.up,
            down=self.down,
            implied=self.weights.implied,
            cover=self.weights.cover,
            ancestry=self.weights.ancestry,
            random=self.random,
            score=self.score,
            active=self.active,
            proposals=n_proposals(len(self.up), len(self.active)),
            beta=float(beta),
            counts=np.empty((0, 0), dtype=np.int32) if counts is None else counts,
            trace=trace,
        )
        return trace
