"""Which single order is worth most, which one is the best guess, and where do chains start?

Of a few labels all orders are weighed, otherwise greedy insertion gives one. Orders of many labels
have local optima: a label that few clients saw beside others can stand between labels where another
one belongs, and no single move puts that right. `grow` avoids most of them. It raises the costs of
covers step by step: while covers cost little, every pair stands for itself; as the costs rise,
labels come to stand between others where that saves most.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from jigsaw_crl.assembly.posterior.walk import FACT, KNOWN, Chains, Weights
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import greedy_order

__all__ = ["FEW", "MANY", "all_orders", "best_order", "bridge_gains", "decode", "grow", "likely"]

# Most labels whose orders are all weighed: there are 4,231 of five labels, which take a few
# milliseconds, and 130,023 of six.
FEW = 5
# With more labels than this, orders are sparse, and chains start where `grow` leads them.
MANY = 100
# Costs rise in STEPS steps from a share CHEAP of their own size, at an inverse temperature of COOL;
# at COLD only moves that do not lower the score are accepted.
STEPS, CHEAP, COOL, COLD = 16, 0.2, 1.5, 1e9
# Bridges that lose more than LOSS are not proposed, and the others in so many sweeps.
LOSS, SWEEPS = 4.0, 10


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


def all_scores(weights: Weights) -> FloatArray:
    """Worth of every order of `all_orders`, shape (n,)."""
    each = (weights.implied.ravel(), weights.cover.ravel(), weights.ancestry)
    worth = np.clip(np.concatenate(each), -KNOWN, KNOWN)
    p = len(weights)
    return np.asarray(_features(p) @ worth - FACT * weights.broken(all_orders(p)))


def best_order(worth: FloatArray, rng: np.random.Generator) -> BoolArray:
    """A closed order with a high sum of the worths of its pairs, shape (p, p) like the worths.

    The labels are shuffled, so that ties are broken at random and not by position. Local search
    after greedy insertion changed neither trust nor best guesses (E1 .806 and .807, 96 worlds).
    """
    p = len(worth)
    grid = np.ix_(*(rng.permutation(p),) * 2)
    shuffled = np.ascontiguousarray(worth[grid])
    if p <= FEW:
        scores = all_scores(Weights(shuffled, np.zeros_like(shuffled), np.zeros(p)))
        matrix = all_orders(p)[int(scores.argmax())]
    else:
        matrix = greedy_order(shuffled)
    out = np.zeros((p, p), dtype=bool)
    out[grid] = matrix
    return out


def decode(probability: FloatArray, rng: np.random.Generator) -> BoolArray:
    """The closed order R with the largest Σ_R (2π − 1): the most right pairs, less the wrong ones.

    So a pair with a probability below one half is claimed only if other pairs imply it. The
    expected F1 would allow less probable pairs, but in sparse systems these are overstated: over
    180 worlds of six families the F1 was .875, with a threshold of F1/2 .869, and .836 against
    .796 in sparse ones.
    """
    return best_order(2.0 * probability - 1.0, rng)


def grow(weights: Weights, rng: np.random.Generator) -> BoolArray:
    """An order of high worth; others are reached from other random numbers."""
    matrix = greedy_order(weights.implied)
    steps = [(share, COOL) for share in np.linspace(CHEAP, 1.0, STEPS)]
    for share, beta in [*steps, (1.0, COLD)]:
        cheaper = replace(weights, cover=share * weights.cover)
        chains = Chains.at([matrix], cheaper, rng, likely(matrix, cheaper))
        chains.walk(SWEEPS, flips=0, beta=beta)
        (matrix,) = chains.matrices()
    return matrix


def likely(matrix: BoolArray, weights: Weights) -> BoolArray:
    """Pairs that an order might come to have or to lose."""
    gain, covers = bridge_gains(matrix, weights)
    return np.asarray((gain > -LOSS) | covers)


def bridge_gains(matrix: BoolArray, weights: Weights) -> tuple[FloatArray, BoolArray]:
    """What each pair gains if it is added with all pairs that follow, and which pairs are covers.

    The pair (a, d) adds `cover[a, d]` and, over a with its ancestors and d with its descendants,
    `implied` of the missing pairs; a pair that is a cover there is one no longer. Reverse pairs and
    pairs that the order has already gain minus infinity.
    """
    order: Any = matrix.astype(np.float64)
    if len(matrix) > MANY:
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
