"""How does a fact follow from certain statements? Steps that end in the fact.

Every base fact has a rank and follows from facts of lower rank (see `entailment`), so a proof is
found by going down in rank, and it is never circular.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.certificate import Fact, Step
from jigsaw_crl.assembly.exact.entailment import UNKNOWN, Facts, Reason
from jigsaw_crl.base.arrays import BoolArray

__all__ = ["Prover", "TooLong"]


class TooLong(Exception):
    """The proof has more steps than `most_steps`."""


class Prover:
    """Writes the steps of one certificate.

    Parameters
    ----------
    facts : Facts
    most_steps : int, optional
        Raise `TooLong` beyond this many steps.
    """

    def __init__(self, facts: Facts, most_steps: int | None = None) -> None:
        self.facts, self.labels = facts, facts.evidence.labels
        self.most_steps = most_steps
        self.steps: list[Step] = []
        self._written: dict[Fact, int] = {}
        self._known: dict[int, Facts] = {}

    def ancestor(self, a: int, d: int, holds: bool, before: int = UNKNOWN) -> int:
        """Prove that a is (not) an ancestor of d from base facts below rank `before`."""
        fact = Fact(self.labels[a], self.labels[d], holds)
        if fact in self._written:
            return self._written[fact]
        rank = int((self.facts.yes_rank if holds else self.facts.no_rank)[a, d])
        if rank == 0 and before > 0:
            yes, no = self.facts.evidence.sides(a, d)
            supporting, contradicting = (yes, no) if holds else (no, yes)
            rule = "known" if self.facts.evidence.panel.known[a, d] == holds else "stated"
            return self._write(Step(fact, rule, supporting=supporting, contradicting=contradicting))
        if rank < before:
            reason = self.facts.reasons[a, d, holds]
            return self._derived(fact, a, d, reason, rank)
        if holds:
            path = self._path(a, d, before)
            because = [self.ancestor(u, v, True, before) for u, v in pairwise(path)]
            return self._write(Step(fact, "chain", tuple(because)))
        return self._excluded(fact, a, d, before)

    def _excluded(self, fact: Fact, a: int, d: int, before: int) -> int:
        """a → d would make u → v, for u above or equal to a and v below or equal to d."""
        edges = self.facts.yes_rank < before
        up, _ = _distances(edges.T, a)
        down, _ = _distances(edges, d)
        # Only these u and v are possible, which keeps the tables small.
        above, below = np.flatnonzero(up >= 0), np.flatnonzero(down >= 0)
        grid = np.ix_(above, below)
        near = (up[above][:, None] + down[below][None, :]).astype(np.float64)
        cost = np.where(self.facts.no_rank[grid] < before, near, np.inf)
        reverse = np.where(edges.T[grid], near, np.inf)
        same = np.where(above[:, None] == below[None, :], near, np.inf)
        tables = [cost, reverse, same]
        which = int(np.argmin([t.min() for t in tables]))
        row, column = np.unravel_index(int(tables[which].argmin()), near.shape)
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
        distance, previous = _distances(self.facts.yes_rank < before, a)
        assert distance[d] > 0, "an ancestor without a path: a defect in entailment"
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


def _distances(edges: BoolArray, start: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Steps from `start` along `edges` (-1 if there is no path), and each label's predecessor."""
    p = len(edges)
    distance = np.full(p, -1, dtype=np.int64)
    previous = np.full(p, -1, dtype=np.int64)
    distance[start], front, depth = 0, np.array([start]), 0
    while front.size:
        depth += 1
        reached = edges[front]
        new = np.flatnonzero(reached.any(axis=0) & (distance < 0))
        previous[new] = front[reached[:, new].argmax(axis=0)]
        distance[new] = depth
        front = new
    return distance, previous
