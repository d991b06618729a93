"""Statistics of pairs as arrays over pairs: slow, and close to the formulas.

What the compiled loops of `jigsaw_crl.nullcone.pair_loops` must agree with.
"""

from __future__ import annotations

import numpy as np


def statistics(lines, n, n_eff, i, j, noise):
    """T, shape (k, 4), and covariance, shape (k, 4, 4), of the pairs (i, j)."""
    r = len(lines.rank)
    flat = np.concatenate([lines.n, lines.m], axis=1).reshape(4 * r, -1)
    metric = np.eye(flat.shape[1]) + (0 if noise is None else noise)
    G = (flat @ flat.T).reshape(r, 4, r, 4)
    N_all = (flat @ metric @ flat.T).reshape(r, 4, r, 4)
    form = lines.form
    k = len(i)
    K, N = of_pairs(G, i, j), of_pairs(N_all, i, j)
    T = K[:, 0:2, 4:6].reshape(k, 4)

    # Coefficients, in the eight vectors, of x_i, m_i, x_j, m_j, n_i, n_j for each (s, t).
    eye = np.eye(8)
    s, t = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    n_i, m_i = np.broadcast_to(eye[s], (k, 4, 8)), np.broadcast_to(eye[2 + s], (k, 4, 8))
    n_j, m_j = np.broadcast_to(eye[4 + t], (k, 4, 8)), np.broadcast_to(eye[6 + t], (k, 4, 8))
    x_i = n_j - pull(T[:, [2, 3, 0, 1]], T, lines, i)[:, :, None] * m_i
    x_j = n_i - pull(T[:, [1, 0, 3, 2]], T, lines, j)[:, :, None] * m_j

    C = sampling_part(N, K, form[i], slice(0, 2), x_i, m_i) / n[i][:, None, None]
    C += sampling_part(N, K, form[j], slice(4, 6), x_j, m_j) / n[j][:, None, None]
    C += whitening_part(N, (x_i, x_j, n_i), (m_i, m_j, n_j)) / n_eff

    norm = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    scale = norm[:, s] * norm[:, 4 + t]
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    return T * inverse, C * inverse[:, :, None] * inverse[:, None, :]


def of_pairs(G, i, j):
    """Gram matrices of the eight vectors of each pair, shape (k, 8, 8)."""
    K = np.empty((len(i), 8, 8))
    K[:, :4, :4], K[:, 4:, 4:] = G[i, :, i], G[j, :, j]
    K[:, :4, 4:] = G[i, :, j]
    K[:, 4:, :4] = np.swapaxes(K[:, :4, 4:], 1, 2)
    return K


def pull(flipped, T, lines, i):
    """Coefficient of m_i in n_j − x_i: ½⟨n_i^{1−s}, n_j^t⟩, or 2σ⟨n_i, n_j^t⟩ for rank 1."""
    rank_two = (lines.rank[i] == 2)[:, None]
    return np.where(rank_two, 0.5 * flipped, 2.0 * lines.sign[i][:, None] * T)


def sampling_part(N, K, form, own, x, m):
    """`(xᵀMx')(mᵀMm') + (xᵀMm')(mᵀMx')` with M = I + noise + n W nᵀ, for all (s,t), (s',t')."""
    Q = N + K[:, :, own] @ form @ K[:, own, :]
    xQ = x @ Q
    xm = xQ @ np.swapaxes(m, 1, 2)
    return np.asarray(
        (xQ @ np.swapaxes(x, 1, 2)) * ((m @ Q) @ np.swapaxes(m, 1, 2)) + xm * np.swapaxes(xm, 1, 2)
    )


def whitening_part(K, u, v):
    """Covariance of `Σ_g u_gᵀ H v_g` for isotropic H of unit size."""
    U, V = np.concatenate(u, axis=1), np.concatenate(v, axis=1)
    UK = U @ K
    UV = UK @ np.swapaxes(V, 1, 2)
    joint = (UK @ np.swapaxes(U, 1, 2)) * ((V @ K) @ np.swapaxes(V, 1, 2)) + UV * np.swapaxes(
        UV, 1, 2
    )
    g = len(u)
    return np.asarray(joint.reshape(len(K), g, 4, g, 4).sum(axis=(1, 3)))
