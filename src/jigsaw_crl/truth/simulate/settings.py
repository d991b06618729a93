"""Settings A, B and C of the paper.

`weights` lists the nonzero entries `(i, j, A[i, j])`, counted from 1 as the paper does: an edge
from j to i. `node_sets` are the O_k and `feature_counts` the n_k.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray

__all__ = ["SETTINGS", "Setting"]


@dataclass(frozen=True)
class Setting:
    """One of the paper's three simulated systems."""

    n_latent: int
    weights: tuple[tuple[int, int, float], ...]
    node_sets: tuple[tuple[int, ...], ...]
    feature_counts: tuple[int, ...]

    def matrix(self) -> FloatArray:
        """A, shape (n_latent, n_latent)."""
        A = np.zeros((self.n_latent, self.n_latent))
        for i, j, weight in self.weights:
            A[i - 1, j - 1] = weight
        return A


# fmt: off
SETTINGS = {
    "A": Setting(
        n_latent=5,
        weights=(
            (1, 2, 1.0), (1, 3, 0.7), (2, 4, -1.0), (3, 4, 1.3), (3, 5, -0.9), (4, 5, 0.6),
        ),
        node_sets=((1, 3, 4, 5), (1, 2, 4, 5), (1, 2, 3, 4), (1, 2, 3), (2, 3, 5)),
        feature_counts=(8, 6, 7, 6, 5),
    ),
    "B": Setting(
        n_latent=8,
        weights=(
            (1, 2, -0.8), (1, 3, 0.1), (2, 3, 0.6), (2, 4, 1.2),
            (3, 8, 1.0), (4, 7, -0.9), (5, 6, 1.1), (6, 7, 0.7),
        ),
        node_sets=((2, 3, 4, 7, 8), (1, 2, 3, 5, 6, 7), (1, 2, 4, 5, 6, 8), (1, 3, 4, 5, 7, 8)),
        feature_counts=(9, 10, 8, 9),
    ),
    "C": Setting(
        n_latent=10,
        weights=(
            (1, 3, -0.9), (2, 3, 1.0), (2, 6, 0.7), (3, 4, 1.2), (3, 10, -0.8),
            (4, 10, -1.0), (5, 10, 1.3), (6, 7, 1.1), (6, 8, 0.9), (7, 8, -0.5),
        ),
        node_sets=(
            (1, 2, 3, 4, 5, 6, 7, 9), (3, 5, 6, 7, 8, 10), (1, 2, 4, 7, 8, 9, 10),
            (1, 3, 4, 5, 6, 7, 10), (1, 2, 3, 6, 8, 9),
        ),
        feature_counts=(12, 10, 9, 11, 8),
    ),
}
# fmt: on
