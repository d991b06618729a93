"""Readings of exact moments, which show the rank itself, with one bound on their rounding.

With `D = λ₁ a aᵀ − λ₂ b bᵀ` (λ₁, λ₂ > 0) the line of q is one of the two null lines

    n^± = (√λ₁ a ± √λ₂ b)/√2 ,     D = n⁺ n⁻ᵀ + n⁻ n⁺ᵀ ,

and the other one is that of c. In the letters of `readings`, `λ = λ₁ − λ₂` and `‖c‖² = λ₁λ₂` for
both. When D has rank 1 its one eigenvector is the line, and c = 0.

Whitened moments carry the relative rounding error r (`White`: `1/√n`), and D carries `r (1 + ‖D‖)`.
It turns a line by at most `1.5 r (1 + λ₁ + λ₂)/√(λ₁λ₂)` (rank 1: `1.5 r (1 + |λ|)/|λ|`), to first
order; that is the line's *error*. The product of two lines has the sum of their errors. Errors are
found to be far below this bound: `SURE` times the bound stands for a standard error, and within it
a number is zero. Beyond `CLEAR` times the bound it is certainly not.

Rounding hides a small λ₂, and a regime of rank 2 is then taken for one of rank 1. Its q and c lie
at the angle `atan √(λ₂/λ₁)` on either side of a, its *tilt*: the root of what is hidden, far more
than rounding itself turns a line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.white import White
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.judge import Judged
from jigsaw_crl.nullcone.readings import IMPOSSIBLE, READINGS, ZERO, Readings

__all__ = ["CLEAR", "SURE", "Rounding", "exact_readings", "exact_statistics"]

# Bounds are for the worst case, and rounding errors are found to be below a thousandth of them. A
# number is zero within the first share of its bound; beyond the second multiple it is not.
SURE, CLEAR = 1e-2, 10.0
# Where moments are well conditioned, `p · eps · κ` is no bound: every step of the computation
# rounds.
LEAST_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Rounding:
    """How far rounding may turn what is read of each regime, as angles, shape (r,) each.

    Parameters
    ----------
    error : array
        Of either line; ∞ where there is none.
    tilt : array
        Of the one line of a regime of rank 1, if a second direction is hidden; 0 for other ranks.
    """

    error: FloatArray
    tilt: FloatArray


def exact_readings(white: White, judged: Judged) -> tuple[Readings, Rounding]:
    """Readings of exact moments, and their rounding.

    The line of a regime of rank 1 is in slot 2, and in slot 0 too, which does not count.
    """
    r, p = white.d.shape
    moved = np.stack([judged.high, judged.low], axis=1) > 1
    size = np.stack([white.eigen.values[:, 3] - 1.0, 1.0 - white.eigen.values[:, 0]], axis=1)
    vector = np.stack([white.eigen.high, white.eigen.low], axis=1)
    rank = moved.sum(axis=1)
    one, two = rank == 1, rank == 2
    root = np.sqrt(np.where(moved, np.maximum(size, 0.0), 0.0))[:, :, None] * vector
    u, c = np.zeros((2, r, READINGS, p))
    u[:, 0], u[:, 1] = root.sum(axis=1), root[:, 0] - root[:, 1]
    u[one, 1], u[one, ZERO] = 0.0, u[one, 0]
    norm = np.linalg.norm(u, axis=2, keepdims=True)
    u = np.divide(u, norm, out=np.zeros_like(u), where=norm > 0)
    # Off u, the other line has the length of c = ‖n⁺‖ n⁻ off u.
    scale = 0.5 * norm[:, 0] * norm[:, 1]
    for s in (0, 1):
        other = u[:, 1 - s] * scale
        c[:, s] = other - np.einsum("rp,rp->r", other, u[:, s])[:, None] * u[:, s]
    c[:, ZERO] = 0.0
    lam = np.where(moved, size * [1.0, -1.0], 0.0).sum(axis=1)[:, None].repeat(READINGS, axis=1)
    signal = np.einsum("rsp,rsp->rs", c, c)
    has = np.stack([two, two, one], axis=1)
    rounding = _rounding(white, judged, rank, np.abs(size))
    fit = _fit_of_shifts(u, white, rounding.error)
    # D of a target whose mean alone moved is d dᵀ.
    left = size[:, 0] - np.einsum("rp,rp->r", white.eigen.high, white.d) ** 2
    change = np.abs(left) / ((judged.edges[:, 1] - 1.0) * (1.0 + size[:, 0]))
    usable = (rank > 0) & ~judged.several
    zero = np.zeros((r, READINGS))
    found = Readings(
        white=replace(white, M=white.M[:, :0, :0]),
        u=u,
        c=c,
        has=has,
        log_likelihood=np.where(has, fit, IMPOSSIBLE),
        lam=lam,
        m=np.einsum("rsp,rp->rs", u, white.d),
        signal=signal,
        null=zero,
        precision=zero,
        loose=zero,
        w_mean=white.size,
        w_cov=white.size,
        strength=judged.strength,
        odds=np.where(two, np.inf, -np.inf),
        held=~two,
        usable=usable,
        single=one,
        mean_alone=usable & one & moved[:, 0] & (change <= 1.0),
        change=change,
        size=np.where(two, np.sqrt(signal[:, 0]), 1.0),
        identified=bool(two[usable].any()),
    )
    return found, rounding


def _rounding(white: White, judged: Judged, rank: IntArray, size: FloatArray) -> Rounding:
    largest = np.where(rank == 2, size.sum(axis=1), size.max(axis=1))
    narrow = np.where(rank == 2, np.sqrt(size.prod(axis=1)), largest)
    relative, none = np.maximum(1.0 / np.sqrt(white.n), LEAST_ROUNDING), np.full(len(rank), np.inf)
    turn = np.divide(1.5 * relative * (1.0 + largest), narrow, out=none, where=rank > 0)
    # A second eigenvalue below the edge of detection may be real.
    hidden = np.maximum(size.min(axis=1), 1.0 - judged.edges[:, 0])
    tilt = np.where(rank == 1, np.arctan2(np.sqrt(hidden), np.sqrt(largest)), 0.0)
    return Rounding(np.maximum(turn, relative), tilt)


def _fit_of_shifts(unit: FloatArray, white: White, error: FloatArray) -> FloatArray:
    """Log likelihood of each line by the exact shift, which lies on the line of q (T7), (r, 3)."""
    d = white.d
    # The part off a line, not ‖d‖² − ⟨u, d⟩²: that difference is all rounding on the line of q.
    off = d[:, None] - np.einsum("rsp,rp->rs", unit, d)[:, :, None] * unit
    variance = 1.0 / white.n + np.einsum("rp,rp->r", d, d) * np.minimum(error, 1.0) ** 2
    fit = -0.5 * np.einsum("rsp,rsp->rs", off, off) / variance[:, None]
    return np.asarray(np.maximum(fit, 0.5 * IMPOSSIBLE))


def exact_statistics(
    readings: Readings, rounding: Rounding, first: IntArray, second: IntArray
) -> Statistics:
    """Statistics of the pairs (first[k], second[k]), without those in which rounding decides.

    With b the standard error of a product of two lines, and c = ρ n' − ½λ u where n' is the unit
    vector of the other line and ρ half of ‖D‖₁, `(u_i·u_j, u_i·c_j, c_i·u_j)` has the covariance
    `b² [vvᵀ + diag(0, ρ_j², ρ_i²)]`, `v = (1, −½λ_j, −½λ_i)`.
    """
    u, c, has = readings.u, readings.c, readings.has
    i, j = first, second
    T = np.zeros((len(i), READINGS, READINGS, 3))
    T[..., 0] = np.einsum("ksp,ktp->kst", u[i], u[j])
    T[..., 1] = np.einsum("ksp,ktp->kst", u[i], c[j])
    T[..., 2] = np.einsum("ksp,ktp->kst", c[i], u[j])
    exists = (has[i][:, :, None] & has[j][:, None, :]).reshape(-1, READINGS**2)
    bound = rounding.error[i] + rounding.error[j]
    half = 0.5 * readings.lam[:, 0]
    reach = np.sqrt(half**2 + readings.signal[:, 0])
    v = np.stack([np.ones(len(i)), -half[j], -half[i]], axis=1)
    C = v[:, :, None] * v[:, None, :]
    C[:, 1, 1] += reach[j] ** 2
    C[:, 2, 2] += reach[i] ** 2
    for at, alone in ((1, ~has[j, 0]), (2, ~has[i, 0])):
        C[alone, at], C[alone, :, at] = 0.0, 0.0
        C[alone, at, at] = 1.0
    C *= ((SURE * bound) ** 2)[:, None, None]
    C = np.broadcast_to(C[:, None], (len(i), READINGS**2, 3, 3))
    s, t = np.divmod(np.arange(READINGS**2), READINGS)
    free = np.broadcast_to(np.stack([s != ZERO, t != ZERO], axis=1), (*exists.shape, 2))
    found = Statistics(i, j, T.reshape(-1, READINGS**2, 3), C, exists, free)
    products = np.where(exists, np.abs(found.values[:, :, 0]), np.nan)
    return found.of(~_untold(readings, rounding, i, j, products, bound))


def _untold(
    readings: Readings,
    rounding: Rounding,
    i: IntArray,
    j: IntArray,
    products: FloatArray,
    bound: FloatArray,
) -> BoolArray:
    """Pairs in which rounding could decide, by the sizes of the products of their lines.

    The line of a rank-1 regime may be tilted towards spouses and ancestors that rounding hides. A
    product with it that is not zero may be an effect or the tilt, unless it is larger than the tilt
    can be. If it is zero, so are both: generically they do not cancel. A tilted line meets all
    lines of the spouse or ancestor. So where every latent has a regime, a line that misses a line
    of each of the others is not tilted.

    If all lines of a pair meet, the two may be of one district. If one product is near its bound,
    it may also be zero, and they are not.
    """
    white, tilt = readings.white, rounding.tilt.copy()
    with np.errstate(invalid="ignore"):
        meet = products > SURE * bound[:, None]
        all_meet = (meet | np.isnan(products)).all(axis=1)
        if len(np.unique(white.owner[readings.usable])) == white.dimension:
            tilt[np.setdiff1d(np.arange(len(tilt)), [i[all_meet], j[all_meet]])] = 0.0
        open_to = tilt[i] + tilt[j] + np.where(all_meet, bound, 0.0)
        small = (meet & (products <= CLEAR * open_to[:, None])).any(axis=1)
    return np.asarray(small)
