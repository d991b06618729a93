"""The client's own conclusions: districts, ancestry, blocks.

Districts are the connected components of the pairs for which "same district" is more probable than
not. Ancestry grows greedily, strongest evidence first, and stays transitively closed. Blocks are
the classes of mutual reachability under ancestry ∪ same-district, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base import order as plain
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import equivalence_classes, transitive_closure
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.priors import PAIR_COST

__all__ = ["Structure", "decide", "greedy_order"]

# Up to this many labels, greedy insertion takes a millisecond or two without the compiler, which
# needs one second.
FEW = 20


@dataclass(frozen=True, eq=False)
class Structure:
    """A client's structure over label indices.

    Parameters
    ----------
    same_district : array of bool, shape (p, p)
        An equivalence relation.
    ancestor : array of bool, shape (p, p)
        Node-level ancestry, closed.
    blocks : list of list of int
    reach : array of bool, shape (p, p)
        `reach[a, d]`: the block of a is, or is an ancestor of, the block of d.
    """

    same_district: BoolArray
    ancestor: BoolArray
    blocks: list[list[int]]
    reach: BoolArray

    @property
    def districts(self) -> list[list[int]]:
        return equivalence_classes(self.same_district)

    def strict_block_ancestors(self) -> BoolArray:
        """`[a, d]`: the block of a is a strict ancestor of the block of d."""
        return self.reach & ~self.reach.T


def decide(bayes: BayesFactors, order: BoolArray | None = None) -> Structure:
    """Structure from log Bayes factors against "unrelated".

    Parameters
    ----------
    bayes : BayesFactors
    order : array of bool, shape (p, p), optional
        Node-level ancestry when it is known from elsewhere (the assembled order); only the
        districts are then open.
    """
    known = ~np.isnan(bayes.district)
    log_odds = bayes.log_odds
    ahead = np.where(known & ~np.isnan(log_odds), log_odds, -np.inf)
    district = np.where(known, bayes.district_log_odds, -np.inf)
    if order is None:
        rest = np.logaddexp(np.logaddexp(0.0, ahead), ahead.T)
    else:
        rest = np.where(order, ahead, np.where(order.T, ahead.T, 0.0))
    same = district - PAIR_COST > rest
    np.fill_diagonal(same, True)
    same = transitive_closure(same)
    if order is None:
        odds = np.where(same, -np.inf, ahead - np.logaddexp(0.0, ahead.T))
        ancestor = greedy_order(odds)
    else:
        ancestor = order.copy()
    reach = transitive_closure(ancestor | same)
    return Structure(same, ancestor, equivalence_classes(reach & reach.T), reach)


def greedy_order(odds: FloatArray) -> BoolArray:
    """Closed order grown from the strongest log-odds down, each pair with the pairs it implies.

    Pairs without evidence (-inf) are never added for themselves; when another pair implies them
    they count as zero.
    """
    known = np.where(np.isfinite(odds), odds, 0.0)
    if len(known) <= FEW:
        return plain.greedy_order(known)
    # Imported here because it loads the compiler.
    from jigsaw_crl.base import bitsets

    return bitsets.greedy_order(known)
