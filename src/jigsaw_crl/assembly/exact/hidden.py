"""What do a client's spouses imply about latents it does not access? Rules across hidden nodes.

For a client that accesses exactly its labels O, write h(m, x) for "the label m, hidden from the
client, reaches x along directed edges through hidden nodes only". Two labels i, j of O are
spouses exactly when some hidden node reaches both. Hence, for every client:

- no-ancestor    m is not an ancestor of x                                ⇒ ¬h(m, x)
- reach          h(m, x)                                                  ⇒ m is an ancestor of x
- unblocked      m is an ancestor of x, and no label of O can lie between ⇒ h(m, x)
- separate       i, j ∈ O are not spouses, h(m, i)                        ⇒ ¬h(m, j)
- passage        ¬h(m, x), m is an ancestor of x, and o is the only label of O that m can reach and
                 that can be an ancestor of x                 ⇒ h(m, o), o is an ancestor of x
- blocked        ¬h(m, x), and no label of O can be such an o         ⇒ m is not an ancestor of x
- compose        h(m, y), h(y, x), y hidden ⇒ h(m, x); and with ¬h(m, x): h(y, x) ⇒ ¬h(m, y),
                 h(m, y) ⇒ ¬h(y, x)
- confounder     (closed world: every latent carries a label somewhere) i, j ∈ O are spouses and m
                 is the only hidden label that can reach both ⇒ h(m, i), h(m, j); if all that can
                 reach both are c or have ancestor c, then c is an ancestor of i and of j

A missed or false spouse would lead these rules to false facts, so they are used on exact statements
only, and not used if they contradict the statements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.exact.entailment import UNKNOWN, Contradiction, Knowledge, Reason, resolve
from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import BoolArray

__all__ = ["HiddenReach", "can_use_hidden_rules", "reason_across_hidden"]

RankMatrix = npt.NDArray[np.int32]

# Clients × labels² beyond which the rules take too long.
MOST_WORK = 30_000_000


@dataclass(eq=False)
class HiddenReach:
    """What is known about h for one client, over all labels.

    Attributes
    ----------
    client : int
    observed : array of bool, shape (p,)
    spouse : array of bool, shape (p, p)
    apart : array of bool, shape (p, p)
        Pairs of observed labels that are not spouses.
    yes, no : array of int32, shape (p, p)
        Rank of "m (row) reaches x (column)" and of its denial; `UNKNOWN` where neither is known.
    """

    client: int
    observed: BoolArray
    spouse: BoolArray
    apart: BoolArray
    yes: RankMatrix
    no: RankMatrix

    @classmethod
    def of(cls, panel: Panel, k: int) -> HiddenReach:
        claims, p = panel.claims[k], len(panel.labels)
        assert claims.spouses is not None
        observed = np.zeros(p, dtype=bool)
        observed[claims.members] = True
        spouse = np.zeros((p, p), dtype=bool)
        spouse[np.ix_(claims.members, claims.members)] = claims.spouses
        apart = observed[:, None] & observed[None, :] & ~spouse & ~np.eye(p, dtype=bool)
        empty = np.full((p, p), UNKNOWN, dtype=np.int32)
        return cls(k, observed, spouse, apart, empty, empty.copy())

    @property
    def hidden(self) -> BoolArray:
        return ~self.observed

    def learn(self, holds: bool, found: BoolArray, clock: int) -> bool:
        """Enter facts of rank `clock` + 1 about hidden rows; True if one is new."""
        rank = self.yes if holds else self.no
        new = found & (rank == UNKNOWN) & self.hidden[:, None]
        np.fill_diagonal(new, False)
        rank[new] = clock + 1
        return bool(new.any())


def can_use_hidden_rules(panel: Panel) -> bool:
    """Does some client name its spouses, and is the problem small enough?"""
    users = sum(c.spouses is not None for c in panel.claims)
    return 0 < users * len(panel.labels) ** 2 <= MOST_WORK


def reason_across_hidden(
    knowledge: Knowledge, panel: Panel, *, closed_world: bool
) -> list[HiddenReach]:
    """Apply all rules until nothing new follows; `knowledge` changes in place.

    Returns
    -------
    list of HiddenReach
        One per client that names its spouses.

    Raises
    ------
    Contradiction
        The rules contradict the statements.
    """
    views = [HiddenReach.of(panel, k) for k, c in enumerate(panel.claims) if c.spouses is not None]
    while True:
        learnt = False
        for view in views:
            learnt |= _about_reach(view, knowledge)
            if closed_world:
                learnt |= _confounders(view, knowledge)
            learnt |= _about_ancestors(view, knowledge)
        learnt |= resolve(knowledge, panel)
        if not learnt:
            return views


def _product(one: BoolArray, other: BoolArray) -> npt.NDArray[np.float32]:
    out: npt.NDArray[np.float32] = one.astype(np.float32) @ other.astype(np.float32)
    return out


def _passages(view: HiddenReach, knowledge: Knowledge) -> tuple[BoolArray, BoolArray]:
    """(m may reach o, o may be an ancestor of x), for o the first observed label on a path."""
    may_reach = (view.no == UNKNOWN) & ~knowledge.no & view.observed[None, :]
    may_continue = ~knowledge.no & view.observed[:, None]
    return may_reach, may_continue


def _about_reach(view: HiddenReach, knowledge: Knowledge) -> bool:
    """Apply no-ancestor, unblocked, separate and compose; True if they add a fact about h."""
    hidden = view.hidden
    any_new = False
    while True:
        clock = knowledge.clock
        yes, no = view.yes != UNKNOWN, view.no != UNKNOWN
        may_reach, may_continue = _passages(view, knowledge)
        between = _product(may_reach, may_continue) > 0.5
        through = yes & hidden[:, None]
        grown_yes = (knowledge.yes & ~between) | (_product(yes & hidden[None, :], through) > 0.5)
        grown_no = knowledge.no | (_product(yes, view.apart) > 0.5)
        # ¬h(m, x), h(y, x) ⇒ ¬h(m, y);   ¬h(m, x), h(m, y) ⇒ ¬h(y, x);   y hidden.
        grown_no |= (_product(no, through.T) > 0.5) & hidden[None, :]
        grown_no |= _product((yes & hidden[None, :]).T, no & hidden[:, None]) > 0.5
        new = view.learn(True, grown_yes, clock)
        new = view.learn(False, grown_no, clock) or new
        clash = np.argwhere((view.yes != UNKNOWN) & (view.no != UNKNOWN))
        if len(clash):
            raise Contradiction(
                "a path through hidden nodes is both required and excluded",
                (int(clash[0][0]), int(clash[0][1])),
            )
        if not new:
            return any_new
        any_new = True
        knowledge.clock += 1


def _about_ancestors(view: HiddenReach, knowledge: Knowledge) -> bool:
    """Apply reach, blocked and passage; True if they add a fact."""
    k, hidden = view.client, view.hidden
    yes, no = view.yes != UNKNOWN, view.no != UNKNOWN
    learnt = False
    for m, x in np.argwhere(yes & ~knowledge.yes).tolist():
        learnt |= knowledge.add(m, x, True, Reason("reach", k))
    may_reach, may_continue = _passages(view, knowledge)
    ways = _product(may_reach, may_continue)
    for m, x in np.argwhere(no & hidden[:, None] & (ways < 0.5) & ~knowledge.no).tolist():
        learnt |= m != x and knowledge.add(m, x, False, Reason("blocked", k))
    forced = no & hidden[:, None] & knowledge.yes & (np.abs(ways - 1.0) < 0.5)
    reached = np.zeros_like(no)
    for m, x in np.argwhere(forced).tolist():
        o = int(np.flatnonzero(may_reach[m] & may_continue[:, x])[0])
        learnt |= knowledge.add(o, x, True, Reason("passage", k, (m,)))
        reached[m, o] = True
    learnt = view.learn(True, reached, knowledge.clock) or learnt
    if learnt:
        knowledge.settle()
    return learnt


def _confounders(view: HiddenReach, knowledge: Knowledge) -> bool:
    """Apply confounder, which assumes that every latent has a label; True if it adds a fact."""
    no = (view.no != UNKNOWN) | knowledge.no
    above = knowledge.yes | np.eye(len(no), dtype=bool)
    reached = np.zeros_like(no)
    learnt = False
    for i, j in np.argwhere(np.triu(view.spouse)).tolist():
        left = np.flatnonzero(view.hidden & ~no[:, i] & ~no[:, j])
        if not left.size:
            raise Contradiction("two spouses have no common hidden ancestor left", (i, j))
        if left.size == 1:
            reached[left[0], [i, j]] = True
            continue
        common = np.asarray(above[:, left].all(axis=1), dtype=bool)
        for c in np.flatnonzero(common).tolist():
            for x, other in ((i, j), (j, i)):
                learnt |= c != x and knowledge.add(
                    c, x, True, Reason("confounder", view.client, (other,))
                )
    learnt = view.learn(True, reached, knowledge.clock) or learnt
    if learnt:
        knowledge.settle()
    return learnt
