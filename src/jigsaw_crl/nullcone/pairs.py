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
from types import ModuleType

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone import pair_arrays
from jigsaw_crl.nullcone.district_lines import CLEAR, SURE
from jigsaw_crl.nullcone.lines import Lines

__all__ = ["PairStatistics", "by_reading", "pair_statistics", "untold"]


# Up to this many pairs, those of 20 labels, array code takes a millisecond and no compiling.
FEW = 200


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
    k = len(first)
    T, C = np.empty((k, 4)), np.empty((k, 4, 4))
    _loops(k).products(G, N, lines.form, lines.rank, lines.sign, n, n_eff, first, second, T, C)
    return PairStatistics(first, second, T, C)


def _loops(pairs: int) -> ModuleType:
    """Array code for few pairs, compiled loops for many."""
    if pairs <= FEW:
        return pair_arrays
    # Compiled on first use: numba takes longer to import than a small study to recover.
    from jigsaw_crl.nullcone import pair_loops

    return pair_loops


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
    k = len(i)
    values, covariance = np.empty((k, 4, 3)), np.empty((k, 4, 3, 3))
    _loops(k).readings(pairs.T, pairs.covariance, i, j, _between(lines), values, covariance)
    two_i, two_j = (lines.rank[i] == 2)[:, None], (lines.rank[j] == 2)[:, None]
    s, t = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    exists = (two_i | (s == 0)) & (two_j | (t == 0))
    free = np.repeat(np.stack([two_i, two_j], axis=2), 4, axis=1)
    return Statistics(i, j, values, covariance, exists, free)


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
