"""Random statistics of pairs, as a client would hand them to the evidence model."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.evidence.hypotheses import quantities
from jigsaw_crl.evidence.mixture import Statistics


def random_pairs(rng, n_regimes, n_readings=4):
    """Statistics of all pairs of regimes, the quantities of each pair, and weights of readings."""
    i, j = np.triu_indices(n_regimes, 1)
    k = len(i)
    single = rng.random(n_regimes) < 0.4
    lean = np.where(single, rng.uniform(0.05, 0.5, n_regimes), 0.0)
    root = rng.normal(size=(k, n_readings, 3, 3)) * 0.05
    covariance = root @ np.swapaxes(root, 2, 3) + 1e-4 * np.eye(3)
    values = rng.normal(size=(k, n_readings, 3)) * rng.choice([0.02, 0.5], size=(k, 1, 3))
    used = np.stack([np.ones(k, dtype=bool), ~single[j], ~single[i]], axis=1)
    same_as = np.broadcast_to(np.arange(n_readings), (k, n_readings)).copy()
    statistics = Statistics(i, j, values, covariance, used, same_as)
    sizes = quantities(lean[i], lean[j], single[i], single[j])
    return statistics, sizes, rng.normal(size=(k, n_readings))
