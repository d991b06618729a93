"""The arithmetic of `pairs`, one pair after the other, compiled.

A pair of regimes costs a few thousand operations on 4 × 4 and 8 × 8 matrices. As arrays over pairs
each of them would pass through memory many times; here a pair stays in registers.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["products", "readings"]


@compiled()
def products(G, N, form, rank, sign, n, n_eff, first, second, T, C):  # type: ignore[no-untyped-def]
    """Fill `T`, shape (k, 4), and `C`, shape (k, 4, 4): see `pairs`.

    `G` and `N` are inner products of all lines and duals (n⁰, n¹, m⁰, m¹ of each regime), shape
    (4r, 4r), plain and in the metric of the rows.
    """
    K, M = np.empty((8, 8)), np.empty((8, 8))
    # The twelve vectors x_i, x_j, n_i (for each s, t) and their partners m_i, m_j, n_j: one of the
    # eight, less `pull` times another.
    base, dual = np.empty(12, np.int64), np.empty(12, np.int64)
    pull = np.zeros(12)
    uu, uv, vv = np.empty((12, 12)), np.empty((12, 12)), np.empty((12, 12))
    inverse = np.empty(4)
    for st in range(4):
        s, t = st // 2, st % 2
        base[st], dual[st] = 4 + t, 2 + s
        base[4 + st], dual[4 + st] = s, 6 + t
        base[8 + st], dual[8 + st] = s, 4 + t
    for k in range(len(first)):
        i, j = first[k], second[k]
        for a in range(8):
            row = 4 * (i if a < 4 else j) + a % 4
            for b in range(8):
                column = 4 * (i if b < 4 else j) + b % 4
                K[a, b], M[a, b] = G[row, column], N[row, column]
        for st in range(4):
            s, t = st // 2, st % 2
            own = K[s, 4 + t]
            pull[st] = 0.5 * K[1 - s, 4 + t] if rank[i] == 2 else 2.0 * sign[i] * own
            pull[4 + st] = 0.5 * K[s, 5 - t] if rank[j] == 2 else 2.0 * sign[j] * own
            length = np.sqrt(K[s, s] * K[4 + t, 4 + t])
            inverse[st] = 1.0 / length if length > 0 else 0.0
            T[k, st] = own * inverse[st]

        # The whitening's share: all twelve vectors and their partners, metric `M`.
        _forms(M, base, dual, pull, 0, 12, uu, uv, vv)
        for a in range(4):
            for b in range(a, 4):
                total = 0.0
                for g in range(a, 12, 4):
                    for h in range(b, 12, 4):
                        total += uu[g, h] * vv[g, h] + uv[g, h] * uv[h, g]
                C[k, a, b] = total / n_eff

        # The share of each regime's own rows, whose covariance is M + n W nᵀ.
        for side in range(2):
            r = j if side else i
            _add_own(M, K, form[r], 4 * side)
            _forms(M, base, dual, pull, 4 * side, 4 * side + 4, uu, uv, vv)
            for a in range(4):
                for b in range(a, 4):
                    g, h = 4 * side + a, 4 * side + b
                    C[k, a, b] += (uu[g, h] * vv[g, h] + uv[g, h] * uv[h, g]) / n[r]
            if side == 0:
                for a in range(8):
                    for b in range(8):
                        row = 4 * (i if a < 4 else j) + a % 4
                        column = 4 * (i if b < 4 else j) + b % 4
                        M[a, b] = N[row, column]
        for a in range(4):
            for b in range(a, 4):
                C[k, a, b] *= inverse[a] * inverse[b]
                C[k, b, a] = C[k, a, b]


@compiled(kept=False)
def _forms(M, base, dual, pull, start, stop, uu, uv, vv):  # type: ignore[no-untyped-def]
    """`uᵀMu'`, `uᵀMv'`, `vᵀMv'` of the vectors u = base − pull · dual and their partners v."""
    for g in range(start, stop):
        for h in range(start, stop):
            cross = M[base[g], dual[h]] - pull[g] * M[dual[g], dual[h]]
            uv[g, h] = cross
            vv[g, h] = M[dual[g], dual[h]]
            back = M[base[g], base[h]] - pull[g] * M[dual[g], base[h]]
            uu[g, h] = back - pull[h] * cross


@compiled(kept=False)
def _add_own(M, K, W, own):  # type: ignore[no-untyped-def]
    """`M + K[:, n] W K[n, :]`, with n the two lines at position `own`."""
    for a in range(8):
        left = K[a, own] * W[0, 0] + K[a, own + 1] * W[1, 0]
        right = K[a, own] * W[0, 1] + K[a, own + 1] * W[1, 1]
        for b in range(8):
            M[a, b] += left * K[own, b] + right * K[own + 1, b]


@compiled()
def readings(T, C, first, second, cos, values, covariance):  # type: ignore[no-untyped-def]
    """Fill the statistics of every reading of a pair: see `pairs.by_reading`."""
    B, S = np.zeros((4, 4)), np.empty((4, 4))
    g = np.empty(4)
    place = np.empty(4, np.int64)
    for k in range(len(first)):
        i, j = first[k], second[k]
        _own_parts(cos[i], cos[j], B)
        for reading in range(4):
            s, t = reading // 2, reading % 2
            place[0], place[1] = reading, 2 * s + 1 - t
            place[2], place[3] = 2 * (1 - s) + t, 2 * (1 - s) + 1 - t
            _turned(T[k], C[k], place, B, g, S)
            for a in range(3):
                values[k, reading, a] = g[a]
                for b in range(3):
                    covariance[k, reading, a, b] = S[a, b]


@compiled(kept=False)
def _own_parts(cos_i, cos_j, B):  # type: ignore[no-untyped-def]
    """Matrix that replaces c by c⊥ in (⟨q,q⟩, ⟨q_i,c_j⟩, ⟨c_i,q_j⟩, ⟨c_i,c_j⟩).

    `c⊥ = (c − cosθ q)/sinθ` is the unit vector of the plane that is orthogonal to q. The angle θ
    between the two lines is the same whichever of them is q, so the volume factor of this change
    of variables is the same for all choices of lines.
    """
    sin_i = np.sqrt(max(1.0 - cos_i**2, 2.220446049250313e-16))
    sin_j = np.sqrt(max(1.0 - cos_j**2, 2.220446049250313e-16))
    a, b, c, d = -cos_i / sin_i, 1.0 / sin_i, -cos_j / sin_j, 1.0 / sin_j
    B[0, 0] = 1.0
    B[1, 0], B[1, 1] = c, d
    B[2, 0], B[2, 2] = a, b
    B[3, 0], B[3, 1], B[3, 2], B[3, 3] = a * c, a * d, b * c, b * d


@compiled(kept=False)
def _turned(T, C, place, B, g, S):  # type: ignore[no-untyped-def]
    """`g = B T` and `S = B C Bᵀ` of the statistics at `place`; B is lower triangular."""
    for a in range(4):
        total = 0.0
        for b in range(a + 1):
            total += B[a, b] * T[place[b]]
        g[a] = total
        for d in range(a + 1):
            total = 0.0
            for b in range(a + 1):
                inner = 0.0
                for e in range(d + 1):
                    inner += C[place[b], place[e]] * B[d, e]
                total += B[a, b] * inner
            S[a, d] = S[d, a] = total
