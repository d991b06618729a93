"""What do facts about ancestors imply, and how? Sound; complete if no client names only a set.

Positives are closed under transitivity; negatives are the pairs that would contradict a known fact
(see `base.order.refuted`). Every other pair is undetermined: both answers occur in some order that
agrees with the statements.

What follows from "one of these is an ancestor of d" is entered as a further base fact, with the
facts that it follows from, so that proofs are not circular.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from jigsaw_crl.assembly.evidence import Evidence
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import refuted, transitive_closure
from jigsaw_crl.fragment.fragment import NO, YES


@dataclass(frozen=True)
class Fact:
    """One label is an ancestor of another, or is not.

    Parameters
    ----------
    subject, object : str
    holds : bool
    """

    subject: str
    object: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.subject} is {'' if self.holds else 'not '}an ancestor of {self.object}"


@dataclass(frozen=True)
class Step:
    """One fact and why it holds.

    Parameters
    ----------
    fact : Fact
    rule : str
        A key of `RULES`.
    because : tuple of int
        Earlier steps that it follows from, counted from 0.
    client : str
        The client whose candidates the rule uses.
    about : tuple of str
        The candidates.
    supporting, contradicting : tuple of str
        Clients whose own data state the fact, or its opposite.
    log_bayes_factor : float or None
        Pooled direct evidence that the subject is an ancestor (evidence mode).
    """

    fact: Fact
    rule: str
    because: tuple[int, ...] = ()
    client: str = ""
    about: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()
    log_bayes_factor: float | None = None


def say(names: Sequence[str], word: str) -> str:
    """ "lab-1 says yes", "lab-1, lab-2 say no"."""
    return f"{', '.join(names)} {'say' if len(names) > 1 else 'says'} {word}"


class NoProof(Exception):
    """The fact does not follow."""


class Contradiction(Exception):
    """No order agrees with the statements; `pair` (ancestor, descendant) is one that conflicts."""

    def __init__(self, what: str, pair: tuple[int, int]) -> None:
        super().__init__(what)
        self.what = what
        self.pair = pair

    def described(self, evidence: Evidence) -> str:
        """What contradicts what, and who says so."""
        both = " and ".join(evidence.labels[i] for i in self.pair)
        text, known = f"{self.what}: {both}", evidence.panel.known[self.pair]
        sides = zip(("yes", "no"), (YES, NO), evidence.sides(*self.pair), strict=True)
        for word, code, names in sides:
            text += f"; you say {word}" if known == code else ""
            text += f"; {say(names, word)}" if names else ""
        return (
            f"the statements contradict each other ({text}); they were weighed as evidence instead"
        )


@dataclass(frozen=True, eq=False)
class Facts:
    """Facts about ordered pairs."""

    evidence: Evidence
    # Pairs that are, and are not, ancestors by statement, evidence or `reasons`: not closed.
    base: BoolArray
    denied: BoolArray
    # Of the base facts that "one of these is an ancestor" implies.
    reasons: dict[tuple[int, int], Reason] = field(default_factory=dict)

    @cached_property
    def yes(self) -> BoolArray:
        """Every pair that is an ancestor pair; a `Contradiction` if they form a cycle."""
        yes = transitive_closure(self.base)
        loop = np.flatnonzero(np.diagonal(yes))
        if loop.size:
            a = int(loop[0])
            d = int(np.flatnonzero(yes[a] & yes[:, a] & (np.arange(len(yes)) != a))[0])
            raise Contradiction("the ancestors form a cycle", (a, d))
        return yes

    @cached_property
    def no(self) -> BoolArray:
        """Every pair that is none; a `Contradiction` if it is an ancestor pair as well."""
        no = refuted(self.yes, self.denied)
        both = self.yes & no
        if both.any():
            a, d = np.argwhere(both)[0].tolist()
            raise Contradiction("a pair is both stated and denied", (a, d))
        return no

    @cached_property
    def routes(self) -> tuple[FloatArray, npt.NDArray[np.int32]]:
        """Lengths of the shortest paths of base facts, and predecessors on them, shape (p, p)."""
        length, previous = shortest_path(
            csr_array(self.base), unweighted=True, return_predecessors=True
        )
        return length, previous


class Reason(NamedTuple):
    """Why a base fact holds: the number of a client, that of its statement, and earlier facts."""

    client: int
    statement: int
    earlier: Facts


def deduce(evidence: Evidence) -> Facts:
    """Everything that follows from what clients state for certain, and from what the user said.

    Raises
    ------
    Contradiction
        No order agrees with the statements.
    """
    known, (said, denied) = evidence.panel.known, evidence.counts
    yes, no = (said > 0) | (known == YES), (denied > 0) | (known == NO)
    facts = Facts(evidence, yes, no)
    while derived := _resolve(facts):
        base = facts.base.copy()
        base[tuple(zip(*derived, strict=True))] = True
        facts = replace(facts, base=base, reasons={**facts.reasons, **derived})
    return facts


def _resolve(facts: Facts) -> dict[tuple[int, int], Reason]:
    """New ancestors from one pass over "one of these is an ancestor of d", each with its reason.

    Candidates that are known not to be ancestors are removed. A label c that equals or is an
    ancestor of every remaining candidate is an ancestor of d.
    """
    # Reading them raises a contradiction, also without any disjunction.
    panel, yes, no = facts.evidence.panel, facts.yes, facts.no
    above = yes | np.eye(len(panel.labels), dtype=bool)
    found: dict[tuple[int, int], Reason] = {}
    for k, rows in enumerate(panel.rows):
        for number, (candidates, d) in enumerate(rows.one_of):
            left = [c for c in candidates if not no[c, d]]
            if not left:
                raise Contradiction(
                    "every candidate of a disjunction is refuted", (candidates[0], d)
                )
            if any(yes[c, d] for c in left):
                continue
            common = np.asarray(above[:, left].all(axis=1), dtype=bool)
            # Higher common ancestors follow from the lowest ones.
            lowest = common & ~(yes & common[None, :]).any(axis=1)
            for c in np.flatnonzero(lowest & ~yes[:, d]).tolist():
                found.setdefault((c, d), Reason(k, number, facts))
    return found


class Prover:
    """Writes the steps of one certificate.

    Parameters
    ----------
    labels : tuple of str
    base : callable
        The step of a base fact that is not derived, from `(a, d, holds)`.
    """

    def __init__(self, labels: tuple[str, ...], base: Callable[[int, int, bool], Step]) -> None:
        self.labels, self.base = labels, base
        self.steps: list[Step] = []
        self._written: dict[Fact, int] = {}

    def prove(self, facts: Facts, a: int, d: int, holds: bool) -> int:
        """Prove that a is (not) an ancestor of d, and return the number of the last step."""
        fact = Fact(self.labels[a], self.labels[d], holds)
        if fact in self._written:
            return self._written[fact]
        if not holds and not facts.denied[a, d]:
            step = self._excluded(facts, fact, a, d)
        elif holds and len(path := _path(facts, a, d)) > 2:
            because = [self.prove(facts, u, v, True) for u, v in pairwise(path)]
            step = Step(fact, "chain", tuple(because))
        elif holds and (a, d) in facts.reasons:
            step = self._derived(facts.reasons[a, d], fact, a, d)
        else:
            step = self.base(a, d, holds)
        self.steps.append(step)
        self._written[fact] = len(self.steps) - 1
        return self._written[fact]

    def _excluded(self, facts: Facts, fact: Fact, a: int, d: int) -> Step:
        """a → d would make u → v, for u above or equal to a and v below or equal to d.

        That is excluded if u → v is denied, if v → u is known, or if u is v.
        """
        length, _ = facts.routes
        up, down = length[:, a], length[d]
        # Only these u and v are possible, which keeps the tables small.
        above, below = np.flatnonzero(np.isfinite(up)), np.flatnonzero(np.isfinite(down))
        grid = np.ix_(above, below)
        reasons = np.stack((facts.denied[grid], facts.base.T[grid], above[:, None] == below))
        ways = np.where(reasons, up[above][:, None] + down[below], np.inf)
        which, row, column = np.unravel_index(int(ways.argmin()), ways.shape)
        if not np.isfinite(ways[which, row, column]):
            raise NoProof
        u, v = int(above[row]), int(below[column])
        needed = [(u, a, True)] if u != a else []
        needed += [(d, v, True)] if v != d else []
        needed += [[(u, v, False)], [(v, u, True)], []][which]
        return Step(fact, "excluded", tuple(self.prove(facts, *x) for x in needed))

    def _derived(self, reason: Reason, fact: Fact, a: int, d: int) -> Step:
        """Each candidate of a disjunction is refuted, or a is an ancestor of it."""
        earlier = reason.earlier
        rows = earlier.evidence.panel.rows[reason.client]
        candidates, _ = rows.one_of[reason.statement]
        because = [
            self.prove(earlier, *((c, d, False) if earlier.no[c, d] else (a, c, True)))
            for c in candidates
            if c != a
        ]
        about = tuple(self.labels[c] for c in candidates)
        return Step(fact, "one-of", tuple(because), client=rows.client, about=about)


def _path(facts: Facts, a: int, d: int) -> list[int]:
    """The labels on the shortest path of base facts."""
    length, previous = facts.routes
    if not np.isfinite(length[a, d]):
        raise NoProof
    path = [d]
    while path[-1] != a:
        path.append(int(previous[a, path[-1]]))
    return path[::-1]
