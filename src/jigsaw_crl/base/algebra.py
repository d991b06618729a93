"""Symmetric positive semi-definite matrices: leading space, pseudo-inverse, inverse square root."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.arrays import FloatArray


def column_space(second_moment: FloatArray, rank: int) -> FloatArray:
    """Orthonormal basis of the leading `rank` eigenvectors, shape (d, rank)."""
    _, vectors = np.linalg.eigh(second_moment)
    return np.ascontiguousarray(vectors[:, ::-1][:, :rank])


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
