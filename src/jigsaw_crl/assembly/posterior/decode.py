"""Which order has the best expected F1, given the probability of every pair?"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.assembly.posterior.search import best_order
from jigsaw_crl.assembly.posterior.walk import Weights
from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["LEAST_F1", "decode"]


# With a goal of 0.6, a pair needs a probability of 0.3 to be worth claiming.
LEAST_F1 = 0.6
# Search proposes pairs by their worth. On this scale a pair that is not worth claiming counts as
# unlikely, and none as settled (see `walk.unsettled`).
SCALE = 8.0


def decode(probability: FloatArray, rng: np.random.Generator) -> BoolArray:
    """The order R that maximises 2 Σ_R π / (|R| + Σ π), an approximation of its expected F1.

    The ratio is maximised by maximising Σ_R (2π − F) for the current value F and then updating F.
    Where all probabilities are low F is small, and claiming every pair would raise it. F is
    therefore kept at `LEAST_F1` or more: a pair with a probability below half of that is claimed
    only if other pairs imply it.

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
    total = float(probability.sum())
    best, value = np.zeros(probability.shape, dtype=bool), 0.0
    # With few labels, searches from several shuffles differ; with many, one is as good.
    tries = 6 if len(probability) <= 100 else 1
    for start in (0.9, *(None,) * 8):
        goal = max(value, LEAST_F1) if start is None else start
        reached = 0.0
        for _ in range(tries):
            gains = Weights.plain(SCALE * (2.0 * probability - goal), cover_cost=0.0)
            chosen = best_order(gains, rng, rounds=6)
            score = 2.0 * float(probability[chosen].sum()) / max(chosen.sum() + total, 1e-12)
            if score > max(value, reached) + 1e-9:
                best, reached = chosen, score
        if start is None and reached <= value + 1e-9:
            break
        value = max(value, reached)
    return best
