"""How does a fact follow from base facts? Steps that end in the fact.

Every base fact has a rank and follows from facts of lower rank (see `entailment`), so a proof is
found by going down in rank, and it is never circular.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from jigsaw_crl.assembly.certificate import Fact, Step
from jigsaw_crl.assembly.entailment import Facts

__all__ = ["NoProof", "Prover"]


class NoProof(Exception):
    """The fact does not follow."""


class Prover:
    """Writes the steps of one certificate.

    Parameters
    ----------
    facts : Facts
    base : callable
        The step of a base fact that is not derived, from `(a, d, holds)`.
    """

    def __init__(self, facts: Facts, base: Callable[[int, int, bool], Step]) -> None:
        self.facts, self.labels, self.base = facts, facts.evidence.labels, base
        self.steps: list[Step] = []
        self._written: dict[Fact, int] = {}

    def ancestor(self, a: int, d: int, holds: bool, facts: Facts | None = None) -> int:
        """Prove that a is (not) an ancestor of d from some of the facts, by default all."""
        facts = self.facts if facts is None else facts
        fact = Fact(self.labels[a], self.labels[d], holds)
        if fact in self._written:
            return self._written[fact]
        if not holds and not facts.denied[a, d]:
            return self._excluded(fact, a, d, facts)
        if holds:
            path = _path(facts, a, d)
            if len(path) > 2:
                because = [self.ancestor(u, v, True, facts) for u, v in pairwise(path)]
                return self._write(Step(fact, "chain", tuple(because)))
            if facts.rank[a, d] > 0:
                return self._derived(fact, a, d)
        return self._write(self.base(a, d, holds))

    def _excluded(self, fact: Fact, a: int, d: int, facts: Facts) -> int:
        """a → d would make u → v, for u above or equal to a and v below or equal to d.

        That is excluded if u → v is denied, if v → u is known, or if u is v.
        """
        (up, _), (down, _) = facts.routes(a, up=True), facts.routes(d)
        # Only these u and v are possible, which keeps the tables small.
        above, below = np.flatnonzero(np.isfinite(up)), np.flatnonzero(np.isfinite(down))
        grid = np.ix_(above, below)
        denied = np.where(facts.denied[grid], facts.doubt[grid], np.inf)
        same = np.where(above[:, None] == below, 0.0, np.inf)
        ways = np.stack((denied, facts.lengths.T[grid], same)) + up[above][:, None] + down[below]
        which, row, column = np.unravel_index(int(ways.argmin()), ways.shape)
        if not np.isfinite(ways[which, row, column]):
            raise NoProof
        u, v = int(above[row]), int(below[column])
        because = []
        if u != a:
            because.append(self.ancestor(u, a, True, facts))
        if v != d:
            because.append(self.ancestor(d, v, True, facts))
        if which == 0:
            because.append(self.ancestor(u, v, False, facts))
        elif which == 1:
            because.append(self.ancestor(v, u, True, facts))
        return self._write(Step(fact, "excluded", tuple(because)))

    def _derived(self, fact: Fact, a: int, d: int) -> int:
        """Each candidate of a disjunction is refuted, or a is an ancestor of it."""
        client, number = self.facts.reasons[a, d]
        rows = self.facts.evidence.panel.rows[client]
        candidates, _ = rows.one_of[number]
        earlier = self.facts.before(int(self.facts.rank[a, d]))
        because = [
            self.ancestor(c, d, False, earlier)
            if earlier.no[c, d]
            else self.ancestor(a, c, True, earlier)
            for c in candidates
            if c != a
        ]
        about = tuple(self.labels[c] for c in candidates)
        return self._write(Step(fact, "one-of", tuple(because), client=rows.client, about=about))

    def _write(self, step: Step) -> int:
        self.steps.append(step)
        self._written[step.fact] = len(self.steps) - 1
        return len(self.steps) - 1


def _path(facts: Facts, a: int, d: int) -> list[int]:
    length, previous = facts.routes(a)
    if not np.isfinite(length[d]):
        raise NoProof
    path = [d]
    while path[-1] != a:
        path.append(int(previous[path[-1]]))
    return path[::-1]
