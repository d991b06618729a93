"""Random statistics of pairs, as a client would hand them to the evidence model."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.evidence.hypotheses import quantities
from jigsaw_crl.evidence.mixture import Statistics


def random_pairs(rng, n_regimes, n_readings=4):
    """Statistics of all pairs of regimes, the quantities of each pair, and weights of readings."""
    i, j = np.triu_indices(n_regimes, 1)
    k = len(i)
    root = rng.normal(size=(k, n_readings, 3, 3)) * 0.05
    covariance = root @ np.swapaxes(root, 2, 3) + 1e-4 * np.eye(3)
    values = rng.normal(size=(k, n_readings, 3)) * rng.choice([0.02, 0.5], size=(k, 1, 3))
    exists = rng.random((k, n_readings)) < 0.7
    exists[:, 0] = True
    free = rng.random((k, n_readings, 2)) < 0.7
    statistics = Statistics(i, j, values, covariance, exists, free)
    size = rng.uniform(0.2, 2.0, n_regimes)
    return statistics, quantities(size[i], size[j], 9), rng.normal(size=(k, n_readings))
