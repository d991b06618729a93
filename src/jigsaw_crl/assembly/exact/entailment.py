"""What do certain statements about ancestors imply? Sound; complete if no client names only a set.

Positives are closed under transitivity; negatives are the pairs that would contradict a known fact
(see `base.order.refuted`). Every other pair is undetermined: both answers occur in some order that
agrees with the statements.

Facts that do not follow from the order alone are entered as *base* facts with a rank, the round in
which they were derived. A base fact follows from facts of lower rank, so proofs are not circular.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.order import refuted, transitive_closure
from jigsaw_crl.fragment.fragment import NO, YES

__all__ = ["UNKNOWN", "Contradiction", "Knowledge", "entail"]

UNKNOWN = np.iinfo(np.int32).max


class Contradiction(Exception):
    """No order agrees with the statements; `pair` (ancestor, descendant) is one that conflicts."""

    def __init__(self, what: str, pair: tuple[int, int]) -> None:
        super().__init__(what)
        self.what = what
        self.pair = pair


@dataclass(eq=False)
class Knowledge:
    """Facts about ordered pairs, closed under the order rules.

    Attributes
    ----------
    yes, no : array of bool, shape (p, p)
        What is known, closed.
    yes_rank, no_rank : array of int32, shape (p, p)
        Rank of each base fact, `UNKNOWN` for other pairs; 0 means stated by a client.
    reasons : dict
        From a derived ancestor pair `(a, d)` to the client and the number of its disjunction that
        it was derived from.
    clock : int
        The highest rank so far.
    """

    yes: BoolArray
    no: BoolArray
    yes_rank: npt.NDArray[np.int32]
    no_rank: npt.NDArray[np.int32]
    reasons: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    clock: int = 0
    _below: dict[int, tuple[BoolArray, BoolArray]] = field(default_factory=dict)

    @classmethod
    def stated(cls, panel: Panel) -> Knowledge:
        """Everything that some client states, and its closure."""
        yes, no = _stated_pairs(panel)
        rank = [np.where(m, 0, UNKNOWN).astype(np.int32) for m in (yes, no)]
        out = cls(yes, no, rank[0], rank[1])
        out.close()
        return out

    def below(self, rank: int) -> tuple[BoolArray, BoolArray]:
        """The closure (yes, no) of the base facts below a rank."""
        if rank not in self._below:
            ranks = [np.where(x < rank, x, UNKNOWN) for x in (self.yes_rank, self.no_rank)]
            part = Knowledge(self.yes, self.no, ranks[0], ranks[1])
            part.close()
            self._below[rank] = (part.yes, part.no)
        return self._below[rank]

    def add(self, a: int, d: int, reason: tuple[int, int]) -> bool:
        """Enter a derived ancestor; False if it is known. `settle` must be called afterwards."""
        if self.yes[a, d] or self.yes_rank[a, d] != UNKNOWN:
            return False
        self.yes_rank[a, d] = self.clock + 1
        self.reasons[a, d] = reason
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


def _stated_pairs(panel: Panel) -> tuple[BoolArray, BoolArray]:
    """What some client states, and what some client denies, shape (p, p) each."""
    p = len(panel.labels)
    yes, no = np.zeros((2, p, p), dtype=bool)
    for c in panel.claims:
        if c.certain is not None:
            grid = np.ix_(c.members, c.members)
            yes[grid] |= c.certain == YES
            no[grid] |= c.certain == NO
    np.fill_diagonal(yes, False)
    np.fill_diagonal(no, False)
    return yes, no


def entail(panel: Panel) -> Knowledge:
    """Everything that follows from the clients' certain statements and disjunctions.

    Raises
    ------
    Contradiction
        No order agrees with the statements.
    """
    knowledge = Knowledge.stated(panel)
    while _resolve(knowledge, panel):
        pass
    return knowledge


def _resolve(knowledge: Knowledge, panel: Panel) -> bool:
    """One pass over "one of these is an ancestor of d"; True if it adds a fact.

    Candidates that are known not to be ancestors are removed. A label c that equals or is an
    ancestor of every remaining candidate is an ancestor of d.
    """
    eye = np.eye(len(panel.labels), dtype=bool)
    above = knowledge.yes | eye
    learnt = False
    for k, claims in enumerate(panel.claims):
        for number, (candidates, d) in enumerate(claims.one_of):
            left = [c for c in candidates if not knowledge.no[c, d]]
            if not left:
                raise Contradiction(
                    "every candidate of a disjunction is refuted", (candidates[0], d)
                )
            if any(knowledge.yes[c, d] for c in left):
                continue
            common = np.asarray(above[:, left].all(axis=1), dtype=bool)
            # Higher common ancestors follow from the lowest ones.
            lowest = common & ~(knowledge.yes & common[None, :]).any(axis=1)
            for c in np.flatnonzero(lowest).tolist():
                learnt |= knowledge.add(c, d, (k, number))
    if learnt:
        knowledge.settle()
    return learnt
