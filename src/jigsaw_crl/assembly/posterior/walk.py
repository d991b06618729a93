"""What an order is worth, and one chain that walks through orders.

    log posterior(R) = Σ_{(a, d) ∈ R} implied[a, d] + Σ_{covers of R} cover[a, d]
                       + Σ_{d with an ancestor in R} ancestry[d] − FACT · broken(R) + constant

The three weights hold the clients' evidence and the prior (see `rounds`). `Weights.plain` is the
simplest case: log-odds less `PAIR_COST` for every pair, and `COVER_COST` for every cover. `broken`
is the number of statements "one of these is an ancestor of d" that R contradicts.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import cover_matrix
from jigsaw_crl.evidence.priors import PAIR_COST

__all__ = ["COVER_COST", "FACT", "KNOWN", "SETTLED", "Chain", "OneOf", "Proposals", "Weights"]

Words = npt.NDArray[np.uint64]
# Candidates, one of which is an ancestor of the last.
OneOf = tuple[tuple[int, ...], int]

# Log-odds that stand for certainty: e^−200 of the orders contradict a fact.
FACT = 200.0

# Log-odds of what the user knows: more than the evidence of all clients can outweigh.
KNOWN = 1e6
# Cost of a cover where nothing else is known about covers.
COVER_COST = 1.0
# A pair whose weight is further than this from zero flips less than once in e^12 proposals.
SETTLED = 12.0
# Beyond this many unsettled pairs, absent ones with a weight below UNLIKELY are proposed less.
MANY, UNLIKELY = 50_000, -3.5
# Among pairs that were seen to change: one proposal in ASIDE is any pair, and there are FLIPS flips
# for every larger move. (At 300 labels, 8 flips left three times as many pairs on which chains
# differ, after the same time.) In addition, one pair in AROUND of all pairs is flipped alone: pairs
# that change seldom would hold up all others.
ASIDE, FLIPS, AROUND = 8, 1, 8
# Up to this many labels an order's row is one word, and a bridge costs little more than a flip.
ONE_WORD = 64
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
    one_of : tuple of (tuple of int, int)
        Statements that an order should not contradict.
    """

    implied: FloatArray
    cover: FloatArray
    ancestry: FloatArray
    one_of: tuple[OneOf, ...] = ()

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


def unsettled(weights: Weights, start: BoolArray) -> IntArray:
    """Pairs `a * p + d` to propose often: not settled and, if there are many, not unlikely."""
    weight = np.fmax(weights.direct, weights.implied)
    chosen = (np.abs(weight) < SETTLED) & ~np.eye(len(weight), dtype=bool)
    if chosen.sum() > MANY:
        # A pair that is added alone is a cover.
        chosen &= (weights.direct > UNLIKELY) | start
    return np.flatnonzero(chosen).astype(np.int64)


def n_proposals(p: int, n_active: int) -> int:
    """Proposals per sweep: about two per active pair and, while that is cheap, one per pair."""
    return int(max(min(p * p, 20_000), 2 * n_active, 64))


@dataclass(frozen=True, eq=False)
class Proposals:
    """Which pairs a chain proposes, and how often.

    Parameters
    ----------
    active : array of int, shape (n,)
        Pairs `a * p + d` that are proposed often.
    starts : array of int, shape (p + 1,) or (0,)
    touching : array of int, shape (2 n,) or (0,)
        The active pairs of label x are `touching[starts[x] : starts[x + 1]]`. If these are given,
        two bridges that have a label in common are also proposed together.
    number : int
        Proposals per sweep.
    aside : int
        One proposal in `aside` is any pair, the others are active ones.
    flips : int
        Turns of flips for every turn of a larger move; a turn is `aside` proposals.
    around : int
        Flips of any pair that are proposed in addition, per sweep. They are cheap, and most pairs
        are improbable, but there are many of them.
    """

    active: IntArray
    starts: IntArray
    touching: IntArray
    number: int
    aside: int
    flips: int
    around: int = 0

    @classmethod
    def of(cls, weights: Weights, start: BoolArray) -> Proposals:
        """Every pair that is not settled, and every other time any pair."""
        active = unsettled(weights, start)
        none = np.zeros(0, dtype=np.int64)
        flips = 1 if len(weights) <= ONE_WORD else 8
        return cls(active, none, none, n_proposals(len(weights), len(active)), 2, flips)

    @classmethod
    def among(cls, moving: BoolArray) -> Proposals:
        """The pairs that were seen to change, one by one and two at a time."""
        a, d = (x.astype(np.int64) for x in np.nonzero(moving))
        p = len(moving)
        active = a * p + d
        label, both = np.concatenate([a, d]), np.concatenate([active, active])
        starts = np.concatenate([[0], np.cumsum(np.bincount(label, minlength=p))])
        touching = both[np.argsort(label, kind="stable")]
        number = max(4 * len(active), 2 * p)
        return cls(active, starts.astype(np.int64), touching, number, ASIDE, FLIPS, p * p // AROUND)


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
    proposals : Proposals
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
    proposals: Proposals
    random: Words
    score: float

    @classmethod
    def at(
        cls,
        matrix: BoolArray,
        weights: Weights,
        rng: np.random.Generator,
        *,
        proposals: Proposals | None = None,
        score: float = 0.0,
    ) -> Chain:
        """A chain that starts at the given order.

        If `proposals` is None, all pairs are proposed that are not settled. Without `score`, the
        chain's score counts from zero.
        """
        # Imported here because it loads the compiler.
        from jigsaw_crl.base.bitsets import pack

        named = np.zeros((len(weights.one_of), len(matrix)), dtype=bool)
        for row, (names, _) in zip(named, weights.one_of, strict=True):
            row[list(names)] = True
        return cls(
            up=pack(matrix),
            down=pack(matrix.T),
            weights=weights,
            named=pack(named),
            targets=np.array([d for _, d in weights.one_of], dtype=np.int64),
            proposals=Proposals.of(weights, matrix) if proposals is None else proposals,
            random=rng.integers(0, 2**63, size=1, dtype=np.uint64),
            score=score,
        )

    def matrix(self) -> BoolArray:
        """The order, shape (p, p)."""
        from jigsaw_crl.base.bitsets import unpack

        return unpack(self.up, len(self.up))

    def walk(
        self,
        sweeps: int,
        *,
        beta: float = 1.0,
        counts: npt.NDArray[np.int32] | None = None,
        kept: Words | None = None,
    ) -> FloatArray:
        """Move through `sweeps` sweeps; returns the score after each, shape (sweeps,).

        Parameters
        ----------
        sweeps : int
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
            active=self.proposals.active,
            starts=self.proposals.starts,
            touching=self.proposals.touching,
            proposals=self.proposals.number,
            aside=self.proposals.aside,
            flips=self.proposals.flips,
            around=self.proposals.around,
            beta=float(beta),
            counts=np.empty((0, 0), dtype=np.int32) if counts is None else counts,
            kept=np.empty((0, 0, 0), dtype=np.uint64) if kept is None else kept,
            trace=trace,
        )
        return trace
