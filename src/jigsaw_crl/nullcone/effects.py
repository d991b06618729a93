"""Total effects, the latents themselves, and their errors, from hard interventions (T8).

If the intervention on i is hard, `h_i = (u_i − c_i)/‖q_i‖` reads the latent i itself. The total
effect of j on i, in standard deviations of the control, is

    E_ij = t g_j / g_i ,     t = (u_i − c_i)·u_j ,     g = ‖u − c‖ = √(1 + ‖c‖²) ,

and what intervention j did to i as it was applied is `(u_i − c_i)·d_j / g_i`.

Errors are those of `delta`; the products of two errors add `(p − 1)` times the variance of one
entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.nullcone.arrows import Arrows
from jigsaw_crl.nullcone.delta import C_I, C_J, U_I, U_J, Readings, covariance

__all__ = ["Arrow", "chosen_arrows", "effects_of"]

# The fifth vector of the basis of a pair, beside those of `delta`: the shift of j's mean.
D_J = 4


@dataclass(frozen=True, eq=False)
class Arrow:
    """One reading of every regime, in natural lengths.

    Parameters
    ----------
    u, c, d : array, shape (r, p)
        Unit line, c orthogonal to it, and the shift of the mean.
    size : array, shape (r,)
        ‖c‖² without what noise adds to it.
    arrows : Arrows or None
        Where the errors come from; None for exact moments.
    reading : array of int, shape (r,)
    """

    u: FloatArray
    c: FloatArray
    d: FloatArray
    size: FloatArray
    arrows: Arrows | None
    reading: IntArray

    @property
    def length(self) -> FloatArray:
        """`g = ‖u − c‖`, shape (r,)."""
        return np.asarray(np.sqrt(1.0 + self.size))


def chosen_arrows(arrows: Arrows, d: FloatArray, reading: IntArray) -> Arrow:
    """The chosen reading of every regime, with each line in the direction of its shift."""
    rows = np.arange(len(reading))
    u, c = arrows.u[rows, reading], arrows.c[rows, reading]
    sign = np.where(arrows.m[rows, reading] < 0, -1.0, 1.0)[:, None]
    free = max(u.shape[1] - 1, 1)
    own = 1.0 + np.maximum(arrows.lam[rows, reading], -0.9)
    added = free * own * (1.0 / arrows.n + 1.0 / arrows.n_eff)
    size = np.maximum(np.einsum("rp,rp->r", c, c) - added, 0.0)
    return Arrow(sign * u, sign * c, d, size, arrows, reading)


def effects_of(
    arrow: Arrow, effect: IntArray, cause: IntArray, *, applied: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Effects of regimes `cause` on the targets of regimes `effect`, with their standard errors.

    Parameters
    ----------
    arrow : Arrow
    effect, cause : array of int, shape (k,)
    applied : bool
        What the cause's intervention did as applied, in place of the total effect.
    """
    i, j = effect, cause
    B = np.stack([arrow.u[i], arrow.c[i], arrow.u[j], arrow.c[j], arrow.d[j]])
    K = np.einsum("akp,bkp->abk", B, B)
    g_i, g_j = arrow.length[i], arrow.length[j]
    column = D_J if applied else U_J
    ratio = 1.0 / g_i if applied else g_j / g_i
    value = (K[U_I, column] - K[C_I, column]) * ratio
    arrows = arrow.arrows
    if arrows is None:
        return value, np.zeros_like(value)
    a, b = np.zeros((2, 1, 5, len(i))), np.zeros((2, 1, 5, len(i)))
    a[0, 0, column] = ratio
    b[0, 0, column] = -ratio
    b[0, 0, C_I] = -value / g_i**2
    shift = None
    if applied:
        # ∂/∂d = (u_i − c_i)/g_i
        shift = np.zeros((1, 5, len(i)))
        shift[0, U_I], shift[0, C_I] = ratio, -ratio
    else:
        a[1, 0, U_I], a[1, 0, C_I] = ratio, -ratio
        b[1, 0, C_J] = value / g_j**2
    R = K if arrows.noise is None else K + np.einsum("akp,pq,bkq->abk", B, arrows.noise, B)
    r = Readings.of(arrows, np.arange(len(arrow.u)), arrow.reading)
    # Lines were turned in the direction of their shifts.
    r = replace(r, by_mean=np.abs(r.by_mean))
    variance = covariance(r, i, j, K, R, (a[0], a[1]), (b[0], b[1]), shift)[0]
    # Products of the errors of h_i with those of the line (or the shift) of j.
    own = 1.0 + np.maximum(r.lam[i], -0.9)
    of_i = own**2 / r.alpha[i] + own * (1.0 / r.n[i] + 1.0 / r.n_eff)
    of_j = 1.0 / r.alpha[j]
    if applied:
        w = arrows.w_mean[j]
        of_j = np.divide(1.0, w, out=np.zeros_like(w), where=w > 0)
    free = max(arrow.u.shape[1] - 1, 1)
    return value, np.sqrt(variance + free * ratio**2 * of_i * of_j)
