"""The arithmetic of `arrow_pairs`, one entry after the other, compiled."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["products"]

# Columns of the numbers of a reading that `products` takes.
LAM, ALPHA, ROWS, ZERO, PULL, BY_MEAN, BY_LINE, BY_C, LOOSE, MEAN_ROWS, BASE = range(11)


@compiled(kept=False)
def _image(M, x, out):  # type: ignore[no-untyped-def]
    for a in range(4):
        out[a] = M[a, 0] * x[0] + M[a, 1] * x[1] + M[a, 2] * x[2] + M[a, 3] * x[3]


@compiled(kept=False)
def _dot(x, y):  # type: ignore[no-untyped-def]
    return x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3]


@compiled(kept=False)
def _of_own(M, own, r, k, t, Mt, C):  # type: ignore[no-untyped-def]
    """Add the covariance by the regime's own rows, whose metric is M.

    T follows `t₀ᵀNy`, `t₁ᵀNy`, with y the vector of `BY_LINE` and `BY_C`, and `vᵀNu` with
    v = P of the other line; `k` is the inner product of the two lines. An error e of the mean
    enters by `t₀·e` and `t₁·e`.
    """
    other, back = 2 - own, 2 - own // 2
    line, c = r[BY_LINE], r[BY_C]
    _image(M, t[0], Mt[0])
    _image(M, t[1], Mt[1])
    uu, uy = M[own, own], line * M[own, own] + c * M[own, own + 1]
    yy = line * uy + c * (line * M[own, own + 1] + c * M[own + 1, own + 1])
    vu = M[other, own] - k * uu
    vy = line * vu + c * (M[other, own + 1] - k * M[own, own + 1])
    vv = M[other, other] - k * M[other, own] - k * vu
    y0, y1 = line * Mt[0, own] + c * Mt[0, own + 1], line * Mt[1, own] + c * Mt[1, own + 1]
    v0, v1 = Mt[0, other] - k * Mt[0, own], Mt[1, other] - k * Mt[1, own]
    t00, t01, t11 = _dot(t[0], Mt[0]), _dot(t[0], Mt[1]), _dot(t[1], Mt[1])
    e = r[BY_MEAN] ** 2 * r[ROWS] / r[MEAN_ROWS]
    c00 = (t00 * (yy + e) + y0 * y0) / r[ROWS]
    c01 = (t01 * (yy + e) + y0 * y1) / r[ROWS]
    c11 = (t11 * (yy + e) + y1 * y1) / r[ROWS]
    q0 = (v0 * uy + Mt[0, own] * vy) / r[ROWS]
    q1 = (v1 * uy + Mt[1, own] * vy) / r[ROWS]
    qq = (vv * uu + vu * vu) / r[ROWS]
    lam, forth = r[LAM], 3 - back
    C[0, 0] += c00
    C[0, forth] += c01
    C[0, back] += q0 - lam * c00
    C[forth, forth] += c11
    C[1, 2] += q1 - lam * c01
    C[back, back] += lam * (lam * c00 - 2.0 * q0) + qq


@compiled(kept=False)
def _of_both(R, S, n, W, C):  # type: ignore[no-untyped-def]
    """Add `2 tr(R S_a R S_b)/n` to C, for symmetric forms S of the three statistics."""
    for a in range(3):
        for x in range(4):
            for y in range(4):
                value = R[x, 0] * S[a, 0, y] + R[x, 1] * S[a, 1, y]
                W[a, x, y] = value + R[x, 2] * S[a, 2, y] + R[x, 3] * S[a, 3, y]
        for b in range(a + 1):
            total = 0.0
            for x in range(4):
                for y in range(4):
                    total += W[a, x, y] * W[b, y, x]
            C[b, a] += 2.0 * total / n


@compiled(kept=False)
def _of_vectors(M, X, n, Mx, C):  # type: ignore[no-untyped-def]
    """Add `x_aᵀ M x_b/n` to C."""
    for a in range(3):
        _image(M, X[a], Mx)
        for b in range(a + 1):
            C[b, a] += _dot(Mx, X[b]) / n


@compiled()
def products(  # type: ignore[no-untyped-def]
    G, N, A, shared, whole, first, second, pair, reading, T, C
):
    """Fill `T[pair, reading]` and `C[pair, reading]` of every entry: see `arrow_pairs`.

    Parameters
    ----------
    G, N : array, shape (2m, 2m)
        Inner products of all lines and then all c's, plain and in the metric of the rows.
    A : array, shape (m, 11)
        `LAM`, `ALPHA`, … of every reading.
    shared : array, shape (m, m)
        What the errors of two shifts share (see `MeanErrors`).
    whole : array, shape (3,)
        n_control, n_eff, and the number of directions that a line can turn to.
    first, second : array of int, shape (k,)
        The readings of the two targets of every entry.
    pair, reading : array of int, shape (k,)
        Where the entry belongs.
    """
    m = len(A)
    row = np.empty(4, np.int64)
    K, R, M = np.empty((4, 4)), np.empty((4, 4)), np.empty((4, 4))
    g, t, Mt, turns = np.empty((3, 4)), np.empty((2, 4)), np.empty((2, 4)), np.empty((3, 3, 4))
    S, W = np.empty((3, 4, 4)), np.empty((3, 4, 4))
    for k in range(len(first)):
        i, j = first[k], second[k]
        row[0], row[1], row[2], row[3] = i, i + m, j, j + m
        for x in range(4):
            for y in range(4):
                K[x, y], R[x, y] = G[row[x], row[y]], N[row[x], row[y]]
        value, c = T[pair[k], reading[k]], C[pair[k], reading[k]]
        value[0], value[1], value[2] = K[0, 2], K[0, 3], K[1, 2]
        for a in range(3):
            for x in range(4):
                turns[0, a, x] = turns[1, a, x] = 0.0
                for y in range(4):
                    S[a, x, y] = 0.0
        for own in (0, 2):
            r = A[i] if own == 0 else A[j]
            other, back = 2 - own, 2 - own // 2
            forth, lam = 3 - back, r[LAM]
            # t = A⁻¹ P of the other target's line, and of its c.
            for b in range(2):
                for x in range(4):
                    t[b, x] = 0.0
                t[b, other + b] = 1.0 / r[ALPHA]
                t[b, own] = -K[own, other + b] / r[ALPHA]
                t[b, own + 1] = -r[PULL] * K[own + 1, other + b] / r[ALPHA]
            for x in range(4):
                u, v = K[x, own], lam * K[x, own] + K[x, own + 1]
                for y in range(4):
                    M[x, y] = R[x, y] + v * K[own, y] + u * K[own + 1, y]
            _of_own(M, own, r, K[own, other], t, Mt, c)
            for x in range(4):
                turns[own // 2, 0, x] = r[BY_MEAN] * t[0, x]
                turns[own // 2, forth, x] = r[BY_MEAN] * t[1, x]
                turns[own // 2, back, x] = -r[BY_MEAN] * lam * t[0, x]
                for place in (own, own + 1):
                    half = 0.5 * (r[BY_LINE] if place == own else r[BY_C])
                    S[0, place, x] += half * t[0, x]
                    S[0, x, place] += half * t[0, x]
                    S[forth, place, x] += half * t[1, x]
                    S[forth, x, place] += half * t[1, x]
                    S[back, place, x] -= half * lam * t[0, x]
                    S[back, x, place] -= half * lam * t[0, x]
            S[back, other, own] += 0.5
            S[back, own, other] += 0.5
            S[back, own, own] -= K[own, other]
            if r[LOOSE] > 0.0:
                for x in range(4):
                    g[0, x] = g[forth, x] = 0.0
                g[0, other], g[0, own] = 1.0, -K[own, other]
                g[forth, other + 1], g[forth, own] = 1.0, -K[own, other + 1]
                for x in range(4):
                    g[back, x] = -lam * g[0, x]
                _of_vectors(K, g, 1.0 / r[LOOSE], Mt[0], c)
        if A[i, BY_MEAN] != 0.0 or A[j, BY_MEAN] != 0.0:
            for a in range(3):
                for x in range(4):
                    turns[2, a, x] = turns[0, a, x] + turns[1, a, x]
            both = shared[i, j]
            if both > 0.0:
                _of_vectors(R, turns[2], whole[0] / both, Mt[0], c)
            # What offsets of batches add to either shift alone.
            for which in range(2):
                alone = A[i if which == 0 else j, BASE] - both
                if alone != 0.0:
                    _of_vectors(R, turns[which], whole[0] / alone, Mt[0], c)
        for a in range(3):
            x, y = (1 if a == 2 else 0), (3 if a == 1 else 2)
            S[a, x, y] += 0.5
            S[a, y, x] += 0.5
        _of_both(R, S, whole[1], W, c)
        both = whole[2] / (A[i, ALPHA] * A[j, ALPHA])
        for a in range(3):
            by_a = 1.0 if a == 0 else (-A[j, LAM] if a == 1 else -A[i, LAM])
            for b in range(a + 1):
                by_b = 1.0 if b == 0 else (-A[j, LAM] if b == 1 else -A[i, LAM])
                c[b, a] += both * by_a * by_b
        for place in (1, 2):
            if A[j if place == 1 else i, ZERO] > 0.0:
                value[place] = 0.0
                for a in range(3):
                    c[a, place] = c[place, a] = 0.0
                c[place, place] = 1.0
        c[1, 0], c[2, 0], c[2, 1] = c[0, 1], c[0, 2], c[1, 2]
