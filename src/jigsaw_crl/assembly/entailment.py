"""What do certain statements about ancestors imply? Sound; complete if no client names only a set.

Positives are closed under transitivity; negatives are the pairs that would contradict a known fact
(see `base.order.refuted`). Every other pair is undetermined: both answers occur in some order that
agrees with the statements.

Facts that do not follow from the order alone are entered as *base* facts with a rank, the round in
which they were derived. A base fact follows from facts of lower rank, so proofs are not circular.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse.csgraph import csgraph_from_dense, dijkstra

from jigsaw_crl.assembly.certificate import say
from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import refuted, transitive_closure
from jigsaw_crl.fragment.fragment import NO, YES

__all__ = ["UNKNOWN", "Contradiction", "Facts", "Routes", "deduce"]

Routes = tuple[FloatArray, npt.NDArray[np.int32]]

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


@dataclass(eq=False)
class Facts:
    """Facts about ordered pairs, closed under the order rules.

    Attributes
    ----------
    evidence : Evidence
        The statements.
    yes, no : array of bool, shape (p, p)
        What is known, closed.
    rank : array of int32, shape (p, p)
        Rank of each base fact "is an ancestor", `UNKNOWN` for other pairs; 0 means stated.
    denied : array of bool, shape (p, p)
        The base facts "is not an ancestor", all of them stated.
    doubt : array, shape (p, p)
        Of base facts, from 0 (certain) to 1; proofs have as little of it as possible.
    reasons : dict
        Of base facts `(a, d)` that are derived: the number of the client that states "one of these
        is an ancestor", and which of its statements it is.
    """

    evidence: Evidence
    yes: BoolArray
    no: BoolArray
    rank: npt.NDArray[np.int32]
    denied: BoolArray
    doubt: FloatArray
    reasons: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    _before: dict[int, Facts] = field(default_factory=dict, init=False)
    _routes: dict[tuple[int, bool], Routes] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, evidence: Evidence, yes: BoolArray, no: BoolArray, doubt: FloatArray) -> Facts:
        """Facts of which none is derived, not closed."""
        rank = np.where(yes, 0, UNKNOWN).astype(np.int32)
        return cls(evidence, yes, no, rank, no, doubt)

    @classmethod
    def stated(cls, evidence: Evidence) -> Facts:
        """Everything that some client or the user states, and its closure."""
        known, (said, denied) = evidence.panel.known, evidence.counts
        yes, no = (said > 0) | (known == YES), (denied > 0) | (known == NO)
        out = cls.of(evidence, yes, no, np.zeros(yes.shape))
        out.close()
        return out

    @cached_property
    def lengths(self) -> FloatArray:
        """What each base fact adds to a path: `STEP` and its doubt; infinite for other pairs."""
        return np.where(self.rank < UNKNOWN, STEP + self.doubt, np.inf)

    def routes(self, start: int, *, up: bool = False) -> Routes:
        """Lengths of the shortest paths of base facts, and each label's predecessor.

        They lead from `start` to its descendants, or with `up` to its ancestors.
        """
        if (start, up) not in self._routes:
            length = self.lengths.T if up else self.lengths
            graph = csgraph_from_dense(length, null_value=np.inf)
            found = dijkstra(graph, indices=[start], return_predecessors=True)
            self._routes[start, up] = found[0][0], found[1][0]
        return self._routes[start, up]

    def before(self, rank: int) -> Facts:
        """What follows from the base facts below a rank."""
        if rank not in self._before:
            ranks = np.where(self.rank < rank, self.rank, UNKNOWN)
            self._before[rank] = replace(self, rank=ranks)
            self._before[rank].close()
        return self._before[rank]

    def close(self) -> None:
        """Compute `yes` and `no` from the base facts.

        Raises
        ------
        Contradiction
            No order agrees with them.
        """
        yes = transitive_closure(self.rank != UNKNOWN)
        loop = np.flatnonzero(np.diagonal(yes))
        if loop.size:
            a = int(loop[0])
            d = int(np.flatnonzero(yes[a] & yes[:, a] & (np.arange(len(yes)) != a))[0])
            raise Contradiction("the ancestors form a cycle", (a, d))
        no = refuted(yes, self.denied)
        both = np.argwhere(yes & no)
        if len(both):
            raise Contradiction(
                "a pair is both stated and denied", (int(both[0][0]), int(both[0][1]))
            )
        self.yes, self.no = yes, no


def deduce(evidence: Evidence) -> Facts:
    """Everything that follows from the clients' certain statements and disjunctions.

    Raises
    ------
    Contradiction
        No order agrees with the statements.
    """
    facts, rank = Facts.stated(evidence), 1
    while derived := _resolve(facts):
        for pair, reason in derived.items():
            facts.rank[pair], facts.reasons[pair] = rank, reason
        facts.close()
        rank += 1
    return facts


def _resolve(facts: Facts) -> dict[tuple[int, int], tuple[int, int]]:
    """New ancestors from one pass over "one of these is an ancestor of d", each with its reason.

    Candidates that are known not to be ancestors are removed. A label c that equals or is an
    ancestor of every remaining candidate is an ancestor of d.
    """
    panel = facts.evidence.panel
    above = facts.yes | np.eye(len(panel.labels), dtype=bool)
    found: dict[tuple[int, int], tuple[int, int]] = {}
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
            for c in np.flatnonzero(lowest & ~facts.yes[:, d]).tolist():
                found.setdefault((c, d), (k, number))
    return found
