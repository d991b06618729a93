"""Which certain statements contradict each other? The fewest that do are found and set aside.

Statements contradict each other when ancestors form a cycle, when a path of ancestors joins a pair
that somebody denies, or when every candidate of a "one of" is denied. The shortest such cycle, path
or denial is a smallest contradictory set. At least one statement in it is false and nothing tells
which, so all of it is set aside, whoever states it; and with it all sets of the same size, so that
names of labels do not matter. The rest stays certain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.csgraph import shortest_path

from jigsaw_crl.assembly.exact.entailment import Contradiction, Knowledge, entail, stated_pairs
from jigsaw_crl.assembly.panel import Claims, Panel
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.text import few
from jigsaw_crl.fragment.fragment import CANNOT_SAY

__all__ = ["Conflict", "agreeing"]

Pair = tuple[int, int]
OneOf = tuple[tuple[int, ...], int]

# More contradictory sets than this, and than this share of the stated pairs, are no slip of
# rounding: the clients disagree, and their statements are better weighed as evidence.
MOST, MOST_SHARE = 3, 1e-3


@dataclass(frozen=True)
class Conflict:
    """Statements that cannot all be true; of several smallest sets, all of them together.

    Parameters
    ----------
    pairs : frozenset of (int, int)
        Pairs (ancestor, descendant) that are stated or denied.
    one_of : frozenset of (tuple of int, int)
        Candidates and descendant of each disjunction among them.
    n_sets : int
        How many contradictory sets they form.
    """

    pairs: frozenset[Pair]
    one_of: frozenset[OneOf] = frozenset()
    n_sets: int = 1

    def described(self, panel: Panel) -> str:
        """The statements, and who makes them."""
        said = []
        for a, d in sorted(self.pairs):
            for word, stance in (("is", 1), ("is not", -1)):
                names = [c.client for c, s in panel.stances(a, d) if s == stance]
                if names:
                    a_name, d_name = panel.labels[a], panel.labels[d]
                    said.append(f"{few(names, 3)}: {a_name} {word} an ancestor of {d_name}")
        for candidates, d in sorted(self.one_of):
            names = [c.client for c in panel.claims if (candidates, d) in c.one_of]
            labels = ", ".join(panel.labels[c] for c in candidates)
            said.append(f"{few(names, 3)}: one of {labels} is an ancestor of {panel.labels[d]}")
        return "; ".join(said)

    def removed(self, panel: Panel) -> Panel:
        """The panel in which nobody states any of it."""
        return replace(panel, claims=tuple(self._without(c) for c in panel.claims))

    def _without(self, claims: Claims) -> Claims:
        if claims.certain is None:
            return claims
        row = {int(label): i for i, label in enumerate(claims.members)}
        certain = claims.certain.copy()
        for a, d in self.pairs:
            if a in row and d in row:
                certain[row[a], row[d]] = CANNOT_SAY
        one_of = tuple(item for item in claims.one_of if item not in self.one_of)
        return replace(claims, certain=certain, one_of=one_of)


def agreeing(panel: Panel) -> tuple[Panel, Knowledge, tuple[Conflict, ...]]:
    """The panel without contradictory statements, what it implies, and what was set aside.

    Raises
    ------
    Contradiction
        So much contradicts the rest that it cannot be a matter of rounding.
    """
    aside: list[Conflict] = []
    left = max(MOST, round(MOST_SHARE * _n_stated(panel)))
    while True:
        try:
            return panel, entail(panel), tuple(aside)
        except Contradiction:
            stated = _Stated.of(panel)
            conflict = stated.broken_path() or stated.refuted_disjunction(panel)
            if conflict is None or conflict.n_sets > left:
                raise
            left -= conflict.n_sets
            aside.append(conflict)
            panel = conflict.removed(panel)


def _n_stated(panel: Panel) -> int:
    certain = (c.certain for c in panel.claims if c.certain is not None)
    return sum(int(np.count_nonzero(c != CANNOT_SAY)) for c in certain)


@dataclass(frozen=True, eq=False)
class _Stated:
    """What somebody states and what somebody denies, and steps from label to label by the former.

    All have shape (p, p); no step leads from a label to itself.
    """

    yes: BoolArray
    no: BoolArray
    steps: FloatArray

    @classmethod
    def of(cls, panel: Panel) -> _Stated:
        yes, no = stated_pairs(panel)
        return cls(yes, no, np.asarray(shortest_path(yes, unweighted=True)))

    def _along(self, a: int, d: int) -> set[Pair]:
        """Stated pairs on the shortest paths from a to d."""
        through = self.steps[a][:, None] + 1.0 + self.steps[:, d][None, :]
        return _pairs(self.yes & (through == self.steps[a, d]))

    def broken_path(self) -> Conflict | None:
        """The shortest cycles, or paths along a denied pair; None if there are none."""
        back, along = (
            np.where(self.yes, self.steps.T, np.inf),
            np.where(self.no, self.steps, np.inf),
        )
        least = min(back.min(initial=np.inf), along.min(initial=np.inf))
        if not np.isfinite(least):
            return None
        cycles, denied = _pairs(back == least), _pairs(along == least)
        pairs = cycles | denied
        for a, d in cycles:
            pairs = pairs | self._along(d, a)
        for a, d in denied:
            pairs = pairs | self._along(a, d)
        return Conflict(frozenset(pairs), n_sets=max(len(denied), 1))

    def refuted_disjunction(self, panel: Panel) -> Conflict | None:
        """Disjunctions whose candidates are all denied, with the statements that deny them."""
        pairs: set[Pair] = set()
        refuted: set[OneOf] = set()
        for candidates, d in {item for claims in panel.claims for item in claims.one_of}:
            denials = [self._denial(c, d) for c in candidates]
            if all(denials):
                refuted.add((candidates, d))
                pairs = pairs.union(*denials)
        return Conflict(frozenset(pairs), frozenset(refuted), len(refuted)) if refuted else None

    def _denial(self, c: int, d: int) -> set[Pair]:
        """The fewest statements by which c is no ancestor of d; empty if there are none."""
        # Some x, c itself or above it, is denied to be an ancestor of some y, d itself or below it;
        # or d is an ancestor of c.
        cost = np.where(self.no, self.steps[:, c][:, None] + self.steps[d][None, :], np.inf)
        least = min(float(cost.min(initial=np.inf)), float(self.steps[d, c]))
        if not np.isfinite(least):
            return set()
        found = self._along(d, c) if self.steps[d, c] == least else set()
        for x, y in _pairs(cost == least):
            found |= {(x, y)} | self._along(x, c) | self._along(d, y)
        return found


def _pairs(matrix: BoolArray) -> set[Pair]:
    return {(int(a), int(d)) for a, d in np.argwhere(matrix)}
