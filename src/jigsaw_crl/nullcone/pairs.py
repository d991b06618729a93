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

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.district_lines import CLEAR, SURE
from jigsaw_crl.nullcone.lines import Lines

__all__ = ["PairStatistics", "by_reading", "pair_statistics", "untold"]


# The choices (s, t) of lines of a pair.
_S, _T = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])


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
    i, j, k = first, second, len(first)
    K, M = _of_pairs(G, i, j), _of_pairs(N, i, j)
    own = K[:, 0:2, 4:6].reshape(k, 4)

    def pull(flipped: FloatArray, r: IntArray) -> FloatArray:
        """½⟨n_i^{1−s}, n_j^t⟩, or 2σ⟨n_i, n_j^t⟩ for rank 1."""
        two, sign = (lines.rank[r] == 2)[:, None], lines.sign[r][:, None]
        return np.asarray(np.where(two, 0.5 * flipped, 2.0 * sign * own)[:, :, None])

    # Coefficients, in the eight vectors, of x_i, m_i, x_j, m_j, n_i, n_j for each (s, t).
    eye = np.eye(8)
    n_i, m_i, n_j, m_j = (
        np.broadcast_to(eye[at], (k, 4, 8)) for at in (_S, 2 + _S, 4 + _T, 6 + _T)
    )
    x_i = n_j - pull(own[:, [2, 3, 0, 1]], i) * m_i
    x_j = n_i - pull(own[:, [1, 0, 3, 2]], j) * m_j

    C = np.zeros((k, 4, 4))
    form = lines.form
    for r, line, x, m in ((i, slice(0, 2), x_i, m_i), (j, slice(4, 6), x_j, m_j)):
        # The regime's own rows have the covariance M + n W nᵀ.
        rows = M + K[:, :, line] @ form[r] @ K[:, line, :]
        C += _covariance(rows, x, m) / n[r][:, None, None]
    U, V = np.concatenate([x_i, x_j, n_i], axis=1), np.concatenate([m_i, m_j, n_j], axis=1)
    C += _covariance(M, U, V).reshape(k, 3, 4, 3, 4).sum(axis=(1, 3)) / n_eff

    norm = np.sqrt(np.diagonal(K, axis1=1, axis2=2))
    scale = norm[:, _S] * norm[:, 4 + _T]
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    C *= inverse[:, :, None] * inverse[:, None, :]
    return PairStatistics(first, second, own * inverse, C)


