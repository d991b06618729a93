"""The arithmetic of `arrow_pairs`, one pair after the other, compiled."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["products"]

# Columns of the arrays that `products` takes.
LAM, M, SIGNAL, PRECISION, LOOSE = range(5)
ROWS, W_MEAN, W_COV, MEAN_ROWS, BASE = range(5)
CONTROL, EFFECTIVE, DIRECTIONS = range(3)


# Coordinates of a vector in the basis (u_i, c_i, u_j, c_j) of a pair.


@compiled(kept=False)
def _times(K, x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for a in range(4):
        inner = 0.0
        for b in range(4):
            inner += K[a, b] * y[b]
        total += x[a] * inner
    return total


@compiled(kept=False)
def _metric(R, K, own, lam, out):  # type: ignore[no-untyped-def]
    """Inner products in the metric `I + noise + λ uuᵀ + ucᵀ + cuᵀ`, u and c at `own`, `own + 1`."""
    for a in range(4):
        left = lam * K[a, own] + K[a, own + 1]
        for b in range(4):
            out[a, b] = R[a, b] + left * K[own, b] + K[a, own] * K[own + 1, b]


@compiled(kept=False)
def _turn(K, own, target, alpha, pull, out):  # type: ignore[no-untyped-def]
    """`A⁻¹ x` of the basis vector `target`, for the line at `own`: (P − pull ĉĉᵀ) x / α."""
    for a in range(4):
        out[a] = 0.0
    out[target] = 1.0
    out[own] -= K[own, target]
    square = K[own + 1, own + 1]
    if square > 0.0:
        out[own + 1] -= pull * K[own + 1, target] / square
    for a in range(4):
        out[a] /= alpha


@compiled(kept=False)
def _forms(metric, X, Y, n, first, stop, work, C):  # type: ignore[no-untyped-def]
    """Add the covariance of `T_a = Σ_k X[a,k]ᵀ N Y[a,k]` for N with `metric`, over n rows.

    T₁ has no forms 1 and 3, T₂ no form 1, T₃ no form 3: see `_pair`.
    """
    mx, my = work[5, 0], work[5, 1]
    for a in range(3):
        for k in range(first, stop):
            if (k == 1 and a != 2) or (k == 3 and a != 1):
                continue
            for i in range(4):
                mx[i] = my[i] = 0.0
                for j in range(4):
                    mx[i] += metric[i, j] * X[a, k, j]
                    my[i] += metric[i, j] * Y[a, k, j]
            for b in range(a, 3):
                total = 0.0
                for h in range(first, stop):
                    if (h == 1 and b != 2) or (h == 3 and b != 1):
                        continue
                    xx = xy = yx = yy = 0.0
                    for i in range(4):
                        xx += mx[i] * X[b, h, i]
                        xy += mx[i] * Y[b, h, i]
                        yx += my[i] * X[b, h, i]
                        yy += my[i] * Y[b, h, i]
                    total += xx * yy + xy * yx
                C[a, b] += total / n
                if b > a:
                    C[b, a] += total / n


@compiled(kept=False)
def _pair(G, N, A, B, S, whole, i, s, j, t, work, X, Y, E, T, C):  # type: ignore[no-untyped-def]
    """T = (u_i·u_j, u_i·c_j, c_i·u_j) of readings s, t and its covariance: see `arrow_pairs`."""
    K, R, Mi, Mj = work[0], work[1], work[2], work[3]
    # Rows of u_i, c_i, u_j, c_j among all lines and c's.
    of_i, of_j = 2 * (3 * i + s), 2 * (3 * j + t) - 2
    for a in range(4):
        row = a + (of_i if a < 2 else of_j)
        for b in range(4):
            column = b + (of_i if b < 2 else of_j)
            K[a, b] = G[row, column]
            R[a, b] = N[row, column]
    lam_i, lam_j = A[i, s, LAM], A[j, t, LAM]
    al_i, al_j = A[i, s, PRECISION], A[j, t, PRECISION]
    pull_i = B[i, W_COV] * A[i, s, SIGNAL] / (al_i + B[i, W_COV] * A[i, s, SIGNAL])
    pull_j = B[j, W_COV] * A[j, t, SIGNAL] / (al_j + B[j, W_COV] * A[j, t, SIGNAL])
    zero_i, zero_j = s == 2, t == 2
    T[0], T[1], T[2] = K[0, 2], K[0, 3], K[1, 2]
    _metric(R, K, 0, lam_i, Mi)
    _metric(R, K, 2, lam_j, Mj)
    ai, bi, aj, bj = work[4, 0], work[4, 1], work[4, 2], work[4, 3]
    _turn(K, 0, 2, al_i, pull_i, ai)
    _turn(K, 0, 3, al_i, pull_i, bi)
    _turn(K, 2, 0, al_j, pull_j, aj)
    _turn(K, 2, 1, al_j, pull_j, bj)
    C[:] = 0.0
    # Errors of the means: of regime i, of regime j, and of control and batches, which both share.
    for which in range(2):
        moved = A[i, s, M] * B[i, W_MEAN] if which == 0 else A[j, t, M] * B[j, W_MEAN]
        for a in range(4):
            if which == 0:
                E[0, 0, a], E[0, 1, a] = moved * ai[a], moved * bi[a]
                E[0, 2, a] = -moved * lam_i * ai[a]
            else:
                E[1, 0, a], E[1, 2, a] = moved * aj[a], moved * bj[a]
                E[1, 1, a] = -moved * lam_j * aj[a]
    for a in range(3):
        for b in range(3):
            C[a, b] += _times(Mi, E[0, a], E[0, b]) / B[i, MEAN_ROWS]
            C[a, b] += _times(Mj, E[1, a], E[1, b]) / B[j, MEAN_ROWS]
            shared = B[i, BASE] * _times(R, E[0, a], E[0, b])
            shared += B[j, BASE] * _times(R, E[1, a], E[1, b])
            shared += S[i, j] * (_times(R, E[0, a], E[1, b]) + _times(R, E[1, a], E[0, b]))
            C[a, b] += shared / whole[CONTROL]
    # Errors of the covariances as forms xᵀNy: what turns the line, and what c itself carries.
    X[:], Y[:] = 0.0, 0.0
    share_i = np.sqrt(A[i, s, SIGNAL] / K[1, 1]) if K[1, 1] > 0 else 0.0
    share_j = np.sqrt(A[j, t, SIGNAL] / K[3, 3]) if K[3, 3] > 0 else 0.0
    wi, wj = B[i, W_COV], B[j, W_COV]
    for a in range(4):
        X[0, 0, a], X[1, 0, a], X[2, 0, a] = wi * ai[a], wi * bi[a], -lam_i * wi * ai[a]
        X[0, 2, a], X[1, 2, a], X[2, 2, a] = wj * aj[a], -lam_j * wj * aj[a], wj * bj[a]
    for a in range(3):
        if zero_i:
            Y[a, 0, 0] = lam_i / (1.0 + max(lam_i, -0.9))
        else:
            Y[a, 0, 1] = share_i
        if zero_j:
            Y[a, 2, 2] = lam_j / (1.0 + max(lam_j, -0.9))
        else:
            Y[a, 2, 3] = share_j
    X[2, 1, 2], X[2, 1, 0], Y[2, 1, 0] = 1.0, -K[0, 2], 1.0
    X[1, 3, 0], X[1, 3, 2], Y[1, 3, 2] = 1.0, -K[0, 2], 1.0
    _forms(Mi, X, Y, B[i, ROWS], 0, 2, work, C)
    _forms(Mj, X, Y, B[j, ROWS], 2, 4, work, C)
    # The whitening's error enters both, and the products themselves.
    X[0, 4, 0], Y[0, 4, 2] = 1.0, 1.0
    X[1, 4, 0], Y[1, 4, 3] = 1.0, 1.0
    X[2, 4, 2], Y[2, 4, 1] = 1.0, 1.0
    _forms(R, X, Y, whole[EFFECTIVE], 0, 5, work, C)
    # The product of two free rotations, and rotations that nothing determines.
    both = whole[DIRECTIONS] / (al_i * al_j)
    for a in range(3):
        by_a = 1.0 if a == 0 else (-lam_j if a == 1 else -lam_i)
        for b in range(3):
            C[a, b] += both * by_a * (1.0 if b == 0 else (-lam_j if b == 1 else -lam_i))
    if A[i, s, LOOSE] > 0.0:
        _loosen(K, 0, 2, lam_i, 2, A[i, s, LOOSE] / al_i**2, C)
    if A[j, t, LOOSE] > 0.0:
        _loosen(K, 2, 0, lam_j, 1, A[j, t, LOOSE] / al_j**2, C)
    if zero_j:
        T[1] = 0.0
        for a in range(3):
            C[a, 1] = C[1, a] = 0.0
        C[1, 1] = 1.0
    if zero_i:
        T[2] = 0.0
        for a in range(3):
            C[a, 2] = C[2, a] = 0.0
        C[2, 2] = 1.0


@compiled(kept=False)
def _loosen(K, own, other, lam, back, variance, C):  # type: ignore[no-untyped-def]
    """Add `variance · G Gᵀ`, with G the change of T by a rotation of the line at `own`.

    `back` is the position in T of this line's own c with the other line.
    """
    g = np.zeros((3, 4))
    g[0, other] = 1.0
    g[3 - back, other + 1] = 1.0
    g[back, other] = -lam
    for a in range(3):
        inner = 0.0
        for b in range(4):
            inner += K[own, b] * g[a, b]
        g[a, own] -= inner
    for a in range(3):
        for b in range(3):
            C[a, b] += variance * _times(K, g[a], g[b])


@compiled()
def products(G, N, A, B, S, whole, first, second, T, C):  # type: ignore[no-untyped-def]
    """Fill T, shape (k, 9, 3), and C, shape (k, 9, 3, 3), of the pairs: see `arrow_pairs`.

    Parameters
    ----------
    G, N : array, shape (6r, 6r)
        Inner products of all lines and c's, plain and in the metric of the rows.
    A : array, shape (r, 3, 5)
        Of every reading: `LAM`, `M`, `SIGNAL`, `PRECISION` and `LOOSE`. Readings whose precision is
        zero do not exist and are skipped.
    B : array, shape (r, 5)
        Of every regime: `ROWS` behind its covariance, `W_MEAN`, `W_COV`, `MEAN_ROWS` behind its
        mean, and the `BASE` of its shift's error (see `MeanErrors`).
    S : array, shape (r, r)
        What the errors of two shifts share.
    whole : array, shape (3,)
        Of the client: `CONTROL` rows, `EFFECTIVE` rows behind the whitening, `DIRECTIONS` that a
        line can turn to.
    """
    work = np.empty((6, 4, 4))
    X, Y, E = np.empty((3, 5, 4)), np.empty((3, 5, 4)), np.empty((2, 3, 4))
    for k in range(len(first)):
        i, j = first[k], second[k]
        for s in range(3):
            for t in range(3):
                if A[i, s, PRECISION] > 0.0 and A[j, t, PRECISION] > 0.0:
                    at = 3 * s + t
                    _pair(G, N, A, B, S, whole, i, s, j, t, work, X, Y, E, T[k, at], C[k, at])
