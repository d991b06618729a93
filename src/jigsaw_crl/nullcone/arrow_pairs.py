"""Inner products of the arrows of two targets, with their covariance.

For readings of regimes i and j let

    T = (u_i·u_j, u_i·c_j, c_i·u_j) .

To first order in the sampling errors e of the means, N of the covariances and H of the whitening,
with `P = I − uuᵀ` and N − H in place of N,

    δ  = A⁻¹ [w_d m P e + w_D P N c] ,      A = α P + w_D c cᵀ ,      α = w_d m² + w_D ‖c‖²
    δc = P N u − λ δ
    δT₁ = u_j·δ_i + u_i·δ_j − u_iᵀHu_j
    δT₂ = c_j·δ_i + u_iᵀP_jN_ju_j − λ_j u_i·δ_j − u_iᵀHc_j ,     δT₃ with i and j exchanged.

(With c = 0: `δ = [w_d m P e + w_D λ/(1+λ) P N u]/α`, `α = w_d m² + w_D λ²/(1+λ)`.) These are
bilinear forms in independent errors: e_i, e_j, what both shifts share (the control mean's error e₀
and the offsets of common batches), N_i, N_j and H. With
`Cov(xᵀNy, x'ᵀNy') = [(xᵀMx')(yᵀMy') + (xᵀMy')(yᵀMx')]/n` and `M = I + λuuᵀ + ucᵀ + cuᵀ`, every term
needs the inner products of u_i, c_i, u_j, c_j only. At second order the product of two free
rotations adds `(p−1)/(α_i α_j) vvᵀ`, `v = (1, −λ_j, −λ_i)`.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.arrows import READINGS, ZERO, Arrows

__all__ = ["arrow_statistics"]


def arrow_statistics(arrows: Arrows, first: IntArray, second: IntArray) -> Statistics:
    """Statistics of the pairs (first[k], second[k]) in all readings (s, t), t running fastest."""
    # Compiled on first use: numba takes longer to import than a small study to recover.
    from jigsaw_crl.nullcone.arrow_loops import products

    r, _, p = arrows.u.shape
    flat = np.stack([arrows.u, arrows.c], axis=2).reshape(2 * READINGS * r, p)
    G = flat @ flat.T
    # The rows carry the sensors' noise that was taken off the moments.
    rows = G if arrows.noise is None else G + flat @ arrows.noise @ flat.T
    has = arrows.has
    numbers = (arrows.lam, arrows.m, arrows.signal, arrows.precision * has, arrows.loose)
    A = np.ascontiguousarray(np.stack(numbers, axis=2))
    errors = arrows.errors
    regimes = (arrows.n, arrows.w_mean, arrows.w_cov, errors.n, errors.base)
    B = np.ascontiguousarray(np.stack(regimes, axis=1))
    whole = np.array([errors.n_control, arrows.n_eff, max(p - 1, 1)], dtype=np.float64)
    n_readings = READINGS**2
    T = np.zeros((len(first), n_readings, 3))
    C = np.zeros((len(first), n_readings, 3, 3))
    products(G, rows, A, B, errors.shared, whole, first, second, T, C)
    exists = (has[first][:, :, None] & has[second][:, None, :]).reshape(-1, n_readings)
    s, t = np.divmod(np.arange(n_readings), READINGS)
    free = np.broadcast_to(np.stack([s != ZERO, t != ZERO], axis=1), (*exists.shape, 2))
    return Statistics(first, second, T, C, exists, np.ascontiguousarray(free))
