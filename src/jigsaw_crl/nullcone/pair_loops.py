"""The arithmetic of `pairs` and `evidence`, one pair after the other, compiled.

A pair of regimes costs a few thousand operations on 4 × 4 and 8 × 8 matrices. As arrays over pairs
each of them would pass through memory many times; here a pair stays in registers.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["densities", "products", "sums"]


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
def densities(T, C, first, second, rank, tilt, cos, prior, confounding, table):  # type: ignore[no-untyped-def]
    """Fill the log densities of every pair under every choice of lines: see `PairEvidence`."""
    B, S = np.zeros((4, 4)), np.empty((4, 4))
    g, z, off, precision = np.empty(4), np.empty(3), np.empty(3), np.empty(3)
    place = np.empty(4, np.int64)
    scales, logs = np.zeros((11, 3)), np.empty(11)
    each = np.empty(11)
    for k in range(len(first)):
        i, j = first[k], second[k]
        i_one, j_one = rank[i] == 1, rank[j] == 1
        hypotheses(i_one, j_one, tilt[i], tilt[j], prior, scales, logs)
        _own_parts(cos[i], cos[j], B)
        for choice in range(4):
            s, t = choice // 2, choice % 2
            # A regime with one line has no second choice: the same again.
            same = 2 * (0 if i_one else s) + (0 if j_one else t)
            if same < choice:
                for h in range(table.shape[2]):
                    table[k, choice, h] = table[k, same, h]
                continue
            place[0], place[1] = choice, 2 * s + 1 - t
            place[2], place[3] = 2 * (1 - s) + t, 2 * (1 - s) + 1 - t
            _turned(T[k], C[k], place, B, g, S)
            rest = 0.0
            if not (i_one or j_one):
                # No hypothesis restricts ⟨c_i, c_j⟩.
                total = S[3, 3] + prior.scales[0] ** 2
                rest = -0.5 * (np.log(total) + g[3] ** 2 / total)
            # In standard errors; statistics that say nothing count as known and zero.
            scale = 1.0
            for a in range(3):
                used = not ((a == 1 and j_one) or (a == 2 and i_one))
                precision[a] = 1.0 / S[a, a] if used and S[a, a] > 0 else 1.0
                scale *= precision[a]
                z[a] = g[a] * np.sqrt(precision[a]) if used else 0.0
            log_sd = -0.5 * np.log(scale)
            off[0] = 0.0 if j_one else S[0, 1] * np.sqrt(precision[0] * precision[1])
            off[1] = 0.0 if i_one else S[0, 2] * np.sqrt(precision[0] * precision[2])
            off[2] = 0.0 if i_one or j_one else S[1, 2] * np.sqrt(precision[1] * precision[2])
            for c in range(11):
                each[c] = -np.inf
                if logs[c] > -np.inf and (c < 6 or confounding):
                    each[c] = (
                        _log_normal(z, precision, off, scales, c, prior.jitter) - log_sd + logs[c]
                    )
            if not (i_one or j_one):
                each[1] = each[0]
            for h in range(6):
                table[k, choice, h] = each[h]
            table[k, choice, 6] = _log_sum(each, 6, 11)
            table[k, choice, 7] = rest
            # The four hypotheses at ¼, scales averaged, with what a missed eigenvalue costs.
            each[0] += np.log(1.0 - prior.missed)
            each[1] += np.log(prior.missed)
            for c in range(2, 6):
                each[c] -= np.log(2.0)
                if (j_one and c < 4) or (i_one and c >= 4):
                    each[c] += np.log(prior.missed)
            table[k, choice, 8] = _log_sum(each, 0, 11) - np.log(4.0) + rest


@compiled(kept=False)
def hypotheses(i_one, j_one, tilt_i, tilt_j, prior, scales, logs):  # type: ignore[no-untyped-def]
    """Scales of the three statistics, (11, 3), and log weights, (11,), of each component.

    Component 0 is "unrelated", 1 "unrelated, but a line leans", 2–3 "i ancestor of j", 4–5 "j
    ancestor of i", 6–10 "same district". If i is of rank 1, its line may lean by up to its tilt
    φ_i towards its ancestors and spouses. Then ⟨q_i,q_j⟩ can reach φ_i when j is one of those, and
    ⟨q_i,c_j⟩ when i and j share an ancestor.
    """
    scales[:] = 0.0
    missed_i, missed_j = min(tilt_i, prior.missed), min(tilt_j, prior.missed)
    tilt = max(tilt_i, tilt_j)
    logs[0] = 0.0
    logs[1] = 0.0 if i_one or j_one else -np.inf
    scales[1, 0] = prior.leans[0] * tilt if i_one and j_one else 0.0
    scales[1, 1] = prior.leans[0] * tilt_i if i_one else 0.0
    scales[1, 2] = prior.leans[0] * tilt_j if j_one else 0.0
    for c in range(2):
        lean_i, lean_j = prior.leans[c] * tilt_i, prior.leans[c] * tilt_j
        logs[2 + c] = 0.0
        logs[4 + c] = 0.0
        if j_one:
            scales[2 + c, 0] = lean_j
            scales[2 + c, 2] = 0.0 if i_one else lean_j
        else:
            scales[2 + c, 1] = prior.scales[c]
        if i_one:
            scales[4 + c, 0] = lean_i
            scales[4 + c, 1] = 0.0 if j_one else lean_i
        else:
            scales[4 + c, 2] = prior.scales[c]
    single = i_one or j_one
    for c in range(5):
        if single:
            scales[6 + c, 0] = prior.leans[prior.single_lean[c]] * tilt
            scales[6 + c, 1] = scales[6 + c, 2] = prior.single[c]
            logs[6 + c] = _log(max(missed_i, missed_j) * prior.single_weight[c])
        else:
            for a in range(3):
                scales[6 + c, a] = prior.district[c, a]
            logs[6 + c] = _log(prior.district_weight[c])
    # A target of rank 1 has no c, so the statistic with it says nothing.
    for c in range(11):
        if j_one:
            scales[c, 1] = 0.0
        if i_one:
            scales[c, 2] = 0.0


@compiled(kept=False)
def _log(x):  # type: ignore[no-untyped-def]
    return np.log(x) if x > 0 else -np.inf


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


@compiled(kept=False)
def _log_normal(z, precision, off, scales, row, jitter):  # type: ignore[no-untyped-def]
    """Log density, up to a constant, of N(z; 0, A), A = 1 + precision · scale² on the diagonal."""
    a = 1.0 + precision[0] * scales[row, 0] ** 2 + jitter
    b = 1.0 + precision[1] * scales[row, 1] ** 2 + jitter
    c = 1.0 + precision[2] * scales[row, 2] ** 2 + jitter
    d, e, f = off[0], off[1], off[2]
    x, y, w = z[0], z[1], z[2]
    m_a, m_b, m_c = b * c - f * f, a * c - e * e, a * b - d * d
    m_d, m_e, m_f = e * f - d * c, d * f - b * e, d * e - a * f
    det = a * m_a + d * m_d + e * m_e
    quad = x * x * m_a + y * y * m_b + w * w * m_c
    quad += 2 * (x * y * m_d + x * w * m_e + y * w * m_f)
    return -0.5 * (np.log(det) + quad / det)


@compiled(kept=False)
def _log_sum(x, start, stop):  # type: ignore[no-untyped-def]
    most = -np.inf
    for a in range(start, stop):
        most = max(most, x[a])
    if most == -np.inf:
        return most
    total = 0.0
    for a in range(start, stop):
        total += np.exp(x[a] - most)
    return most + np.log(total)


@compiled()
def sums(table, weight, certain, first, second, owner, total, count):  # type: ignore[no-untyped-def]
    """Add up each pair's log densities, averaged over the choice of lines with log `weight`.

    `total`, shape (4, p, p), gets "row is an ancestor of column" at both scales, "a line leans" and
    "same district", all against "unrelated"; `count`, shape (p, p), how many pairs of regimes
    spoke.
    """
    logs, each = np.empty(7), np.empty(4)
    for k in range(len(first)):
        i = owner[first[k]]
        j = owner[second[k]]
        most = -np.inf
        for h in range(7):
            for c in range(4):
                each[c] = table[k, c, h] + weight[k, c]
            logs[h] = _log_sum(each, 0, 4)
            most = max(most, logs[h])
        for h in range(7):
            # Exact moments rule hypotheses out by squares of 1e12. Against the best one, and
            # floored, the small differences between those that fit survive the division by
            # "unrelated".
            logs[h] = max(logs[h] - most, -certain)
        for h in range(2):
            total[h, i, j] += logs[2 + h] - logs[0]
            total[h, j, i] += logs[4 + h] - logs[0]
            both = logs[6 if h else 1] - logs[0]
            total[2 + h, i, j] += both
            total[2 + h, j, i] += both
        count[i, j] += 1
        count[j, i] += 1
