"""One order on its way through the posterior: its state, its score, its walk.

    log posterior(R) = Σ_{(a, d) ∈ R} (E[a, d] − PAIR_COST) − COVER_COST · number of covers of R

`E` is the clients' pooled log-odds. The two costs are the prior, which prefers few ancestors. (A
`PAIR_COST` of ½ gained 0.005 to 0.02 of F1 where a fifth of the statements is wrong, and lost as
much on the paper's settings from samples.)

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.order import cover_matrix

__all__ = ["COVER_COST", "SETTLED", "Chain", "order_score"]

FloatArray = npt.NDArray[np.float64]
BoolMatrix = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

COVER_COST = 1.0
# A pair whose weight is further than this from zero flips less than once in e^12 proposals.
SETTLED = 12.0
# Beyond this many unsettled pairs, absent ones with a weight below UNLIKELY are proposed less.
MANY, UNLIKELY = 50_000, -3.5
# Inverse temperature at which only moves that do not lower the score are accepted.
COLD = 1e9


def order_score(matrix: BoolMatrix, weight: FloatArray, cover_cost: float) -> float:
    """Σ_{(a, d) ∈ R} weight − cover_cost · covers."""
    return float(weight[matrix].sum()) - cover_cost * int(cover_matrix(matrix).sum())


def unsettled(weight: FloatArray, start: BoolMatrix) -> IntArray:
    """Pairs `a * p + d` to propose often: not settled and, if there are many, not unlikely."""
    p = len(weight)
    chosen = (np.abs(weight) < SETTLED) & ~np.eye(p, dtype=bool)
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
    weight : array, shape (p, p)
    cover_cost : float
    active : array of int, shape (n,)
        Pairs that are proposed often; see `unsettled`.
    random : array of uint64, shape (1,)
        State of the chain's own random generator.
    score : float
        Score of the order (less the score at the start, if that was not given).
    """

    up: Words
    down: Words
    weight: FloatArray
    cover_cost: float
    active: IntArray
    random: Words
    score: float

    @classmethod
    def at(
        cls,
        matrix: BoolMatrix,
        weight: FloatArray,
        rng: np.random.Generator,
        *,
        cover_cost: float = COVER_COST,
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
            weight=weight,
            cover_cost=float(cover_cost),
            active=unsettled(weight, matrix) if active is None else active,
            random=rng.integers(0, 2**63, size=1, dtype=np.uint64),
            score=score,
        )

    def matrix(self) -> BoolMatrix:
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
            weight=self.weight,
            cover_cost=self.cover_cost,
            random=self.random,
            score=self.score,
            active=self.active,
            proposals=n_proposals(len(self.up), len(self.active)),
            beta=float(beta),
            counts=np.empty((0, 0), dtype=np.int32) if counts is None else counts,
            trace=trace,
        )
        return trace
