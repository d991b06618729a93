"""Orders take over from each other what is worth more there.

The pairs on which two orders differ fall into parts, and either order stays an order if it takes
any of the parts from the other one.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jigsaw_crl.assembly.posterior.search import LOSS
from jigsaw_crl.assembly.posterior.walk import Weights
from jigsaw_crl.base.arrays import BoolArray, IntArray

__all__ = ["parts", "recombine"]


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
            take_over(up, down, *values, pairs, ends, LOSS)
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
