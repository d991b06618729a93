"""Which single order scores best? Greedy insertion, then local search.

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.posterior.walk import COLD, COVER_COST, Chain, order_score, unsettled

__all__ = ["best_order", "climb"]

FloatArray = npt.NDArray[np.float64]
BoolMatrix = npt.NDArray[np.bool_]


def climb(
    matrix: BoolMatrix,
    weight: FloatArray,
    rng: np.random.Generator,
    *,
    cover_cost: float,
    active: npt.NDArray[np.int64],
    sweeps: int,
) -> BoolMatrix:
    """An order reached by moves at zero temperature, then greedy insertion."""
    # Imported here because it loads the compiler.
    from jigsaw_crl.base.bitsets import greedy_order

    chain = Chain.at(matrix, weight, rng, cover_cost=cover_cost, active=active)
    chain.walk(sweeps, beta=COLD)
    return greedy_order(weight, chain.matrix())


def best_order(
    weight: FloatArray,
    rng: np.random.Generator,
    *,
    cover_cost: float = COVER_COST,
    rounds: int = 4,
) -> BoolMatrix:
    """An order with a high Σ weight − cover_cost · covers.

    Parameters
    ----------
    weight : array, shape (p, p)
    rng : numpy.random.Generator
        Shuffles the labels, so that ties are broken at random and not by position.
    rounds : int
        Largest number of rounds of local search after greedy insertion.

    Returns
    -------
    array of bool, shape (p, p)
        Transitively closed.
    """
    from jigsaw_crl.base.bitsets import greedy_order

    p = len(weight)
    shuffle = rng.permutation(p)
    w = np.ascontiguousarray(weight[np.ix_(shuffle, shuffle)])
    matrix = greedy_order(w)
    active = unsettled(w, matrix)
    best = order_score(matrix, w, cover_cost)
    for _ in range(rounds):
        tried = climb(matrix, w, rng, cover_cost=cover_cost, active=active, sweeps=3)
        score = order_score(tried, w, cover_cost)
        if score <= best + 1e-9:
            break
        matrix, best = tried, score
    out = np.zeros_like(matrix)
    out[np.ix_(shuffle, shuffle)] = matrix
    return out
