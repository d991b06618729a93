"""How does a fact follow from base facts? Steps that end in the fact.

Every base fact has a rank and follows from facts of lower rank (see `entailment`), so a proof is
found by going down in rank, and it is never circular.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from jigsaw_crl.assembly.certificate import Fact, Step
from jigsaw_crl.assembly.exact.entailment import UNKNOWN, Facts, Reason

__all__ = ["NoProof", "Prover", "TooLong"]


class NoProof(Exception):
    """The fact does not follow."""


class TooLong(Exception):
    """The proof has more steps than `most_steps`."""


class Prover:
    """Writes the steps of one certificate.

    Parameters
    ----------
    facts : Facts
    base : callable
        The step of a base fact that is not derived, from `(a, d, holds)`.
    most_steps : int, optional
        Raise `TooLong` beyond this many steps.
    """

    def __init__(
        self,
        facts: Facts,
        base: Callable[[int, int, bool], Step],
        most_steps: int | None = None,
    ) -> None:
        self.facts, self.labels, self.base = facts, facts.evidence.labels, base
        self.most_steps = most_steps
        self.steps: list[Step] = []
        self._written: dict[Fact, int] = {}
        self._known: dict[int, Facts] = {}

    def ancestor(self, a: int, d: int, holds: bool, before: int = UNKNOWN) -> int:
        """Prove that a is (not) an ancestor of d from base facts below rank `before`."""
        fact = Fact(self.labels[a], self.labels[d], holds)
        if fact in self._written:
            return self._written[fact]
        if holds and len(path := self._path(a, d, before)) > 2:
            because = [self.ancestor(u, v, True, before) for u, v in pairwise(path)]
            return self._write(Step(fact, "chain", tuple(because)))
        rank = int((self.facts.yes_rank if holds else self.facts.no_rank)[a, d])
        if rank >= before:
            return self._excluded(fact, a, d, before)
        if rank == 0:
            return self._write(self.base(a, d, holds))
        return self._derived(fact, a, d, self.facts.reasons[a, d, holds], rank)

    def _excluded(self, fact: Fact, a: int, d: int, before: int) -> int:
        """a → d would make u → v, for u above or equal to a and v below or equal to d.

        That is excluded if u → v is denied, if v → u is known, or if u is v.
        """
        facts = self.facts
        up, _ = facts.routes(a, before, up=True)
        down, _ = facts.routes(d, before)
        # Only these u and v are possible, which keeps the tables small.
        above, below = np.flatnonzero(np.isfinite(up)), np.flatnonzero(np.isfinite(down))
        grid, reverse = np.ix_(above, below), np.ix_(below, above)
        denied = np.where(facts.no_rank[grid] < before, facts.doubt[grid], np.inf)
        known = np.where(facts.yes_rank[reverse] < before, facts.doubt[reverse], np.inf).T
        same = np.where(above[:, None] == below, 0.0, np.inf)
        ways = np.stack((denied, known, same)) + up[above][:, None] + down[below]
        which, row, column = np.unravel_index(int(ways.argmin()), ways.shape)
        if not np.isfinite(ways[which, row, column]):
            raise NoProof
        u, v = int(above[row]), int(below[column])
        because = []
        if u != a:
            because.append(self.ancestor(u, a, True, before))
        if v != d:
            because.append(self.ancestor(d, v, True, before))
        if which == 0:
            because.append(self.ancestor(u, v, False, before))
        elif which == 1:
            because.append(self.ancestor(v, u, True, before))
        return self._write(Step(fact, "excluded", tuple(because)))

    def _path(self, a: int, d: int, before: int) -> list[int]:
        length, previous = self.facts.routes(a, before)
        if not np.isfinite(length[d]):
            raise NoProof
        path = [d]
        while path[-1] != a:
            path.append(int(previous[path[-1]]))
        return path[::-1]

    def _derived(self, fact: Fact, a: int, d: int, reason: Reason, rank: int) -> int:
        rows = self.facts.evidence.panel.rows[reason.client]
        candidates, _ = rows.one_of[reason.number]
        because = [self._candidate(a, c, d, rank) for c in candidates if c != a]
        about = tuple(self.labels[c] for c in candidates)
        return self._write(Step(fact, "one-of", tuple(because), client=rows.client, about=about))

    def _candidate(self, a: int, c: int, d: int, rank: int) -> int:
        """Prove that the candidate c is refuted, or that a is an ancestor of it."""
        if rank not in self._known:
            self._known[rank] = self.facts.before(rank)
        if self._known[rank].no[c, d]:
            return self.ancestor(c, d, False, rank)
        return self.ancestor(a, c, True, rank)

    def _write(self, step: Step) -> int:
        if self.most_steps is not None and len(self.steps) >= self.most_steps:
            raise TooLong
        self.steps.append(step)
        self._written[step.fact] = len(self.steps) - 1
        return len(self.steps) - 1
