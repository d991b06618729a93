"""Statistics and evidence of pairs as arrays over pairs: slow, and close to the formulas.

What the compiled loops of `jigsaw_crl.nullcone.pair_loops` must agree with.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.nullcone.evidence import (
    DISTRICT,
    DISTRICT_WEIGHT,
    JITTER,
    MISSED,
    SCALES,
    SINGLE,
    SINGLE_WEIGHT,
)

# Position of (q_i q_j), (q_i c_j), (c_i q_j), (c_i c_j) among the statistics 00, 01, 10, 11 when
# the q-lines of i and j are s and t.
COMPONENTS = np.array(
    [
        [2 * s + t, 2 * s + 1 - t, 2 * (1 - s) + t, 2 * (1 - s) + 1 - t]
        for s in (0, 1)
        for t in (0, 1)
    ]
)


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


def evidence(T, C, lines, i, j):
    """Log densities none, forward, backward, district, rest, lean of the pairs (i, j)."""
    rank = lines.rank
    k = len(T)
    kind = (rank[j] == 1) + 2 * (rank[i] == 1)
    used = np.stack([np.ones(k, bool), kind % 2 == 0, kind < 2], axis=1)[:, None, :]

    B = own_parts(lines, i, j)[:, None]
    g = (B @ T[:, COMPONENTS, None])[..., 0]  # (k, 4, 4)
    S = C[:, COMPONENTS[:, :, None], COMPONENTS[:, None, :]]  # (k, 4, 4, 4)
    S = B @ S @ np.swapaxes(B, 2, 3)
    rest = np.where(kind[:, None] == 0, log_slab(g[..., 3], S[..., 3, 3]), 0.0)
    g, S = np.where(used, g[..., :3], 0.0), S[..., :3, :3]
    variance = np.diagonal(S, axis1=2, axis2=3)
    sd = np.sqrt(np.where(used & (variance > 0), variance, 1.0))
    z = g / sd
    off = np.empty_like(z)
    for slot, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
        both = used[..., a] & used[..., b]
        off[..., slot] = np.where(both, S[..., a, b] / (sd[..., a] * sd[..., b]), 0.0)

    log_sd = np.log(sd).sum(axis=-1)

    def density(scales):
        """`scales`: slab standard deviations, shape (k, n_components, 3)."""
        v = (np.where(used, scales, 0.0)[:, None] / sd[:, :, None, :]) ** 2
        joint = log_density(z[:, :, None, :], 1.0 + v, off[:, :, None, :])
        return np.asarray(joint - log_sd[:, :, None])

    def mixture(scales, log_weight):
        return np.logaddexp.reduce(density(scales) + log_weight[:, None, :], axis=2)

    forward, backward, district, leaning = hypotheses(lines, i, j)
    none, lean = density(np.zeros((k, 1, 3)))[..., 0], density(leaning)[..., 0]
    return none, density(forward[0]), density(backward[0]), mixture(*district), rest, lean


def hypotheses(lines, first, second):
    """What each hypothesis allows the three statistics of each pair to be: scales, log weights."""
    k = len(first)
    i_one = lines.rank[first] == 1
    j_one = lines.rank[second] == 1
    # Two components: a lean of about half of what could be missed, or a small part of it.
    lean_i = lines.tilt[first][:, None] * np.array([0.5, 0.125])
    lean_j = lines.tilt[second][:, None] * np.array([0.5, 0.125])
    lean = np.maximum(lean_i, lean_j)
    taus = np.broadcast_to(np.array(SCALES), (k, 2))
    zero = np.zeros((k, 2))

    def where(both, i, j, neither):
        """Pick by which targets are of rank 1: both, only i, only j, neither."""
        one = np.where(j_one[:, None], j, neither)
        return np.asarray(np.where(i_one[:, None], np.where(j_one[:, None], both, i), one))

    def mixture(g, qc, cq, weight):
        with np.errstate(divide="ignore"):
            return np.stack([g, qc, cq], axis=2), np.log(weight)

    missed_i = np.minimum(lines.tilt[first], MISSED)[:, None]
    missed_j = np.minimum(lines.tilt[second], MISSED)[:, None]
    either = np.maximum(missed_i, missed_j)
    leans_at = [
        np.where(i_one & j_one, lean[:, 0], 0.0),
        np.where(i_one, lean_i[:, 0], 0.0),
        np.where(j_one, lean_j[:, 0], 0.0),
    ]
    ones = np.ones((k, 2))
    forward = mixture(
        where(lean_j, zero, lean_j, zero),
        where(zero, taus, zero, taus),
        where(zero, zero, lean_j, zero),
        ones,
    )
    backward = mixture(
        where(lean_i, lean_i, zero, zero),
        where(zero, lean_i, zero, zero),
        where(zero, zero, taus, taus),
        ones,
    )
    single = (i_one | j_one)[:, None]
    far, near = lean[:, :1], lean[:, 1:]
    leans = np.concatenate([far, near, near, far, far], axis=1)
    shares = either * SINGLE_WEIGHT
    district = mixture(
        np.where(single, leans, DISTRICT[:, 0]),
        np.where(single, SINGLE, DISTRICT[:, 1]),
        np.where(single, SINGLE, DISTRICT[:, 2]),
        np.where(single, shares, DISTRICT_WEIGHT),
    )
    return forward, backward, district, np.stack(leans_at, axis=1)[:, None]


def own_parts(lines, first, second):
    """Matrix that replaces c by c⊥ in (⟨q,q⟩, ⟨q_i,c_j⟩, ⟨c_i,q_j⟩, ⟨c_i,c_j⟩).

    `c⊥ = (c − cosθ q)/sinθ` is the unit vector of the plane that is orthogonal to q. The angle θ
    between the two lines is the same whichever of them is q, so the volume factor of this change
    of variables is the same for all choices of lines. Shape (n_pairs, 4, 4).
    """
    inner = np.einsum("rp,rp->r", lines.n[:, 0], lines.n[:, 1])
    norms = np.linalg.norm(lines.n, axis=2).prod(axis=1)
    cos = np.divide(inner, norms, out=np.zeros_like(inner), where=norms > 0)
    sin = np.sqrt(np.maximum(1.0 - cos**2, np.finfo(np.float64).eps))
    # (q, c) → (q, c⊥) for one target; a pair's statistics transform by the Kronecker product.
    one = np.zeros((len(cos), 2, 2))
    one[:, 0, 0], one[:, 1, 0], one[:, 1, 1] = 1.0, -cos / sin, 1.0 / sin
    i, j = one[first], one[second]
    return np.asarray((i[:, :, None, :, None] * j[:, None, :, None, :]).reshape(-1, 4, 4))


def log_slab(x, variance):
    """Log density, up to a constant, of a statistic that no hypothesis restricts."""
    total = variance + SCALES[0] ** 2
    return np.asarray(-0.5 * (np.log(total) + x**2 / total))


def log_density(z, diagonal, off):
    """Log density, up to a constant, of N(z; 0, A) for 3 × 3 matrices A given by their entries."""
    a, b, c = (diagonal[..., i] + JITTER for i in range(3))
    d, e, f = off[..., 0], off[..., 1], off[..., 2]
    x, y, w = z[..., 0], z[..., 1], z[..., 2]
    m_a, m_b, m_c = b * c - f * f, a * c - e * e, a * b - d * d
    m_d, m_e, m_f = e * f - d * c, d * f - b * e, d * e - a * f
    det = a * m_a + d * m_d + e * m_e
    quad = x * x * m_a + y * y * m_b + w * w * m_c
    quad = quad + 2 * (x * y * m_d + x * w * m_e + y * w * m_f)
    return np.asarray(-0.5 * (np.log(det) + quad / det))
