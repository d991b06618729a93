"""Which single order scores best? Greedy insertion, then local search; all orders of few labels.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.assembly.posterior.enumeration import FEW, Enumeration
from jigsaw_crl.assembly.posterior.walk import COLD, Chain, Proposals, Weights
from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["best_order"]


def _climb(
    matrix: BoolArray,
    weights: Weights,
    rng: np.random.Generator,
    *,
    proposals: Proposals,
    sweeps: int,
) -> BoolArray:
    """An order reached by moves at zero temperature, then greedy insertion."""
    # Imported here because it loads the compiler.
    from jigsaw_crl.base.bitsets import greedy_order

    chain = Chain.at(matrix, weights, rng, proposals=proposals)
    chain.walk(sweeps, beta=COLD)
    return greedy_order(weights.insertion, chain.matrix())


def best_order(
    weights: Weights | FloatArray, rng: np.random.Generator, *, rounds: int = 4
) -> BoolArray:
    """An order of high worth.

    Parameters
    ----------
    weights : Weights, or array of shape (p, p)
        An array stands for `Weights.plain`.
    rng : numpy.random.Generator
        Shuffles the labels, so that ties are broken at random and not by position.
    rounds : int
        Largest number of rounds of local search after greedy insertion.

    Returns
    -------
    array of bool, shape (p, p)
        Transitively closed.
    """
    given = weights if isinstance(weights, Weights) else Weights.plain(weights)
    shuffle = rng.permutation(len(given))
    w = given.shuffled(shuffle)
    matrix = Enumeration.of(w).best() if len(w) <= FEW else _local_best(w, rng, rounds)
    out = np.zeros_like(matrix)
    out[np.ix_(shuffle, shuffle)] = matrix
    return out


def _local_best(w: Weights, rng: np.random.Generator, rounds: int) -> BoolArray:
    """The order that greedy insertion and rounds of moves reach."""
    from jigsaw_crl.base.bitsets import greedy_order

    matrix = greedy_order(w.insertion)
    if rounds == 0:
        return matrix
    proposals = Proposals.of(w, matrix)
    best = w.score(matrix)
    for _ in range(rounds):
        tried = _climb(matrix, w, rng, proposals=proposals, sweeps=3)
        score = w.score(tried)
        if score <= best + 1e-9:
            break
        matrix, best = tried, score
    return matrix
