"""The one first-order error engine: covariances of functions of two readings.

A function f of the lines and c's of readings i and j has the derivatives a_x by u_x and b_x by c_x,
x = i, j. By the errors e of the means and N − H of the covariances, with `P = I − uuᵀ`,

    δu = A⁻¹ P (w_d m e + w_D N c) ,      A = α P + w_D c cᵀ ,      α = w_d m² + w_D ‖c‖²
    δc = P N u − λ δu − (c·δu) u

(with c = 0: `δu = [w_d m P e + w_D λ/(1+λ) P N u]/α`, `α = w_d m² + w_D λ²/(1+λ)`), and the
whitening's own error moves `δu = −½Hu + ½(uᵀHu)u`, `δc = −½(uᵀHu)c − ½Hc + (uᵀHc)u`. So δf is a sum
of forms `tr(S N)` and `v·e` in independent errors: e_i, e_j, the control mean's error e₀ that both
shifts share, N_i, N_j and H. Their matrices and vectors lie in the span of u_i, c_i, u_j, c_j (and
of further vectors that f names), so that with the Gram matrix M of these in the metric of the rows,
`I + λuuᵀ + ucᵀ + cuᵀ` for a regime, `Cov(tr SN, tr S'N) = 2 tr(S M S' M)/n` and
`Cov(v·e, v'·e) = vᵀMv'/n`. For H one of the two M is nY, with Y of `White.whitening`.

The statistics of a pair are the inner products `T = (u_i·u_j, u_i·c_j, c_i·u_j)`, with the
derivatives `∂T/∂u_i = (u_j, c_j, 0)`, `∂T/∂c_i = (0, 0, u_j)` and the same with i and j exchanged.
At second order the product of two free rotations adds `(p−1)/(α_i α_j) vvᵀ`, `v = (1, −λ_j, −λ_i)`.
Exact moments have the errors of `exact`.

In the arrays below, vectors and matrices are in the basis of the span, statistics come first, and
the entries (pairs of readings) lie along the last axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from jigsaw_crl.base.arrays import TOGETHER, BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.exact import Rounding, exact_products
from jigsaw_crl.nullcone.readings import READINGS, ZERO, Readings

# Places of the first four vectors of a basis.
U_I, C_I, U_J, C_J = range(4)
# Where each entry of a symmetric 3 × 3 matrix is in its upper triangle.
FULL = np.array([0, 1, 2, 1, 3, 4, 2, 4, 5])


@dataclass(frozen=True, eq=False)
class Errors:
    """How errors of the moments move m readings; shape (m,) if not said otherwise."""

    lam: FloatArray
    alpha: FloatArray
    n: FloatArray
    # Is c = 0?
    zero: BoolArray
    # `A⁻¹ = (P − pull c cᵀ)/α`.
    pull: FloatArray
    # An error e of the mean turns the line by `by_mean · A⁻¹ P e`, and an error N of the covariance
    # by `A⁻¹ P N (by_line · u + by_c · c)`.
    by_mean: FloatArray
    by_line: FloatArray
    by_c: FloatArray
    # Variance of a rotation that nothing determines.
    loose: FloatArray
    # Errors of the shifts: see `MeanErrors`; `shared` has shape (m, m).
    mean_rows: FloatArray
    base: FloatArray
    shared: FloatArray
    n_control: float
    n_eff: FloatArray

    @classmethod
    def of(cls, readings: Readings, regime: IntArray, slot: IntArray) -> Errors:
        """Of the readings in these slots of these regimes."""
        at, errors = (regime, slot), readings.white.errors
        lam, alpha, signal = readings.lam[at], readings.precision[at], readings.signal[at]
        w_cov, zero = readings.w_cov[regime], slot == ZERO
        square = np.einsum("mp,mp->m", readings.c[at], readings.c[at])
        known = w_cov * signal
        inverse = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0)
        return cls(
            lam=lam,
            alpha=alpha,
            n=readings.white.n[regime],
            zero=zero,
            pull=known / (alpha + known) * inverse,
            by_mean=readings.w_mean[regime] * readings.m[at],
            by_line=np.where(zero, w_cov * lam / (1.0 + np.maximum(lam, -0.9)), 0.0),
            by_c=np.where(zero, 0.0, w_cov * np.sqrt(signal * inverse)),
            loose=readings.loose[at] / alpha**2,
            mean_rows=errors.n[regime],
            base=errors.base[regime],
            shared=errors.shared[np.ix_(regime, regime)],
            n_control=errors.n_control,
            n_eff=readings.white.n_eff[regime],
        )


def delta(
    r: Errors,
    i: IntArray,
    j: IntArray,
    K: FloatArray,
    R: FloatArray,
    Y: FloatArray,
    a: FloatArray,
    b: FloatArray,
    shift: FloatArray | None = None,
) -> FloatArray:
    """Covariance of s statistics of readings i and j, upper triangle first, shape (s(s+1)/2, k).

    Parameters
    ----------
    r : Errors
    i, j : array of int, shape (k,)
    K, R, Y : array, shape (d, d, k)
        Gram matrices of the basis: plain, in the metric of the rows, in that of the whitening.
    a, b : array, shape (2, s, d, k)
        Derivatives by u and by c, of i and of j.
    shift : array, shape (s, d, k), optional
        Derivatives by the shift of j's mean, if the statistics contain it.
    """
    pairs = list(combinations_with_replacement(range(len(a[0])), 2))
    C, turns = np.zeros((len(pairs), len(i))), []
    whole: FloatArray | float = 0.0
    for side, (own, x) in enumerate(((U_I, i), (U_J, j))):
        u, c = K[:, own], K[:, own + 1]
        by_u, by_c = a[side], np.where(r.zero[x], 0.0, b[side])
        along = (u * by_c).sum(axis=1)
        # f follows a rotation δ of the line by g·δ, and errors turn it through A⁻¹ g.
        g = by_u - r.lam[x] * by_c
        g[:, own + 1] -= along
        g[:, own] -= (u * g).sum(axis=1)
        turn = g.copy()
        turn[:, own + 1] -= r.pull[x] * (c * g).sum(axis=1)
        turn /= r.alpha[x]
        form = np.zeros((*turn.shape[:2], *turn.shape[1:]))
        form[:, :, own] += r.by_line[x] * turn + by_c
        form[:, :, own + 1] += r.by_c[x] * turn
        form[:, own, own] -= along
        form = (form + np.swapaxes(form, 1, 2)) / 2
        # The metric of the regime's own rows.
        M = R + u[:, None] * (r.lam[x] * u + c) + c[:, None] * u
        C += _of_forms(M, M, form, pairs) / r.n[x]
        mean = r.by_mean[x] * turn
        if side == 1 and shift is not None:
            mean = mean + shift
        turns.append(mean)
        if mean.any():
            C += _of_vectors(M, mean, pairs) / r.mean_rows[x]
        if r.loose[x].any():
            C += r.loose[x] * _of_vectors(K, g, pairs)
        # By which the whitening's error H moves u and c.
        moved = np.zeros_like(form)
        moved[:, :, own] -= by_u / 2
        moved[:, own, own] += ((u * by_u).sum(axis=1) - (c * by_c).sum(axis=1)) / 2
        moved[:, :, own + 1] -= by_c / 2
        moved[:, own, own + 1] += along
        whole = whole + (moved + np.swapaxes(moved, 1, 2)) / 2 - form
    # The control's mean is in both shifts, and offsets of batches in either.
    if turns[0].any() or turns[1].any():
        both = r.shared[i, j]
        C += both * _of_vectors(R, turns[0] + turns[1], pairs) / r.n_control
        for x, mean in ((i, turns[0]), (j, turns[1])):
            alone = r.base[x] - both
            if alone.any():
                C += alone * _of_vectors(R, mean, pairs) / r.n_control
    C += _of_forms(R, Y, np.asarray(whole), pairs)
    return C


def _of_vectors(M: FloatArray, x: FloatArray, pairs: list[tuple[int, int]]) -> FloatArray:
    """`xᵀ M x'` for the vectors of each two statistics."""
    Mx = (M * x[:, None]).sum(axis=2)
    return np.stack([(Mx[a] * x[b]).sum(axis=0) for a, b in pairs])


def _of_forms(
    M: FloatArray, Y: FloatArray, S: FloatArray, pairs: list[tuple[int, int]]
) -> FloatArray:
    """`2 tr(M S Y S')` for the forms of each two statistics."""
    W, V = (np.einsum("abk,sbck->sack", X, S) for X in (M, Y))
    V = np.swapaxes(V, 1, 2)
    return 2.0 * np.stack([(W[a] * V[b]).sum(axis=(0, 1)) for a, b in pairs])


def statistics_of(
    readings: Readings, first: IntArray, second: IntArray, rounding: Rounding | None = None
) -> Statistics:
    """Statistics of the pairs (first[k], second[k]) in all readings (s, t), t running fastest.

    With the `rounding` of exact moments, those in which rounding decides are left out.
    """
    has, n_readings = readings.has, READINGS**2
    exists = (has[first][:, :, None] & has[second][:, None, :]).reshape(-1, n_readings)
    s, t = np.divmod(np.arange(n_readings), READINGS)
    free = np.ascontiguousarray(
        np.broadcast_to(np.stack([s != ZERO, t != ZERO], axis=1), (*exists.shape, 2))
    )
    if rounding is not None:
        T, C, told = exact_products(readings, rounding, first, second)
        return Statistics(first, second, T, C, exists, free).of(told)
    T, C = np.zeros((*exists.shape, 3)), np.zeros((*exists.shape, 3, 3))
    pair, reading = np.nonzero(exists)
    place = np.cumsum(has.ravel()).reshape(has.shape) - 1
    i, j = place[first[pair], s[reading]], place[second[pair], t[reading]]
    at = np.nonzero(has)
    r = Errors.of(readings, *at)
    flat = np.concatenate([readings.u[at], readings.c[at]])
    G = flat @ flat.T
    # The rows carry the sensors' noise that was taken off the moments.
    N, Y = (flat @ metric @ flat.T for metric in readings.white.metrics)
    # A line can turn to so many directions.
    m, turns = len(r.lam), max(len(flat[0]) - 1, 1)
    pairs = list(combinations_with_replacement(range(3), 2))
    for k in range(0, len(pair), TOGETHER):
        some = slice(k, k + TOGETHER)
        a, b = i[some], j[some]
        rows = np.stack([a, a + m, b, b + m])
        K, of_rows, of_whole = (gram[rows[:, None], rows] for gram in (G, N, Y))
        value = np.stack([K[U_I, U_J], K[U_I, C_J], K[C_I, U_J]])
        by_u, by_c = np.zeros((2, 2, 3, 4, len(a)))
        by_u[0, 0, U_J] = by_u[0, 1, C_J] = by_c[0, 2, U_J] = 1.0
        by_u[1, 0, U_I] = by_u[1, 2, C_I] = by_c[1, 1, U_I] = 1.0
        error = delta(r, a, b, K, of_rows, of_whole, by_u, by_c)
        # The product of two free rotations.
        both = turns / (r.alpha[a] * r.alpha[b])
        v = (1.0, -r.lam[b], -r.lam[a])
        error += [both * v[x] * v[y] for x, y in pairs]
        for at_c, zero in ((1, r.zero[b]), (2, r.zero[a])):
            value[at_c, zero] = 0.0
            for entry, two in enumerate(pairs):
                if at_c in two:
                    error[entry, zero] = float(two == (at_c, at_c))
        here = pair[some], reading[some]
        T[here], C[here] = value.T, error[FULL].T.reshape(-1, 3, 3)
    return Statistics(first, second, T, C, exists, free)
