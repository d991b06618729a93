"""How do the lines of two targets meet by exact moments, and how surely do we know it?

For regimes i, j and choices of line s, t let `T_ij[s,t] = ⟨n_i^s, n_j^t⟩/(‖n_i^s‖‖n_j^t‖)`.
Rounding turns either line by at most `Lines.errors`, so T is off by at most the sum of both. Errors
are found to be far below that bound: `SURE` times the bound stands for a standard error.
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
    """Inner products of the unit lines of every pair of regimes, with their covariance.

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
    lines: Lines, rounding: FloatArray, first: IntArray, second: IntArray
) -> PairStatistics:
    """Statistics of the pairs (first[k], second[k]).

    `rounding`, shape (r,), is the relative rounding error of the whitened moments.
    """
    norm = np.linalg.norm(lines.n, axis=2, keepdims=True)
    unit = np.divide(lines.n, norm, out=np.zeros_like(lines.n), where=norm > 0)
    T = np.einsum("ksp,ktp->kst", unit[first], unit[second]).reshape(-1, 4)
    error = lines.errors(rounding)
    bound = SURE * (error[first] + error[second])
    return PairStatistics(first, second, T, bound[:, None, None] ** 2 * np.eye(4))


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
