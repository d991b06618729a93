"""How do the lines of two targets meet, and how surely do we know it?

For regimes i, j and choices of line s, t let `T_ij[s,t] = ⟨n_i^s, n_j^t⟩`. To first order in the
sampling errors N_i of `M_i` and H of the whitening,

    δT = x_iᵀ(N_i − H)m_i + x_jᵀ(N_j − H)m_j − n_iᵀ H n_j ,
    x_i = n_j^t − ½⟨n_i^{1−s}, n_j^t⟩ m_i^s      (rank 1:  x_i = n_j^t − 2σ⟨n_i, n_j^t⟩ m_i) ,

and symmetrically x_j. For Gaussian rows
`Cov(xᵀNm, x'ᵀNm') = [(xᵀMx')(mᵀMm') + (xᵀMm')(mᵀMx')]/n_i`, and the same for H with M = I and
n = n_eff; sensor noise that was taken off the moments is added back to both M. Every vector is a
combination of the eight vectors (n_i^±, m_i^±, n_j^±, m_j^±), so the joint 4 × 4 covariance of a
pair needs only their Gram matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.nullcone.lines import Lines

__all__ = ["PairStatistics", "pair_statistics"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Pairs handled at once: 8 × 8 Gram matrices and 12 × 12 products, about 4 kB a pair, are to stay in
# a core's cache.
CHUNK = 1_000


@dataclass(frozen=True, eq=False)
class PairStatistics:
    """Unit-scaled inner products of the lines of every pair of regimes, with their covariance.

    Parameters
    ----------
    first, second : array of int, shape (n_pairs,)
        Regimes i and j of each pair.
    T : array, shape (n_pairs, 4)
        `⟨n_i^s, n_j^t⟩/(‖n_i^s‖‖n_j^t‖)` for (s, t) = 00, 01, 10, 11; 0 where a line is missing.
    covariance : array, shape (n_pairs, 4, 4)
    """

    first: IntArray
    second: IntArray
    T: FloatArray
    covariance: FloatArray

    def part(self, pairs: slice) -> PairStatistics:
        return PairStatistics(
            self.first[pairs], self.second[pairs], self.T[pairs], self.covariance[pairs]
        )


def pair_statistics(
    lines: Lines,
    n: FloatArray,
    n_eff: float,
    first: IntArray,
    second: IntArray,
    noise: FloatArray | None = None,
) -> PairStatistics:
    """Statistics of the pairs (first[k], second[k]); `noise` as in `Whitened`."""
    G = _gram(lines)
    # The same in the metric I + noise, which the rows had.
    N = G if noise is None else _gram(lines, np.eye(len(noise)) + noise)
    form = lines.form
    parts = [
        _chunk(lines, G, N, form, n, n_eff, first[k : k + CHUNK], second[k : k + CHUNK])
        for k in range(0, max(len(first), 1), CHUNK)
    ]
    return PairStatistics(
        first,
        second,
        np.concatenate([T for T, _ in parts]),
        np.concatenate([C for _, C in parts]),
    )


def _chunk(
    lines: Lines,
    G: FloatArray,
    N_all: FloatArray,
    form: FloatArray,
    n: FloatArray,
    n_eff: float,
    i: IntArray,
    j: IntArray,
) -> tuple[FloatArray, FloatArray]:
    k = len(i)
    K = _of_pairs(G, i, j)  # (k, 8, 8): n_i⁰ n_i¹ m_i⁰ m_i¹ n_j⁰ n_j¹ m_j⁰ m_j¹
    N = K if N_all is G else _of_pairs(N_all, i, j)
    T = K[:, 0:2, 4:6].reshape(k, 4)

    # Coefficients, in the eight vectors, of x_i, m_i, x_j, m_j, n_i, n_j for each (s, t).
    eye = np.eye(8)
    s, t = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    n_i, m_i = np.broadcast_to(eye[s], (k, 4, 8)), np.broadcast_to(eye[2 + s], (k, 4, 8))
    n_j, m_j = np.broadcast_to(eye[4 + t], (k, 4, 8)), np.broadcast_to(eye[6 + t], (k, 4, 8))
    x_i = n_j - _pull(T[:, [2, 3, 0, 1]], T, lines, i)[:, :, None] * m_i
    x_j = n_i - _pull(T[:, [1, 0, 3, 2]], T, lines, j)[:, :, None] * m_j

    C = _sampling_part(N, K, form[i], slice(0, 2), x_i, m_i) / n[i][:, None, None]
    C += _sampling_part(N, K, form[j], slice(4, 6), x_j, m_j) / n[j][:, None, None]
    C += _whitening_part(N, (x_i, x_j, n_i), (m_i, m_j, n_j)) / n_eff

    norm = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    scale = norm[:, s] * norm[:, 4 + t]
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    return T * inverse, C * inverse[:, :, None] * inverse[:, None, :]


def _gram(lines: Lines, metric: FloatArray | None = None) -> FloatArray:
    """Inner products of all lines and duals, shape (r, 4, r, 4)."""
    r = len(lines.rank)
    flat = np.concatenate([lines.n, lines.m], axis=1).reshape(4 * r, -1)
    G = flat @ (flat.T if metric is None else metric @ flat.T)
    return np.asarray(G.reshape(r, 4, r, 4))


def _of_pairs(G: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
    """Gram matrices of the eight vectors of each pair, shape (k, 8, 8)."""
    K = np.empty((len(i), 8, 8))
    K[:, :4, :4], K[:, 4:, 4:] = G[i, :, i], G[j, :, j]
    K[:, :4, 4:] = G[i, :, j]
    K[:, 4:, :4] = np.swapaxes(K[:, :4, 4:], 1, 2)
    return K


def _pull(flipped: FloatArray, T: FloatArray, lines: Lines, i: IntArray) -> FloatArray:
    """Coefficient of m_i in n_j − x_i: ½⟨n_i^{1−s}, n_j^t⟩, or 2σ⟨n_i, n_j^t⟩ for rank 1."""
    rank_two = (lines.rank[i] == 2)[:, None]
    return np.where(rank_two, 0.5 * flipped, 2.0 * lines.sign[i][:, None] * T)


def _sampling_part(
    N: FloatArray, K: FloatArray, form: FloatArray, own: slice, x: FloatArray, m: FloatArray
) -> FloatArray:
    """`(xᵀMx')(mᵀMm') + (xᵀMm')(mᵀMx')` with M = I + noise + n W nᵀ, for all (s,t), (s',t')."""
    Q = N + K[:, :, own] @ form @ K[:, own, :]
    xQ = x @ Q
    xm = xQ @ np.swapaxes(m, 1, 2)
    return np.asarray(
        (xQ @ np.swapaxes(x, 1, 2)) * ((m @ Q) @ np.swapaxes(m, 1, 2)) + xm * np.swapaxes(xm, 1, 2)
    )


def _whitening_part(
    K: FloatArray, u: tuple[FloatArray, ...], v: tuple[FloatArray, ...]
) -> FloatArray:
    """Covariance of `Σ_g u_gᵀ H v_g` for isotropic H of unit size."""
    U, V = np.concatenate(u, axis=1), np.concatenate(v, axis=1)
    UK = U @ K
    UV = UK @ np.swapaxes(V, 1, 2)
    joint = (UK @ np.swapaxes(U, 1, 2)) * ((V @ K) @ np.swapaxes(V, 1, 2)) + UV * np.swapaxes(
        UV, 1, 2
    )
    g = len(u)
    return np.asarray(joint.reshape(len(K), g, 4, g, 4).sum(axis=(1, 3)))
