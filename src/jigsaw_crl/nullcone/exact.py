"""Readings of exact moments, which show the rank itself, with one bound on their rounding.

With `D = λ₁ a aᵀ − λ₂ b bᵀ` (λ₁, λ₂ > 0) the line of q is one of the two null lines

    n^± = (√λ₁ a ± √λ₂ b)/√2 ,     D = n⁺ n⁻ᵀ + n⁻ n⁺ᵀ ,

and the other one is that of c. In the letters of `readings`, `λ = λ₁ − λ₂` and `‖c‖² = λ₁λ₂` for
both. When D has rank 1 its one eigenvector is the line, and c = 0.

Whitened moments carry the relative rounding error r (`White`: `1/√n`), and D carries `r (1 + ‖D‖)`.
It turns a line by at most `1.5 r (1 + λ₁ + λ₂)/√(λ₁λ₂)` (rank 1: `1.5 r (1 + |λ|)/|λ|`), to first
order; that is the line's *error*. The product of two lines has the sum of their errors. Errors are
found to be far below this bound: `IS_ZERO` times the bound stands for a standard error, and within
it a number is zero. Beyond `NOT_ZERO` times the bound it is certainly not.

Rounding hides a small λ₂, and a regime of rank 2 is then taken for one of rank 1. Its q and c lie
at the angle `atan √(λ₂/λ₁)` on either side of a, its *tilt*: the root of what is hidden, far more
than rounding itself turns a line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.white import White
from jigsaw_crl.nullcone.judge import Judged
from jigsaw_crl.nullcone.readings import IMPOSSIBLE, READINGS, ZERO, Readings

# Bounds are for the worst case, and rounding errors are found to be below a thousandth of them. A
# number is zero within the first share of its bound; beyond the second multiple it is not.
IS_ZERO, NOT_ZERO = 1e-2, 10.0


@dataclass(frozen=True, eq=False)
class Rounding:
    """How far rounding may turn what is read of each regime, as angles, shape (r,) each."""

    # Of either line; ∞ where there is none.
    error: FloatArray
    # Of the one line of a regime of rank 1, if a second direction is hidden; 0 for other ranks.
    tilt: FloatArray


def exact_readings(white: White, judged: Judged) -> tuple[Readings, Rounding]:
    """Readings of exact moments, and their rounding.

    The line of a regime of rank 1 is in slot 2, and in slot 0 too, which does not count.
    """
    r, p = white.d.shape
    moved = np.stack([judged.high, judged.low], axis=1) > 1
    values, vectors = white.eigen
    size = np.stack([values[:, -1] - 1.0, 1.0 - values[:, 0]], axis=1)
    vector = np.stack([vectors[:, :, -1], vectors[:, :, 0]], axis=1)
    rank = moved.sum(axis=1)
    one, two = rank == 1, rank == 2
    root = np.sqrt(np.where(moved, np.maximum(size, 0.0), 0.0))[:, :, None] * vector
    u, c = np.zeros((2, r, READINGS, p))
    u[:, 0], u[:, 1] = root.sum(axis=1), root[:, 0] - root[:, 1]
    u[one, 1], u[one, ZERO] = 0.0, u[one, 0]
    norm = np.linalg.norm(u, axis=2, keepdims=True)
    u = np.divide(u, norm, out=np.zeros_like(u), where=norm > 0)
    # Off u, the other line has the length of c = ‖n⁺‖ n⁻ off u.
    for s in (0, 1):
        other = u[:, 1 - s] * (0.5 * norm[:, 0] * norm[:, 1])
        c[:, s] = other - np.einsum("rp,rp->r", other, u[:, s])[:, None] * u[:, s]
    lam = np.where(moved, size * [1.0, -1.0], 0.0).sum(axis=1)[:, None].repeat(READINGS, axis=1)
    signal = np.einsum("rsp,rsp->rs", c, c)
    largest = np.where(two, np.abs(size).sum(axis=1), np.abs(size).max(axis=1))
    narrow = np.where(two, np.sqrt(np.abs(size).prod(axis=1)), largest)
    relative = 1.0 / np.sqrt(white.n)
    turn = 1.5 * relative * (1.0 + largest)
    error = np.divide(turn, narrow, out=np.full(r, np.inf), where=rank > 0)
    error = np.maximum(error, relative)
    # A second eigenvalue below the edge of detection may be real.
    hidden = np.maximum(np.abs(size).min(axis=1), 1.0 - judged.edges[:, 0])
    tilt = np.where(one, np.arctan2(np.sqrt(hidden), np.sqrt(largest)), 0.0)
    # The exact shift lies on the line of q (T7). Its part off a line is not ‖d‖² − ⟨u, d⟩²: that
    # difference is all rounding on the line of q.
    d, m = white.d, np.einsum("rsp,rp->rs", u, white.d)
    off = d[:, None] - m[:, :, None] * u
    variance = 1.0 / white.n + np.einsum("rp,rp->r", d, d) * np.minimum(error, 1.0) ** 2
    fit = -0.5 * np.einsum("rsp,rsp->rs", off, off) / variance[:, None]
    # D of a target whose mean alone moved is d dᵀ.
    left = size[:, 0] - np.einsum("rp,rp->r", vector[:, 0], d) ** 2
    change = np.abs(left) / ((judged.edges[:, 1] - 1.0) * (1.0 + size[:, 0]))
    has = np.stack([two, two, one], axis=1)
    usable, zero = (rank > 0) & ~judged.several, np.zeros((r, READINGS))
    found = Readings(
        white=replace(white, M=white.M[:, :0, :0]),
        u=u,
        c=c,
        has=has,
        log_likelihood=np.where(has, np.maximum(fit, 0.5 * IMPOSSIBLE), IMPOSSIBLE),
        lam=lam,
        m=m,
        signal=signal,
        null=zero,
        precision=zero,
        loose=zero,
        w_mean=white.size,
        w_cov=white.size,
        strength=np.maximum(judged.low, judged.high),
        odds=np.where(two, np.inf, -np.inf),
        held=~two,
        usable=usable,
        single=one,
        mean_alone=usable & one & moved[:, 0] & (change <= 1.0),
        change=change,
        size=np.where(two, np.sqrt(signal[:, 0]), 1.0),
        identified=bool(two[usable].any()),
    )
    return found, Rounding(error, tilt)


def exact_products(
    readings: Readings, rounding: Rounding, i: IntArray, j: IntArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """T of `delta` in all readings, its covariance, and the pairs in which rounding cannot decide.

    With b the standard error of a product of two lines, and c = ρ n' − ½λ u where n' is the unit
    vector of the other line and ρ half of ‖D‖₁, T has the covariance
    `b² [vvᵀ + diag(0, ρ_j², ρ_i²)]`, `v = (1, −½λ_j, −½λ_i)`.

    The line of a rank-1 regime may be tilted towards spouses and ancestors that rounding hides, so
    that a product with it says something if it is zero or larger than the tilt can be. A tilted
    line meets all lines of the spouse or ancestor: where every latent has a regime, a line that
    misses a line of each of the others is not tilted. If all lines of a pair meet, the two may be
    of one district, unless a product near its bound is zero.
    """
    u, c, has, white = readings.u, readings.c, readings.has, readings.white
    T = np.zeros((len(i), READINGS, READINGS, 3))
    for at, (a, b) in enumerate(((u, u), (u, c), (c, u))):
        T[..., at] = np.einsum("ksp,ktp->kst", a[i], b[j])
    bound = rounding.error[i] + rounding.error[j]
    half = 0.5 * readings.lam[:, 0]
    reach = half**2 + readings.signal[:, 0]
    v = np.stack([np.ones(len(i)), -half[j], -half[i]], axis=1)
    C = v[:, :, None] * v[:, None, :]
    for at, other in ((1, j), (2, i)):
        C[:, at, at] += reach[other]
        alone = ~has[other, 0]
        C[alone, at], C[alone, :, at] = 0.0, 0.0
        C[alone, at, at] = 1.0
    C *= ((IS_ZERO * bound) ** 2)[:, None, None]
    exists = has[i][:, :, None] & has[j][:, None, :]
    products = np.where(exists, np.abs(T[..., 0]), np.nan).reshape(-1, READINGS**2)
    tilt = rounding.tilt.copy()
    with np.errstate(invalid="ignore"):
        meet = products > IS_ZERO * bound[:, None]
        all_meet = (meet | np.isnan(products)).all(axis=1)
        if len(np.unique(white.owner[readings.usable])) == white.dimension:
            tilt[np.setdiff1d(np.arange(len(tilt)), [i[all_meet], j[all_meet]])] = 0.0
        open_to = tilt[i] + tilt[j] + np.where(all_meet, bound, 0.0)
        untold = (meet & (products <= NOT_ZERO * open_to[:, None])).any(axis=1)
    covariance = np.broadcast_to(C[:, None], (len(i), READINGS**2, 3, 3))
    return T.reshape(-1, READINGS**2, 3), covariance, np.asarray(~untold)
