"""All orders of a few labels, with their probabilities: exact, where there are few enough.

There are 1, 3, 19, 219 and 4,231 strict partial orders of one to five labels, and 130,023 of six.
Up to `FEW` labels all of them are weighed; beyond, chains sample them (`chains`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from jigsaw_crl.assembly.posterior.walk import FACT, KNOWN, Weights
from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["FEW", "Enumeration", "all_orders"]

# Most labels whose orders are all weighed: 4,231 orders take a few milliseconds.
FEW = 5


@lru_cache(maxsize=FEW + 1)
def all_orders(p: int) -> BoolArray:
    """Every strict partial order of p labels, transitively closed, shape (n, p, p).

    A new label is added to every order of those before it: its ancestors A hold all ancestors of
    their members, its descendants D all descendants of theirs, and all of A is above all of D.
    """
    if p == 0:
        return np.zeros((1, 0, 0), dtype=bool)
    before = all_orders(p - 1)
    subsets = (np.arange(2 ** (p - 1))[:, None] >> np.arange(p - 1)) & 1 == 1
    found = []
    for order in before:
        above = subsets[~((subsets @ order.T) & ~subsets).any(axis=1)]
        below = subsets[~((subsets @ order) & ~subsets).any(axis=1)]
        # Every pair of A × D is in the order.
        a, d = np.nonzero(~(above @ ~order @ below.T))
        new = np.zeros((len(a), p, p), dtype=bool)
        new[:, :-1, :-1], new[:, :-1, -1], new[:, -1, :-1] = order, above[a], below[d]
        found.append(new)
    out = np.concatenate(found)
    out.flags.writeable = False
    return out


@lru_cache(maxsize=FEW + 1)
def _features(p: int) -> FloatArray:
    """What `Weights` multiply: pairs, covers and labels with ancestors, shape (n, 2 p² + p)."""
    orders = all_orders(p)
    covers = orders & ~(orders @ orders)
    flat = [orders.reshape(len(orders), -1), covers.reshape(len(orders), -1), orders.any(axis=1)]
    return np.concatenate(flat, axis=1).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Enumeration:
    """All orders of some labels, and what each is worth.

    Parameters
    ----------
    orders : array of bool, shape (n, p, p)
    score : array, shape (n,)
    """

    orders: BoolArray
    score: FloatArray

    @classmethod
    def of(cls, weights: Weights) -> Enumeration:
        p = len(weights)
        each = (weights.implied.ravel(), weights.cover.ravel(), weights.ancestry)
        worth = np.clip(np.concatenate(each), -KNOWN, KNOWN)
        orders = all_orders(p)
        return cls(orders, _features(p) @ worth - FACT * weights.broken(orders))

    @property
    def posterior(self) -> FloatArray:
        """Probability of every order, shape (n,)."""
        share = np.exp(self.score - self.score.max())
        return np.asarray(share / share.sum())

    def probability(self) -> FloatArray:
        """Probability of every ordered pair, shape (p, p)."""
        return np.asarray(np.minimum(np.tensordot(self.posterior, self.orders, axes=1), 1.0))

    def best(self) -> BoolArray:
        """The order worth most; the first of several."""
        return np.array(self.orders[int(self.score.argmax())])