def _of_pairs(G: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
    """Inner products of the eight vectors of each pair, shape (k, 8, 8)."""
    both = 4 * np.stack([i, j], axis=1)[:, :, None] + np.arange(4)
    at = both.reshape(len(i), 8)
    return np.asarray(G[at[:, :, None], at[:, None, :]])


def _covariance(M: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
    """`(uᵀMu')(vᵀMv') + (uᵀMv')(vᵀMu')` of all u and their partners v."""
    uM, across = u @ M, np.swapaxes(v, 1, 2)
    uv = uM @ across
    return np.asarray((uM @ np.swapaxes(u, 1, 2)) * (v @ M @ across) + uv * np.swapaxes(uv, 1, 2))


def _gram(lines: Lines, metric: FloatArray | None = None) -> FloatArray:
    """Inner products of all lines and duals, shape (4r, 4r)."""
    r = len(lines.rank)
    flat = np.concatenate([lines.n, lines.m], axis=1).reshape(4 * r, -1)
    return np.asarray(flat @ (flat.T if metric is None else metric @ flat.T))


def by_reading(pairs: PairStatistics, lines: Lines) -> Statistics:
    """Statistics of q and c for each reading of a pair.

    A reading says which line of i (s) and of j (t) is its q; the other one is its c, which is
    replaced by its unit part orthogonal to q. Readings are (s, t) = 00, 01, 10, 11.
    """
    i, j = pairs.first, pairs.second
    k, cos = len(i), _between(lines)
    values, covariance = np.empty((k, 4, 3)), np.empty((k, 4, 3, 3))
    B = _own_parts(cos[i], cos[j])
    for reading, (s, t) in enumerate(zip(_S.tolist(), _T.tolist(), strict=True)):
        place = np.array([reading, 2 * s + 1 - t, 2 * (1 - s) + t, 2 * (1 - s) + 1 - t])
        values[:, reading] = (B @ pairs.T[:, place, None])[:, :, 0]
        covariance[:, reading] = B @ pairs.covariance[:, place[:, None], place] @ B.swapaxes(1, 2)
    two_i, two_j = (lines.rank[i] == 2)[:, None], (lines.rank[j] == 2)[:, None]
    exists = (two_i | (_S == 0)) & (two_j | (_T == 0))
    free = np.repeat(np.stack([two_i, two_j], axis=2), 4, axis=1)
    return Statistics(i, j, values, covariance, exists, free)


def _own_parts(cos_i: FloatArray, cos_j: FloatArray) -> FloatArray:
    """Takes (⟨q,q⟩, ⟨q_i,c_j⟩, ⟨c_i,q_j⟩, ⟨c_i,c_j⟩) to the first three with c⊥, shape (k, 3, 4).

    `c⊥ = (c − cosθ q)/sinθ` is the unit vector of the plane that is orthogonal to q. The angle θ
    between the two lines is the same whichever of them is q, so the volume factor of this change
    of variables is the same for all choices of lines.
    """
    least = np.finfo(np.float64).eps
    sin_i, sin_j = (np.sqrt(np.maximum(1.0 - c**2, least)) for c in (cos_i, cos_j))
    B = np.zeros((len(cos_i), 3, 4))
    B[:, 0, 0] = 1.0
    B[:, 1, 0], B[:, 1, 1] = -cos_j / sin_j, 1.0 / sin_j
    B[:, 2, 0], B[:, 2, 2] = -cos_i / sin_i, 1.0 / sin_i
    return B


def _between(lines: Lines) -> FloatArray:
    """Cosine of the angle between the two lines of each regime, 0 where there is one, (r,)."""
    inner = np.einsum("rp,rp->r", lines.n[:, 0], lines.n[:, 1])
    norms = np.linalg.norm(lines.n, axis=2).prod(axis=1)
    return np.asarray(np.divide(inner, norms, out=np.zeros_like(inner), where=norms > 0))


def untold(pairs: PairStatistics, lines: Lines, rounding: FloatArray, complete: bool) -> BoolArray:
    """Pairs of exact moments in which rounding could decide, shape (n_pairs,).

    The line of a rank-1 regime may be tilted towards spouses and ancestors that rounding hides
    (`Lines.tilts`). A product with it that is not zero may be an effect or the tilt, unless it is
    larger than the tilt can be. If it is zero, so are both: generically they do not cancel. A
    tilted line meets all lines of the spouse or ancestor. So where every latent has a regime, a
    line that misses a line of each of the others is not tilted.

    If all lines of a pair meet, the two may be of one district. If one product is near its bound,
    it may also be zero, and they are not. Where a second direction is weak, the bound of all
    products may exceed them; the axes between the lines, known far better, show that they meet.

    Parameters
    ----------
    pairs : PairStatistics
    lines : Lines
    rounding : array, shape (r,)
        Relative rounding error of the whitened moments.
    complete : bool
        Every latent has a regime that shows its line.
    """
    i, j = pairs.first, pairs.second
    error, tilt = lines.errors(rounding), lines.tilts(rounding)
    size, bound = np.abs(pairs.T), error[i] + error[j]
    meet = size > SURE * bound[:, None]
    all_meet = meet.sum(axis=1) == lines.rank[i] * lines.rank[j]
    if complete:
        tilt[np.setdiff1d(np.arange(len(tilt)), [i[all_meet], j[all_meet]])] = 0.0
    open_to = tilt[i] + tilt[j] + np.where(all_meet, bound, 0.0)
    small = (meet & (size <= CLEAR * open_to[:, None])).any(axis=1)
    blurred = _axes_meet(pairs, lines, rounding) & (size <= CLEAR * bound[:, None]).all(axis=1)
    return np.asarray(small | blurred)


def _axes_meet(pairs: PairStatistics, lines: Lines, rounding: FloatArray) -> BoolArray:
    """Pairs whose stronger eigenvectors, which lie midway between the lines, are not orthogonal."""
    i, j = pairs.first, pairs.second
    # n⁺ + n⁻ is along a, and n⁺ − n⁻ along b.
    side = np.stack([np.ones(len(lines.rank)), np.where(_between(lines) < 0, -1.0, 1.0)], axis=1)
    product = np.einsum("ks,kst,kt->k", side[i], pairs.T.reshape(-1, 2, 2), side[j])
    error = lines.axis_errors(rounding)
    return np.asarray(np.abs(product) > SURE * 4.0 * (error[i] + error[j]))
