"""Total effects, the latents themselves, and their errors, from hard interventions (T8).

If the intervention on i is hard, `h_i = (u_i − c_i)/‖q_i‖` reads the latent i itself. The total
effect of j on i, in standard deviations of the control, is

    E_ij = t g_j / g_i ,     t = (u_i − c_i)·u_j ,     g = ‖u − c‖ = √(1 + ‖c‖²) ,

and what intervention j did to i as it was applied is `(u_i − c_i)·d_j / g_i`.

Errors, to first order. Let a_x and b_x be the derivatives of the quantity by u_x and c_x, x = i, j.
By the errors e of the means and `N − H` of the covariances, with `P = I − uuᵀ` (see `arrow_pairs`),

    δu = A⁻¹ P (w_d m e + w_D N c) ,       δc = P N u − λ δu − (c·δu) u ,

and the whitening's own error moves `δu = −½Hu + ½(uᵀHu)u`, `δc = −½(uᵀHu)c − ½Hc + (uᵀHc)u`. The
error of the quantity is then a sum of forms `tr(S N)` and `v·e`, whose matrices S and vectors v lie
in the span of u_i, c_i, u_j, c_j (and d_j), so that with the Gram matrix K of these in the metric
of the rows, `Var tr(S N) = 2 tr(S K S K)/n` and `Var v·e = vᵀKv/n`. The products of two errors add
`(p − 1)` times the variance of one entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.nullcone.arrows import ZERO, Arrows

__all__ = ["Arrow", "chosen_arrows", "effects_of"]

# The part of a vector that lies in the basis of a pair: u_i, c_i, u_j, c_j, d_j.
U_I, C_I, U_J, C_J, D_J = range(5)


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
    B = np.stack([arrow.u[i], arrow.c[i], arrow.u[j], arrow.c[j], arrow.d[j]], axis=1)
    K = B @ np.swapaxes(B, 1, 2)
    g_i, g_j = arrow.length[i], arrow.length[j]
    column = D_J if applied else U_J
    ratio = 1.0 / g_i if applied else g_j / g_i
    value = (K[:, U_I, column] - K[:, C_I, column]) * ratio
    if arrow.arrows is None:
        return value, np.zeros_like(value)
    k = len(i)
    a, b = np.zeros((2, k, 5)), np.zeros((2, k, 5))
    a[0, :, column] = ratio
    b[0, :, column] = -ratio
    b[0, :, C_I] = -value / g_i**2
    if not applied:
        a[1, :, U_I], a[1, :, C_I] = ratio, -ratio
        b[1, :, C_J] = value / g_j**2
    return value, np.sqrt(_variance(arrow, i, j, B, K, a, b, ratio, applied))


def _variance(
    arrow: Arrow,
    i: IntArray,
    j: IntArray,
    B: FloatArray,
    K: FloatArray,
    a: FloatArray,
    b: FloatArray,
    ratio: FloatArray,
    applied: bool,
) -> FloatArray:
    arrows = arrow.arrows
    assert arrows is not None
    rows = K if arrows.noise is None else K + B @ arrows.noise @ np.swapaxes(B, 1, 2)
    free = max(arrow.u.shape[1] - 1, 1)
    whole = np.zeros_like(K)
    errors, means = arrows.errors, []
    variance = np.zeros(len(i))
    for x, (regime, own) in enumerate(((i, U_I), (j, U_J))):
        form, mean, turn = _forms(arrow, regime, own, K, a[x], b[x])
        if x == 1 and applied:
            # The shift itself carries the errors of both means: ∂/∂d = (u_i − c_i)/g_i.
            mean[:, U_I] += ratio
            mean[:, C_I] -= ratio
        metric = _metric(rows, K, own, arrows.lam[regime, arrow.reading[regime]])
        n = arrows.n[regime]
        SK = form @ metric
        variance += 2.0 * np.einsum("kab,kba->k", SK, SK) / n
        variance += np.einsum("ka,kab,kb->k", mean, metric, mean) / errors.n[regime]
        loose = arrows.loose[regime, arrow.reading[regime]]
        alpha = arrows.precision[regime, arrow.reading[regime]]
        variance += loose / alpha**2 * np.einsum("ka,kab,kb->k", turn, K, turn)
        means.append(mean)
        whole += _whitening(own, K, a[x], b[x]) - form
    SK = whole @ rows
    variance += 2.0 * np.einsum("kab,kba->k", SK, SK) / arrows.n_eff
    shared = means[0] + means[1]
    base = np.einsum("ka,kab,kb->k", shared, rows, shared)
    # Offsets of batches add to what the control's mean leaves.
    ii, jj, ij = (
        np.einsum("ka,kab,kb->k", means[x], rows, means[y]) for x, y in ((0, 0), (1, 1), (0, 1))
    )
    base += (errors.base[i] - 1.0) * ii + (errors.base[j] - 1.0) * jj
    base += 2.0 * (errors.shared[i, j] - 1.0) * ij
    variance += base / errors.n_control
    # Products of the errors of h_i with those of the line (or the shift) of j.
    lam = 1.0 + np.maximum(arrows.lam[i, arrow.reading[i]], -0.9)
    spread = 1.0 / arrows.n[i] + 1.0 / arrows.n_eff
    of_i = lam**2 / arrows.precision[i, arrow.reading[i]] + lam * spread
    if applied:
        w = arrows.w_mean[j]
        of_j = np.divide(1.0, w, out=np.zeros_like(w), where=w > 0)
    else:
        of_j = 1.0 / arrows.precision[j, arrow.reading[j]]
    return np.asarray(variance + free * ratio**2 * of_i * of_j)


def _forms(
    arrow: Arrow, regime: IntArray, own: int, K: FloatArray, a: FloatArray, b: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Matrix of N, vector of e, and derivative by a turn of the line, in the basis of the pair."""
    arrows, reading = arrow.arrows, arrow.reading[regime]
    assert arrows is not None
    lam, alpha = arrows.lam[regime, reading], arrows.precision[regime, reading]
    w_cov, signal = arrows.w_cov[regime], arrows.signal[regime, reading]
    zero = reading == ZERO
    b = np.where(zero[:, None], 0.0, b)  # a c that is zero by this reading has no error
    along_b = np.einsum("ka,ka->k", K[:, own], b)
    turn = a - lam[:, None] * b
    turn[:, own + 1] -= along_b
    turn[:, own] -= np.einsum("ka,ka->k", K[:, own], turn)
    square = K[:, own + 1, own + 1]
    on_c = np.einsum("ka,ka->k", K[:, own + 1], turn)
    pull = w_cov * signal / (alpha + w_cov * signal)
    solved = turn.copy()
    solved[:, own + 1] -= np.divide(pull * on_c, square, out=np.zeros_like(on_c), where=square > 0)
    solved /= alpha[:, None]
    share = np.sqrt(np.divide(signal, square, out=np.zeros_like(square), where=square > 0))
    right = np.zeros_like(a)
    right[:, own + 1] = np.where(zero, 0.0, share)
    right[:, own] = np.where(zero, lam / (1.0 + np.maximum(lam, -0.9)), 0.0)
    off = b.copy()
    off[:, own] -= along_b
    form = w_cov[:, None, None] * solved[:, :, None] * right[:, None, :]
    form[:, :, own] += off
    mean = (arrows.w_mean[regime] * arrows.m[regime, reading] * _sign(arrow, regime))[
        :, None
    ] * solved
    return (form + np.swapaxes(form, 1, 2)) / 2, mean, turn


