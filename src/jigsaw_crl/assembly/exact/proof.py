"""How does a fact follow from certain statements? Steps that end in the fact.

Every base fact has a rank and follows from facts of lower rank (see `entailment`), so a proof is
found by going down in rank, and it is never circular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.certificate import Fact, Step, sides
from jigsaw_crl.assembly.exact.entailment import UNKNOWN, Knowledge, Reason
from jigsaw_crl.assembly.exact.hidden import HiddenReach
from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import BoolArray, IntArray

__all__ = ["Prover", "TooLong"]


class TooLong(Exception):
    """The proof has more steps than `most_steps`."""


class Prover:
    """Writes the steps of one certificate.

    Parameters
    ----------
    panel : Panel
    knowledge : Knowledge
    views : dict of int to HiddenReach
        By number of client.
    known : dict, optional
        Closures by rank, shared between certificates.
    most_steps : int, optional
        Raise `TooLong` beyond this many steps.
    """

    def __init__(
        self,
        panel: Panel,
        knowledge: Knowledge,
        views: dict[int, HiddenReach],
        known: dict[int, tuple[BoolArray, BoolArray]] | None = None,
        most_steps: int | None = None,
    ) -> None:
        self.panel, self.knowledge, self.views = panel, knowledge, views
        self.most_steps = most_steps
        self.steps: list[Step] = []
        self._written: dict[Fact, int] = {}
        self._known = {} if known is None else known

    # -- ancestors ------------------------------------------------------------------------------

    def ancestor(self, a: int, d: int, holds: bool, before: int = UNKNOWN) -> int:
        """Prove that a is (not) an ancestor of d from base facts below rank `before`."""
        fact = Fact("ancestor", self.panel.labels[a], self.panel.labels[d], holds)
        if fact in self._written:
            return self._written[fact]
        rank = int((self.knowledge.yes_rank if holds else self.knowledge.no_rank)[a, d])
        if rank == 0 and before > 0:
            return self._write(Step(fact, "stated", supporting=sides(self.panel, a, d, holds)[0]))
        if rank < before:
            reason = self.knowledge.reasons[a, d, holds]
            return self._derived(fact, a, d, reason, rank)
        if holds:
            path = self._path(a, d, before)
            because = [self.ancestor(u, v, True, before) for u, v in pairwise(path)]
            return self._write(Step(fact, "chain", tuple(because)))
        return self._excluded(fact, a, d, before)

    def _excluded(self, fact: Fact, a: int, d: int, before: int) -> int:
        """a → d would make u → v, for u above or equal to a and v below or equal to d."""
        edges = self.knowledge.yes_rank < before
        up, _ = _distances(edges.T, a)
        down, _ = _distances(edges, d)
        # Only these u and v are possible, which keeps the tables small.
        above, below = np.flatnonzero(up >= 0), np.flatnonzero(down >= 0)
        grid = np.ix_(above, below)
        near = (up[above][:, None] + down[below][None, :]).astype(np.float64)
        cost = np.where(self.knowledge.no_rank[grid] < before, near, np.inf)
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
        distance, previous = _distances(self.knowledge.yes_rank < before, a)
        assert distance[d] > 0, "an ancestor without a path: a defect in entailment"
        path = [d]
        while path[-1] != a:
            path.append(int(previous[path[-1]]))
        return path[::-1]

    def _derived(self, fact: Fact, a: int, d: int, reason: Reason, rank: int) -> int:
        k, labels = reason.client, self.panel.labels
        client, about = self.panel.claims[k].client, tuple(labels[i] for i in reason.about)
        if reason.rule == "one-of":
            candidates, _ = self.panel.claims[k].one_of[reason.about[0]]
            about = tuple(labels[c] for c in candidates)
            because = [self._candidate(a, c, d, rank) for c in candidates if c != a]
        elif reason.rule == "reach":
            because = [self.reaches(k, a, d, True)]
        elif reason.rule == "blocked":
            because = [self.reaches(k, a, d, False), *self._no_passage(k, a, d, rank)]
        elif reason.rule == "passage":
            (m,) = reason.about
            because = [self.reaches(k, m, d, False), self.ancestor(m, d, True, rank)]
            because += self._no_passage(k, m, d, rank, but=a)
        else:
            (other,) = reason.about
            about = (labels[d], labels[other])
            because = self._shared_ancestor(k, a, (d, other), rank)
        return self._write(Step(fact, reason.rule, tuple(because), client=client, about=about))

    def _candidate(self, a: int, c: int, d: int, rank: int) -> int:
        """Prove that the candidate c is refuted, or that a is an ancestor of it."""
        if self.known(rank)[1][c, d]:
            return self.ancestor(c, d, False, rank)
        return self.ancestor(a, c, True, rank)

    def _shared_ancestor(self, k: int, c: int, pair: tuple[int, int], rank: int) -> list[int]:
        """Prove that every hidden label that may reach both spouses is c or has ancestor c."""
        out = []
        yes, _ = self.known(rank)
        for m in np.flatnonzero(self.views[k].hidden).tolist():
            refuted = self._unreached(k, m, pair, rank)
            if refuted is not None:
                out.append(refuted())
            elif m != c:
                assert yes[c, m]
                out.append(self.ancestor(c, m, True, rank))
        return out

    # -- reaching through hidden nodes ----------------------------------------------------------

    def reaches(self, k: int, m: int, x: int, holds: bool) -> int:
        """Prove that m reaches x, or not, through nodes hidden from client k."""
        labels, client = self.panel.labels, self.panel.claims[k].client
        fact = Fact("reaches", labels[m], labels[x], holds, client)
        if fact in self._written:
            return self._written[fact]
        view = self.views[k]
        rank = int((view.yes if holds else view.no)[m, x])
        find = self._why_reached if holds else self._why_not_reached
        rule, about, because = find(k, m, x, rank)
        names = tuple(labels[i] for i in about)
        return self._write(Step(fact, rule, tuple(because), client=client, about=names))

    def _why_reached(
        self, k: int, m: int, x: int, rank: int
    ) -> tuple[str, tuple[int, ...], list[int]]:
        view, (yes, _) = self.views[k], self.known(rank)
        through = np.flatnonzero(view.hidden & (view.yes[m] < rank) & (view.yes[:, x] < rank))
        if through.size:
            y = int(through[0])
            return "compose", (y,), [self.reaches(k, m, y, True), self.reaches(k, y, x, True)]
        if yes[m, x] and not self._ways(k, m, x, rank).size:
            return (
                "unblocked",
                (),
                [self.ancestor(m, x, True, rank), *self._no_passage(k, m, x, rank)],
            )
        for z in np.flatnonzero((view.no[m] < rank) & yes[m]).tolist():
            if self._ways(k, m, z, rank).tolist() == [x]:
                because = [self.reaches(k, m, z, False), self.ancestor(m, z, True, rank)]
                return "passage", (z,), because + self._no_passage(k, m, z, rank, but=x)
        for j in np.flatnonzero(view.spouse[x]).tolist():
            others = [h for h in np.flatnonzero(view.hidden).tolist() if h != m]
            refuted = [self._unreached(k, h, (x, j), rank) for h in others]
            if all(r is not None for r in refuted):
                return "confounder", (x, j), [r() for r in refuted if r is not None]
        raise AssertionError("a reach without a rule that gives it: a defect in `hidden`")

    def _why_not_reached(
        self, k: int, m: int, x: int, rank: int
    ) -> tuple[str, tuple[int, ...], list[int]]:
        view, (_, no) = self.views[k], self.known(rank)
        if no[m, x]:
            return "no-ancestor", (), [self.ancestor(m, x, False, rank)]
        for i in np.flatnonzero(view.apart[x] & (view.yes[m] < rank)).tolist():
            return "separate", (i, x), [self.reaches(k, m, i, True)]
        if view.hidden[x]:
            for z in np.flatnonzero((view.no[m] < rank) & (view.yes[x] < rank)).tolist():
                return "compose", (z,), [self.reaches(k, m, z, False), self.reaches(k, x, z, True)]
        for z in np.flatnonzero((view.no[:, x] < rank) & (view.yes[:, m] < rank)).tolist():
            return "compose", (z,), [self.reaches(k, z, x, False), self.reaches(k, z, m, True)]
        raise AssertionError("a denied reach without a rule that gives it: a defect in `hidden`")

    def _unreached(
        self, k: int, m: int, targets: Iterable[int], rank: int
    ) -> Callable[[], int] | None:
        """A function that proves that m does not reach all targets; None if that is not known."""
        for x in targets:
            if self.known(rank)[1][m, x]:
                return lambda x=x: self.ancestor(m, x, False, rank)  # type: ignore[misc]
            if self.views[k].no[m, x] < rank:
                return lambda x=x: self.reaches(k, m, x, False)  # type: ignore[misc]
        return None

    def _ways(self, k: int, m: int, x: int, rank: int) -> IntArray:
        """Observed labels that m may reach and that may be ancestors of x."""
        view, (_, no) = self.views[k], self.known(rank)
        return np.flatnonzero(view.observed & ~(view.no[m] < rank) & ~no[m] & ~no[:, x])

    def _no_passage(self, k: int, m: int, x: int, rank: int, but: int = -1) -> list[int]:
        """Prove that no observed label (except `but`) is the first on a path from m to x."""
        view, (_, no) = self.views[k], self.known(rank)
        out = []
        for o in np.flatnonzero(view.observed).tolist():
            if o in (x, but):
                continue
            if no[m, o]:
                out.append(self.ancestor(m, o, False, rank))
            elif no[o, x]:
                out.append(self.ancestor(o, x, False, rank))
            else:
                out.append(self.reaches(k, m, o, False))
        return out

    # -- bookkeeping ----------------------------------------------------------------------------

    def known(self, before: int) -> tuple[BoolArray, BoolArray]:
        """The closure (yes, no) of the base facts below a rank."""
        if before not in self._known:
            part = self.knowledge.copy()
            part.yes_rank[part.yes_rank >= before] = UNKNOWN
            part.no_rank[part.no_rank >= before] = UNKNOWN
            part.close()
            self._known[before] = (part.yes, part.no)
        return self._known[before]

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
