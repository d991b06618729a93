"""Pseudo-inverse and inverse square root of moments; rows off other rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray

# Length of a unit row off the others from which it is rounding.
DEPENDENT = 1e-7


def fixed_rank_pinv(matrix: FloatArray, rank: int) -> FloatArray:
    """Pseudo-inverse of a symmetric positive semi-definite matrix of known rank.

    The rank is an argument because the model gives it (the number of latents of a client); a
    threshold on the eigenvalues would have to guess it.
    """
    values, vectors = np.linalg.eigh(matrix)
    top = vectors[..., :, -rank:]
    scaled = top / values[..., None, -rank:]
    inverse = scaled @ np.swapaxes(top, -1, -2)
    return np.asarray((inverse + np.swapaxes(inverse, -1, -2)) / 2, dtype=np.float64)


def inverse_square_root(matrix: FloatArray) -> FloatArray:
    """Symmetric `M^(−1/2)`; eigenvalues below rounding error are raised to it."""
    values, vectors = np.linalg.eigh(matrix)
    least = max(float(values[-1]) * np.finfo(np.float64).eps, np.finfo(np.float64).tiny)
    values = np.maximum(values, least)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T, dtype=np.float64)


def orthogonal_rows(
    rows: FloatArray, groups: Sequence[Sequence[int]], above: BoolArray
) -> FloatArray:
    """Each row minus its projection on the rows of its ancestors, scaled to unit length.

    Rows of a group have the same ancestors: `above[a, d]` says that row a is one of row d. The
    order among the ancestors does not matter, because they span the same space in any.
    """
    scale = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(scale > 0, scale, 1.0)
    off = unit.copy()
    for group in groups:
        Q, R = np.linalg.qr(unit[above[:, group[0]]].T)
        # A row that depends on those before it adds no direction.
        Q = Q[:, np.abs(np.diagonal(R)) > DEPENDENT]
        for _ in range(2):  # the second pass removes what rounding left
            off[group] -= (off[group] @ Q) @ Q.T
    norm = np.linalg.norm(off, axis=1, keepdims=True)
    return np.asarray(off / np.where(norm > 0, norm, 1.0))
