"""The arithmetic of `arrow_pairs`, one entry after the other, compiled."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["products"]

# Columns of the numbers of a reading that `products` takes.
LAM, ALPHA, ROWS, ZERO, PULL, BY_MEAN, BY_LINE, BY_C, LOOSE = range(9)


@compiled(kept=False)
def _of_forms(M, S, n, W, C):  # type: ignore[no-untyped-def]
    """Add `2 tr(M S_a M S_b)/n` to C."""
    for a in range(3):
        for x in range(4):
            for y in range(4):
                W[a, x, y] = M[x, 0] * S[a, 0, y]
            for z in range(1, 4):
                for y in range(4):
                    W[a, x, y] += M[x, z] * S[a, z, y]
        for b in range(a + 1):
            total = 0.0
            for x in range(4):
                for y in range(4):
                    total += W[a, x, y] * W[b, y, x]
            C[b, a] += 2.0 * total / n


@compiled(kept=False)
def _of_vectors(M, X, n, C):  # type: ignore[no-untyped-def]
    """Add `x_aᵀ M x_b/n` to C."""
    for a in range(3):
        for x in range(4):
            along = 0.0
            for y in range(4):
                along += M[x, y] * X[a, y]
            for b in range(a + 1):
                C[b, a] += along * X[b, x] / n


@compiled()
def products(G, N, A, whole, first, second, pair, reading, T, C):  # type: ignore[no-untyped-def]
    """Fill `T[pair, reading]` and `C[pair, reading]` of every entry: see `arrow_pairs`.

    Parameters
    ----------
    G, N : array, shape (2m, 2m)
        Inner products of all lines and then all c's, plain and in the metric of the rows.
    A : array, shape (m, 9)
        `LAM`, `ALPHA`, … of every reading.
    whole : array, shape (3,)
        n_control, n_eff, and the number of directions that a line can turn to.
    first, second : array of int, shape (k,)
        The readings of the two targets of every entry.
    pair, reading : array of int, shape (k,)
        Where the entry belongs.
    """
    m, n_control, n_eff, directions = len(A), whole[0], whole[1], whole[2]
    row = np.empty(4, np.int64)
    K, R, M, W = np.empty((4, 4)), np.empty((4, 4)), np.empty((4, 4)), np.empty((3, 4, 4))
    # Of one target, and of both.
    g, turn, S = np.empty((3, 4)), np.empty((3, 4)), np.empty((3, 4, 4))
    turns, forms = np.empty((3, 4)), np.empty((3, 4, 4))
    for k in range(len(first)):
        i, j = first[k], second[k]
        row[0], row[1], row[2], row[3] = i, i + m, j, j + m
        for x in range(4):
            for y in range(4):
                K[x, y], R[x, y] = G[row[x], row[y]], N[row[x], row[y]]
        t, c = T[pair[k], reading[k]], C[pair[k], reading[k]]
        t[0], t[1], t[2] = K[0, 2], K[0, 3], K[1, 2]
        turns[:], forms[:], c[:] = 0.0, 0.0, 0.0
        for own in (0, 2):
            r = A[i] if own == 0 else A[j]
            other, back = 2 - own, 2 - own // 2
            lam, by_mean = r[LAM], r[BY_MEAN]
            # How T follows a rotation of the line, and what its errors turn.
            g[:] = 0.0
            for a in (0, 3 - back):
                target = other if a == 0 else other + 1
                g[a, target] = 1.0
                g[a, own] = -K[own, target]
            for x in range(4):
                g[back, x] = -lam * g[0, x]
            for a in range(3):
                along = 0.0
                for x in range(4):
                    along += K[own + 1, x] * g[a, x]
                for x in range(4):
                    turn[a, x] = g[a, x] / r[ALPHA]
                turn[a, own + 1] -= r[PULL] * along / r[ALPHA]
            S[:] = 0.0
            for a in range(3):
                for x in range(4):
                    S[a, own, x] += 0.5 * r[BY_LINE] * turn[a, x]
                    S[a, x, own] += 0.5 * r[BY_LINE] * turn[a, x]
                    S[a, own + 1, x] += 0.5 * r[BY_C] * turn[a, x]
                    S[a, x, own + 1] += 0.5 * r[BY_C] * turn[a, x]
            S[back, other, own] += 0.5
            S[back, own, other] += 0.5
            S[back, own, own] -= K[own, other]
            for x in range(4):
                u, v = K[x, own], lam * K[x, own] + K[x, own + 1]
                for y in range(4):
                    M[x, y] = R[x, y] + v * K[own, y] + u * K[own + 1, y]
            _of_forms(M, S, r[ROWS], W, c)
            if r[LOOSE] > 0.0:
                _of_vectors(K, g, 1.0 / r[LOOSE], c)
            if by_mean != 0.0:
                for a in range(3):
                    for x in range(4):
                        turn[a, x] *= by_mean
                        turns[a, x] += turn[a, x]
                _of_vectors(M, turn, r[ROWS], c)
            for a in range(3):
                for x in range(4):
                    for y in range(4):
                        forms[a, x, y] += S[a, x, y]
        _of_vectors(R, turns, n_control, c)
        for a in range(3):
            x, y = (1 if a == 2 else 0), (3 if a == 1 else 2)
            forms[a, x, y] += 0.5
            forms[a, y, x] += 0.5
        _of_forms(R, forms, n_eff, W, c)
        both = directions / (A[i, ALPHA] * A[j, ALPHA])
        for a in range(3):
            by_a = 1.0 if a == 0 else (-A[j, LAM] if a == 1 else -A[i, LAM])
            for b in range(a + 1):
                by_b = 1.0 if b == 0 else (-A[j, LAM] if b == 1 else -A[i, LAM])
                c[b, a] += both * by_a * by_b
        for place in (1, 2):
            if A[j if place == 1 else i, ZERO] > 0.0:
                t[place] = 0.0
                for a in range(3):
                    c[a, place] = c[place, a] = 0.0
                c[place, place] = 1.0
        c[1, 0], c[2, 0], c[2, 1] = c[0, 1], c[0, 2], c[1, 2]
