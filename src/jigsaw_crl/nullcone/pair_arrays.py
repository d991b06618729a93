"""The loops of `pair_loops` as arrays over pairs: as fast with few pairs, without the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["products", "readings"]

Array = npt.NDArray[Any]

# The choices (s, t) of lines of a pair.
_S, _T = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


def products(
    G: Array, N: Array, form: Array, rank: Array, sign: Array, n: Array, n_eff: float,
    first: Array, second: Array, T: Array, C: Array,
) -> None:  # fmt: skip
    """See `pair_loops.products`."""
    i, j, k = first, second, len(first)
    K, M = _of_pairs(G, i, j), _of_pairs(N, i, j)
    own = K[:, 0:2, 4:6].reshape(k, 4)

    def pull(flipped: Array, r: Array) -> Array:
        """½⟨n_i^{1−s}, n_j^t⟩, or 2σ⟨n_i, n_j^t⟩ for rank 1."""
        two = (rank[r] == 2)[:, None]
        return np.asarray(np.where(two, 0.5 * flipped, 2.0 * sign[r][:, None] * own)[:, :, None])

    # Coefficients, in the eight vectors, of x_i, m_i, x_j, m_j, n_i, n_j for each (s, t).
    eye = np.eye(8)
    n_i, m_i, n_j, m_j = (
        np.broadcast_to(eye[at], (k, 4, 8)) for at in (_S, 2 + _S, 4 + _T, 6 + _T)
    )
    x_i = n_j - pull(own[:, [2, 3, 0, 1]], i) * m_i
    x_j = n_i - pull(own[:, [1, 0, 3, 2]], j) * m_j

    C[:] = 0.0
    for r, line, x, m in ((i, slice(0, 2), x_i, m_i), (j, slice(4, 6), x_j, m_j)):
        # The regime's own rows have the covariance M + n W nᵀ.
        rows = M + K[:, :, line] @ form[r] @ K[:, line, :]
        C += _covariance(rows, x, m) / n[r][:, None, None]
    U, V = np.concatenate([x_i, x_j, n_i], axis=1), np.concatenate([m_i, m_j, n_j], axis=1)
    C += _covariance(M, U, V).reshape(k, 3, 4, 3, 4).sum(axis=(1, 3)) / n_eff

    norm = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    scale = norm[:, _S] * norm[:, 4 + _T]
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    T[:] = own * inverse
    C *= inverse[:, :, None] * inverse[:, None, :]


def _of_pairs(G: Array, i: Array, j: Array) -> Array:
    """Inner products of the eight vectors of each pair, shape (k, 8, 8)."""
    both = 4 * np.stack([i, j], axis=1)[:, :, None] + np.arange(4)
    at = both.reshape(len(i), 8)
    return np.asarray(G[at[:, :, None], at[:, None, :]])


def _covariance(M: Array, u: Array, v: Array) -> Array:
    """`(uᵀMu')(vᵀMv') + (uᵀMv')(vᵀMu')` of all u and their partners v."""
    uM, across = u @ M, np.swapaxes(v, 1, 2)
    uv = uM @ across
    return np.asarray((uM @ np.swapaxes(u, 1, 2)) * (v @ M @ across) + uv * np.swapaxes(uv, 1, 2))


def readings(
    T: Array, C: Array, first: Array, second: Array, cos: Array, values: Array, covariance: Array
) -> None:
    """See `pair_loops.readings`."""
    B = _own_parts(cos[first], cos[second])
    for reading in range(4):
        s, t = reading // 2, reading % 2
        place = np.array([reading, 2 * s + 1 - t, 2 * (1 - s) + t, 2 * (1 - s) + 1 - t])
        values[:, reading] = (B @ T[:, place, None])[:, :, 0]
        covariance[:, reading] = B @ C[:, place[:, None], place] @ np.swapaxes(B, 1, 2)


def _own_parts(cos_i: Array, cos_j: Array) -> Array:
    """See `pair_loops`: the first three rows of each pair's matrix, shape (k, 3, 4)."""
    least = np.finfo(np.float64).eps
    sin_i, sin_j = (np.sqrt(np.maximum(1.0 - c**2, least)) for c in (cos_i, cos_j))
    B = np.zeros((len(cos_i), 3, 4))
    B[:, 0, 0] = 1.0
    B[:, 1, 0], B[:, 1, 1] = -cos_j / sin_j, 1.0 / sin_j
    B[:, 2, 0], B[:, 2, 2] = -cos_i / sin_i, 1.0 / sin_i
    return B