def _sign(arrow: Arrow, regime: IntArray) -> FloatArray:
    """Direction of the oriented line against that of the reading."""
    assert arrow.arrows is not None
    return np.where(arrow.arrows.m[regime, arrow.reading[regime]] < 0, -1.0, 1.0)


def _whitening(own: int, K: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Matrix of H by which the whitening moves u and c."""
    u_a, u_b = (np.einsum("ka,ka->k", K[:, own], x) for x in (a, b))
    c_b = np.einsum("ka,ka->k", K[:, own + 1], b)
    form = np.zeros_like(K)
    form[:, :, own] -= a / 2
    form[:, own, own] += (u_a - c_b) / 2
    form[:, :, own + 1] -= b / 2
    form[:, own, own + 1] += u_b
    return (form + np.swapaxes(form, 1, 2)) / 2


def _metric(rows: FloatArray, K: FloatArray, own: int, lam: FloatArray) -> FloatArray:
    """Gram matrix in the covariance of the regime, `I + noise + λuuᵀ + ucᵀ + cuᵀ`."""
    u, c = K[:, own], K[:, own + 1]
    cross = u[:, :, None] * c[:, None, :]
    own_part = lam[:, None, None] * u[:, :, None] * u[:, None, :]
    return np.asarray(rows + own_part + cross + np.swapaxes(cross, 1, 2))
