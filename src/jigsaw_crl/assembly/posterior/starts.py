"""Where chains start when there are many labels.

Orders of many labels have local optima. A label that few clients saw beside others can stand
between labels where another one belongs, and no single move puts that right. Two steps avoid most
of them:

`grow`    raises the costs of covers step by step. While covers cost little, every pair stands for
          itself; as the costs rise, labels come to stand between others where that saves most.
`recombine`  takes over from another order what is worth more there. The pairs on which two orders
          differ fall into parts, and either order stays an order if it takes any of the parts from
          the other one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from jigsaw_crl.assembly.posterior.walk import ASIDE, COLD, Chain, Proposals, Weights
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["grow", "likely", "recombine"]

# Costs rise in STEPS steps from a share CHEAP of their own size, at an inverse temperature of COOL.
STEPS, CHEAP, COOL = 16, 0.2, 1.5
# Bridges that lose more than this are seldom proposed, and every other one EFFORT times in a step.
LOSS, EFFORT = 4.0, 20
# A part is taken over if it gains this much: what is worth about the same is left to the chains.
CLEARLY = 4.0
# Labels up to which products of whole matrices are faster than those of sparse ones.
DENSE = 100


def bridge_gains(matrix: BoolArray, weights: Weights) -> tuple[FloatArray, BoolArray]:
    """What each pair gains if it is added with all pairs that follow, and which pairs are covers.

    The pair (a, d) adds `cover[a, d]` and, over a with its ancestors and d with its descendants,
    `implied` of the missing pairs; a pair that is a cover there is one no longer. Reverse pairs and
    pairs that the order has already gain minus infinity.
    """
    # Of many labels, an order has few pairs.
    order: Any = matrix.astype(np.float64)
    if len(matrix) > DENSE:
        order = csr_array(order)
    between = np.zeros(matrix.shape, dtype=bool)
    between[(order @ order).nonzero()] = True
    covers = matrix & ~between
    each = np.where(covers, -weights.cover, np.where(matrix, 0.0, weights.implied))
    np.fill_diagonal(each, 0.0)
    for _ in range(2):
        # Rows: with all ancestors; then, transposed, columns with all descendants.
        each = np.asarray((each + order.T @ each).T)
        order = order.T
    gain = each + weights.cover
    gain[matrix | matrix.T | np.eye(len(matrix), dtype=bool)] = -np.inf
    return gain, covers


def likely(matrix: BoolArray, weights: Weights) -> BoolArray:
    """Pairs that an order might come to have or to lose."""
    gain, covers = bridge_gains(matrix, weights)
    return np.asarray((gain > -LOSS) | covers)


def grow(weights: Weights, rng: np.random.Generator) -> BoolArray:
    """An order of high worth; others are reached from other random numbers."""
    # Imported here because it loads the compiler.
    from jigsaw_crl.base.bitsets import greedy_order

    matrix = greedy_order(weights.implied)
    for share in np.linspace(CHEAP, 1.0, STEPS):
        cheaper = replace(weights, cover=share * weights.cover)
        matrix = _walked(matrix, cheaper, rng, COOL)
    return _walked(matrix, weights, rng, COLD)


def _walked(
    matrix: BoolArray, weights: Weights, rng: np.random.Generator, beta: float
) -> BoolArray:
    """The order after moves of likely pairs."""
    active = np.flatnonzero(likely(matrix, weights)).astype(np.int64)
    none = np.zeros(0, dtype=np.int64)
    proposals = Proposals(active, none, none, EFFORT * len(active), ASIDE, 1)
    chain = Chain.at(matrix, weights, rng, proposals=proposals)
    chain.walk(1, beta=beta)
    return chain.matrix()


def recombine(orders: list[BoolArray], weights: Weights) -> list[BoolArray]:
    """Orders that have taken over from each other what is clearly worth more."""
    # Imported here because it loads the compiler.
    from jigsaw_crl.assembly.posterior.metropolis import take_over
    from jigsaw_crl.base.bitsets import pack, unpack

    orders = list(orders)
    for k, own in enumerate(orders):
        up, down = pack(own), pack(own.T)
        for other in orders[:k] + orders[k + 1 :]:
            pairs, ends = parts(unpack(up, len(own)), other)
            values = (weights.implied, weights.cover, weights.ancestry)
            take_over(up, down, *values, pairs, ends, CLEARLY)
        orders[k] = unpack(up, len(own))
    return orders


def parts(one: BoolArray, other: BoolArray) -> tuple[IntArray, IntArray]:
    """Pairs `a * p + d` on which two orders differ, part by part, and where each part ends.

    Two of these pairs are in one part if one ends where the other begins, or if they have one end
    in common and their other ends are related in either order. Then an order that takes a part
    from the other is transitive and has no cycle. Say that it has (x, y) and takes (y, z). If the
    other order has (x, y) too, it has (x, z); and if the orders differ on (x, z), that pair is in
    the part of (y, z), with which it shares z. If it does not, the orders differ on (x, y), and
    that pair is in the part, since (y, z) begins where it ends, and is given up. A pair and its
    reverse are in one part.
    """
    a, d = np.nonzero(one != other)
    related = one | other
    related = related | related.T
    rows, columns = [], []
    for label in np.intersect1d(a, d):
        into, out = np.flatnonzero(d == label), np.flatnonzero(a == label)
        rows += [into, np.full(len(out), into[0])]
        columns += [np.full(len(into), out[0]), out]
    for mine, theirs in ((a, d), (d, a)):
        for label in np.unique(mine):
            same = np.flatnonzero(mine == label)
            i, j = np.nonzero(related[np.ix_(theirs[same], theirs[same])])
            rows.append(same[i])
            columns.append(same[j])
    where = (np.concatenate(rows or [a]), np.concatenate(columns or [a]))
    links = coo_array((np.ones(len(where[0])), where), shape=(len(a), len(a)))
    n, part = connected_components(links, directed=False)
    order = np.argsort(part, kind="stable")
    pairs = (a * len(one) + d)[order].astype(np.int64)
    return pairs, np.cumsum(np.bincount(part, minlength=n)).astype(np.int64)
