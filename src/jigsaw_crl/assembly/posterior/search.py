"""Which single order is worth most, and which one is the best guess?

Greedy insertion, then moves at zero temperature; all orders of few labels. Orders of many labels
have local optima: a label that few clients saw beside others can stand between labels where another
one belongs, and no single move puts that right. `grow` avoids most of them. It raises the costs of
covers step by step: while covers cost little, every pair stands for itself; as the costs rise,
labels come to stand between others where that saves most.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from jigsaw_crl.assembly.posterior.enumeration import FEW, Enumeration
from jigsaw_crl.assembly.posterior.walk import Chain, Weights
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import boolean_product

__all__ = ["LOSS", "MANY", "best_order", "bridge_gains", "decode", "grow", "likely"]

# Inverse temperature at which only moves that do not lower the score are accepted.
COLD = 1e9
# Costs rise in STEPS steps from a share CHEAP of their own size, at an inverse temperature of COOL.
STEPS, CHEAP, COOL = 16, 0.2, 1.5
# With more labels than this, orders are sparse, and chains start where `grow` leads them.
MANY = 100
# Bridges that lose more than LOSS are not proposed, and the others in so many sweeps. Orders take
# over what gains as much: what is worth about the same is left to the chains.
LOSS, SWEEPS = 4.0, 10


def best_order(weights: Weights, rng: np.random.Generator, *, rounds: int = 4) -> BoolArray:
    """An order of high worth, transitively closed, shape (p, p).

    Parameters
    ----------
    weights : Weights
    rng : numpy.random.Generator
        Shuffles the labels, so that ties are broken at random and not by position.
    rounds : int
        Largest number of rounds of local search after greedy insertion.
    """
    shuffle = rng.permutation(len(weights))
    w = weights.shuffled(shuffle)
    matrix = Enumeration.of(w).best() if len(w) <= FEW else _local_best(w, rng, rounds)
    out = np.zeros_like(matrix)
    out[np.ix_(shuffle, shuffle)] = matrix
    return out


def _local_best(w: Weights, rng: np.random.Generator, rounds: int) -> BoolArray:
    """The order that greedy insertion and rounds of moves reach."""
    # Imported here because it loads the compiler.
    from jigsaw_crl.base.bitsets import greedy_order

    matrix = greedy_order(w.insertion)
    best = w.score(matrix) if rounds else 0.0
    for _ in range(rounds):
        tried = greedy_order(w.insertion, _walked(matrix, w, rng, COLD))
        score = w.score(tried)
        if score <= best + 1e-9:
            break
        matrix, best = tried, score
    return matrix


def decode(probability: FloatArray, rng: np.random.Generator) -> BoolArray:
    """The order R with the largest Σ_R (2π − 1): the most right pairs, less the wrong ones.

    So a pair with a probability below one half is claimed only if other pairs imply it. The
    expected F1 would allow less probable pairs, but in sparse systems these are overstated: over
    180 worlds of six families the F1 was .875, with a threshold of F1/2 .869, and .836 against
    .796 in sparse ones.

    Parameters
    ----------
    probability : array, shape (p, p)
        π.
    rng : numpy.random.Generator

    Returns
    -------
    array of bool, shape (p, p)
        Transitively closed.
    """
    gains = 2.0 * probability - 1.0
    wanted = gains > 0.0
    if not (wanted & wanted.T).any() and not (boolean_product(wanted, wanted) & ~wanted).any():
        return wanted
    return best_order(Weights.of(gains, pair_cost=0.0, cover_cost=0.0), rng)


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
    """The order after bridges of likely pairs."""
    chain = Chain.at(matrix, weights, rng, moving=likely(matrix, weights))
    chain.walk(SWEEPS, flips=0, beta=beta)
    return chain.matrix()


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
