"""What do certain statements about ancestors imply? Sound; complete if no client names only a set.

Positives are closed under transitivity; negatives are the pairs that would contradict a known fact
(see `base.order.refuted`). Every other pair is undetermined: both answers occur in some order that
agrees with the statements.

Facts that do not follow from the order alone are entered as *base* facts with a rank, the round in
which they were derived. A base fact follows from facts of lower rank, so proofs are not circular.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import csgraph_from_dense, dijkstra

from jigsaw_crl.assembly.certificate import say
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import refuted, transitive_closure
from jigsaw_crl.fragment.fragment import NO, YES

__all__ = ["UNKNOWN", "Contradiction", "Facts", "Reason", "deduce"]

UNKNOWN = np.iinfo(np.int32).max
# What a step adds to a proof, as a doubt: a chain of firm facts is better than one that is not.
STEP = 1e-3


class Contradiction(Exception):
    """No order agrees with the statements; `pair` (ancestor, descendant) is one that conflicts."""

    def __init__(self, what: str, pair: tuple[int, int] | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.pair = pair

    def described(self, evidence: Evidence) -> str:
        """What contradicts what, and who says so."""
        text = f"the statements contradict each other ({self.what}"
        if self.pair is not None:
            text += ": " + " and ".join(evidence.labels[i] for i in self.pair)
            known = evidence.panel.known[self.pair]
            sides = zip(("yes", "no"), (YES, NO), evidence.sides(*self.pair), strict=True)
            for word, code, names in sides:
                text += f"; you say {word}" if known == code else ""
                text += f"; {say(names, word)}" if names else ""
        return text + "); they were weighed as evidence instead"


@dataclass(frozen=True)
class Reason:
    """How a base fact was derived.

    Parameters
    ----------
    client : int
        Number of the client that states "one of these is an ancestor".
    number : int
        Which of its statements it is.
    """

    client: int
    number: int


@dataclass(eq=False)
class Facts:
    """Facts about ordered pairs, closed under the order rules.

    Attributes
    ----------
    evidence : Evidence
        The statements.
    yes, no : array of bool, shape (p, p)
        What is known, closed.
    yes_rank, no_rank : array of int32, shape (p, p)
        Rank of each base fact, `UNKNOWN` for other pairs; 0 means stated.
    doubt : array, shape (p, p)
        Of base facts, from 0 (certain) to 1; proofs have as little of it as possible.
    reasons : dict
        From `(a, d, holds)` to the `Reason` of a derived base fact.
    clock : int
        The highest rank so far.
    """

    evidence: Evidence
    yes: BoolArray
    no: BoolArray
    yes_rank: npt.NDArray[np.int32]
    no_rank: npt.NDArray[np.int32]
    doubt: FloatArray
    reasons: dict[tuple[int, int, bool], Reason] = field(default_factory=dict)
    clock: int = 0

    _kept: dict[tuple[int, ...], Any] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, evidence: Evidence, yes: BoolArray, no: BoolArray, doubt: FloatArray) -> Facts:
        """Facts of which none is derived, not closed."""
        rank = [np.where(m, 0, UNKNOWN).astype(np.int32) for m in (yes, no)]
        return cls(evidence, yes, no, rank[0], rank[1], doubt)

    @classmethod
    def stated(cls, evidence: Evidence) -> Facts:
        """Everything that some client or the user states, and its closure."""
        known, (said, denied) = evidence.panel.known, evidence.counts
        yes, no = (said > 0) | (known == YES), (denied > 0) | (known == NO)
        out = cls.of(evidence, yes, no, np.zeros(yes.shape))
        out.close()
        return out

    def routes(
        self, start: int, before: int, *, up: bool = False
    ) -> tuple[FloatArray, npt.NDArray[np.int32]]:
        """Lengths of the shortest paths of base facts below a rank, and each label's predecessor.

        They lead from `start` to its descendants, or with `up` to its ancestors. A fact counts
        `STEP` and its doubt. Without a path the length is infinite.
        """
        kept = self._kept
        if (before, up) not in kept:
            length = np.where(self.yes_rank < before, STEP + self.doubt, np.inf)
            kept[before, up] = csgraph_from_dense(length.T if up else length, null_value=np.inf)
        if (before, up, start) not in kept:
            found = dijkstra(kept[before, up], indices=[start], return_predecessors=True)
            kept[before, up, start] = found[0][0], found[1][0]
        routes: tuple[FloatArray, npt.NDArray[np.int32]] = kept[before, up, start]
        return routes

    def before(self, rank: int) -> Facts:
        """What follows from the base facts below a rank."""
        yes, no = (np.where(r < rank, r, UNKNOWN) for r in (self.yes_rank, self.no_rank))
        part = replace(self, yes_rank=yes, no_rank=no)
        part.close()
        return part

    def add(self, a: int, d: int, holds: bool, reason: Reason) -> bool:
        """Enter a derived fact; False if it is known. The caller must call `settle` afterwards."""
        if (self.yes if holds else self.no)[a, d]:
            return False
        rank = self.yes_rank if holds else self.no_rank
        if rank[a, d] != UNKNOWN:
            return False
        rank[a, d] = self.clock + 1
        self.reasons[a, d, holds] = reason
        return True

    def close(self) -> None:
        """Compute `yes` and `no` from the base facts.

        Raises
        ------
        Contradiction
            No order agrees with them.
        """
        yes = transitive_closure(self.yes_rank != UNKNOWN)
        loop = np.flatnonzero(np.diagonal(yes))
        if loop.size:
            a = int(loop[0])
            d = int(np.flatnonzero(yes[a] & yes[:, a] & (np.arange(len(yes)) != a))[0])
            raise Contradiction("the ancestors form a cycle", (a, d))
        no = refuted(yes, self.no_rank != UNKNOWN)
        both = np.argwhere(yes & no)
        if len(both):
            raise Contradiction(
                "a pair is both stated and denied", (int(both[0][0]), int(both[0][1]))
            )
        self.yes, self.no = yes, no

    def settle(self) -> None:
        """Advance the clock past the facts just added, and close."""
        self.clock += 1
        self.close()


def deduce(evidence: Evidence) -> Facts:
    """Everything that follows from the clients' certain statements and disjunctions.

    Raises
    ------
    Contradiction
        No order agrees with the statements.
    """
    facts = Facts.stated(evidence)
    while _resolve(facts):
        pass
    return facts


def _resolve(facts: Facts) -> bool:
    """One pass over "one of these is an ancestor of d"; True if it adds a fact.

    Candidates that are known not to be ancestors are removed. A label c that equals or is an
    ancestor of every remaining candidate is an ancestor of d.
    """
    panel = facts.evidence.panel
    above = facts.yes | np.eye(len(panel.labels), dtype=bool)
    learnt = False
    for k, rows in enumerate(panel.rows):
        for number, (candidates, d) in enumerate(rows.one_of):
            left = [c for c in candidates if not facts.no[c, d]]
            if not left:
                raise Contradiction(
                    "every candidate of a disjunction is refuted", (candidates[0], d)
                )
            if any(facts.yes[c, d] for c in left):
                continue
            common = np.asarray(above[:, left].all(axis=1), dtype=bool)
            # Higher common ancestors follow from the lowest ones.
            lowest = common & ~(facts.yes & common[None, :]).any(axis=1)
            for c in np.flatnonzero(lowest).tolist():
                learnt |= facts.add(c, d, True, Reason(k, number))
    if learnt:
        facts.settle()
    return learnt
