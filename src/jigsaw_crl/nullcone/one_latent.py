"""How well does a regime fit "one latent moved"?

With d the shift of the mean, D the change of the covariance, u a unit vector and `P = I − uuᵀ`,

    χ²(u) = w_d |P d|² + ½ w_D ‖P D P‖² ,

least over u, has m(m − 1)/2 degrees of freedom in m dimensions; (m − 1)(m − 2)/2 without the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.nullcone.changes import Changes

__all__ = ["CLOSE", "ROUGH", "Fits", "ascend", "fits", "starts", "tail_of", "unit"]

# Ascents of the fit: the fixed point converges by a factor of a half or better where the shift or
# the covariance shows the target at all. Copies need to be exact to a part of their errors only.
ASCENTS, CLOSE, ROUGH = 60, 1e-8, 1e-4
# A misfit of this tail probability is not chance. In 50 clients of which means alone showed a bend,
# at most 38 % of the regimes had one; of 112 with offsets of .1 or .3 sd, 6 had fewer than 50 %.
UNLIKELY = 1e-3


def starts(d: FloatArray, D: FloatArray) -> FloatArray:
    """The shift and the two lines of the null cone of D, shape (..., 3, m)."""
    values, vectors = np.linalg.eigh(D)
    a = np.sqrt(np.maximum(values[..., -1:], 0.0)) * vectors[..., -1]
    b = np.sqrt(np.maximum(-values[..., :1], 0.0)) * vectors[..., 0]
    return unit(np.stack([d, a + b, a - b], axis=-2))


def unit(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300))


def ascend(
    x: FloatArray, d: FloatArray, D: FloatArray, w: tuple[FloatArray, FloatArray], close: float
) -> tuple[FloatArray, FloatArray]:
    """The direction u with the least misfit of those that starts lead to, (..., m), and its χ².

    The fixed point `u ← w_d (u·d) d + w_D (DDu − λDu + λ²u)`, `λ = uᵀDu`, climbs to the nearest
    maximum of the likelihood. Starts have the shape (..., s, m), d (..., m), w are w_d and w_D.
    """
    wd, wD = (y[..., None, None] for y in w)
    for _ in range(ASCENTS):
        y = x @ D
        lam = (x * y).sum(axis=-1, keepdims=True)
        new = wd * (x @ d[..., None]) * d[..., None, :]
        new += wD * (y @ D - lam * y + (lam**2 + 1e-12) * x)
        new = unit(new)
        moved = float(np.abs(new - x).max())
        x = new
        if moved < close:
            break
    y = x @ D
    lam, along = (x * y).sum(axis=-1), (x @ d[..., None])[..., 0]
    off_mean = (d * d).sum(axis=-1)[..., None] - along**2
    off = 0.5 * ((D * D).sum(axis=(-2, -1))[..., None] - 2.0 * (y * y).sum(axis=-1) + lam**2)
    chi = w[0][..., None] * np.maximum(off_mean, 0.0) + w[1][..., None] * np.maximum(off, 0.0)
    best = chi.argmin(axis=-1)[..., None]
    sign = np.where(np.take_along_axis(along, best, -1) < 0, -1.0, 1.0)
    u = sign * np.take_along_axis(x, best[..., None], -2)[..., 0, :]
    return u, np.take_along_axis(chi, best, -1)[..., 0]


def tail_of(chi: FloatArray, free: float) -> FloatArray:
    """Probability of a misfit as large as this with so many degrees of freedom."""
    return np.asarray(np.maximum(chdtrc(free, chi), 1e-300)) if free else np.ones_like(chi)


@dataclass(frozen=True, eq=False)
class Fits:
    """How well each regime fits "one latent moved", as in a linear system.

    Parameters
    ----------
    tail : array, shape (r,)
        Tail probability of its misfit.
    ratio : array, shape (r,)
        Misfit over its expectation.
    chance : float
        Tail probability of the largest misfit and of the sum of all, together.
    offsets : bool
        Covariances fit, and the means of most regimes do not: offsets of batches move them all,
        while a bent response leaves those alone that have no descendants.
    """

    tail: FloatArray
    ratio: FloatArray
    chance: float
    offsets: bool


def fits(changes: Changes) -> Fits:
    """How well the mean and the covariance of each regime fit "one latent moved"."""
    r, p = changes.d.shape
    tail, ratio, chance = _misfits(changes, changes.d, p * (p - 1) / 2.0)
    _, _, alone = _misfits(changes, np.zeros_like(changes.d), (p - 1) * (p - 2) / 2.0)
    offsets = alone > UNLIKELY and 2 * int((tail < UNLIKELY).sum()) >= r
    return Fits(tail, ratio, chance, offsets)


def _misfits(changes: Changes, d: FloatArray, free: float) -> tuple[FloatArray, FloatArray, float]:
    """Tails of the misfits of all regimes, ratios, and their chance together."""
    D = changes.D
    _, chi = ascend(starts(changes.d, D), d, D, (changes.w_mean, changes.w_cov), CLOSE)
    r, tail = len(chi), tail_of(chi, free)
    # Regimes share the control's error: their misfits have squared correlations ρ², so that the sum
    # is that of fewer degrees of freedom.
    shared = np.sqrt(changes.w_cov) / np.sqrt(changes.n_control)
    rho = np.outer(shared, shared) ** 2
    np.fill_diagonal(rho, 1.0)
    spread = float(rho.sum()) / r
    every = tail_of(chi.sum() / spread, r * free / spread)
    least = min(r * float(tail.min()), float(every))
    return tail, chi / max(free, 1.0), min(2.0 * least, 1.0)
