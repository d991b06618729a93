"""Which order has the best expected F1, given the probability of every pair?"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.assembly.posterior.search import best_order
from jigsaw_crl.assembly.posterior.walk import Weights
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.order import boolean_product

__all__ = ["LEAST_F1", "decode"]


# With a goal of 0.6, a pair needs a probability of 0.3 to be worth claiming.
LEAST_F1 = 0.6
# Search proposes pairs by their worth. On this scale a pair that is not worth claiming counts as
# unlikely, and none as settled (see `walk.unsettled`).
SCALE = 8.0
# Searches, of which the best counts.
TRIES = 6


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
    best, goal = np.zeros(probability.shape, dtype=bool), LEAST_F1
    while True:
        chosen = _worth_most(2.0 * probability - goal, rng)
        reached = 2.0 * float(probability[chosen].sum()) / max(chosen.sum() + total, 1e-12)
        if reached <= goal + 1e-9:
            return best if best.any() else chosen
        best, goal = chosen, reached


def _worth_most(gains: FloatArray, rng: np.random.Generator) -> BoolArray:
    """The order with the largest sum of gains: all positive ones if they form an order."""
    wanted = gains > 0.0
    if not (wanted & wanted.T).any() and not (boolean_product(wanted, wanted) & ~wanted).any():
        return wanted
    weights = Weights.plain(SCALE * gains, cover_cost=0.0)
    # Searches from several shuffles differ; of many labels, one is as good.
    tries = TRIES if len(gains) <= 100 else 1
    return max((best_order(weights, rng, rounds=6) for _ in range(tries)), key=weights.score)
