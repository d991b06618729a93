"""The arithmetic of `mixture`, one entry after the other, compiled."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled
from jigsaw_crl.evidence.mixture import CERTAIN, JITTER

__all__ = ["add_by_label", "log_densities"]

# A summand below e^-42 of the largest is lost in rounding; its exponential is not taken.
LOST = -42.0


@compiled(kept=False)
def _log_sum(x, n):  # type: ignore[no-untyped-def]
    """`log Σ exp` of the first n numbers; -inf if there are none."""
    most = -np.inf
    for a in range(n):
        most = max(most, x[a])
    if most == -np.inf:
        return most
    total = 0.0
    for a in range(n):
        if x[a] == most:
            total += 1.0
        elif x[a] - most > LOST:
            total += np.exp(x[a] - most)
    return most if total == 1.0 else most + np.log(total)


@compiled()
def log_densities(  # type: ignore[no-untyped-def]
    pair,
    reading,
    values,
    covariance,
    free,
    squares,
    log_weight,
    log_prior,
    start,
    needs,
    rows,
    total,
):
    """Fill `rows` and `total` at every entry (pair[n], reading[n]): see `Densities`.

    `squares`, shape (k, 3, n_components), are the squared scales of each pair, and `log_weight`,
    shape (k, n_components), the weights. Component 0 is the reference; those of hypothesis h are
    `start[h]` up to `start[h + 1]`. `needs` says which c must be free, shape (n_rows, 2).
    """
    n_components, n_rows = squares.shape[2], rows.shape[2]
    det, quad = np.empty(n_components), np.empty(n_components)
    each = np.empty(max(n_components, n_rows))
    for n in range(len(pair)):
        k, s = pair[n], reading[n]
        free_i, free_j = free[k, s, 0], free[k, s, 1]
        g, S, v = values[k, s], covariance[k, s], squares[k]
        # In standard errors; a statistic that does not exist counts as known and zero.
        p_x = 1.0 / S[0, 0] if S[0, 0] > 0 else 1.0
        p_y = (1.0 / S[1, 1] if S[1, 1] > 0 else 1.0) if free_j else 0.0
        p_w = (1.0 / S[2, 2] if S[2, 2] > 0 else 1.0) if free_i else 0.0
        r_x, r_y, r_w = np.sqrt(p_x), np.sqrt(p_y), np.sqrt(p_w)
        x, y, w = g[0] * r_x, g[1] * r_y, g[2] * r_w
        d, e, f = S[0, 1] * r_x * r_y, S[0, 2] * r_x * r_w, S[1, 2] * r_y * r_w
        xx, yy, ww, xy, xw, yw = x * x, y * y, w * w, 2 * x * y, 2 * x * w, 2 * y * w
        for h in range(n_components):
            a = 1.0 + JITTER + p_x * v[0, h]
            b = 1.0 + JITTER + p_y * v[1, h]
            c = 1.0 + JITTER + p_w * v[2, h]
            m_a, m_b, m_c = b * c - f * f, a * c - e * e, a * b - d * d
            m_d, m_e, m_f = e * f - d * c, d * f - b * e, d * e - a * f
            whole = a * m_a + d * m_d + e * m_e
            det[h] = whole
            quad[h] = (xx * m_a + yy * m_b + ww * m_c + xy * m_d + xw * m_e + yw * m_f) / whole
        for h in range(n_rows):
            possible = (free_i or not needs[h, 0]) and (free_j or not needs[h, 1])
            m = 0
            if possible:
                for c in range(start[h], start[h + 1]):
                    each[m] = log_weight[k, c] - 0.5 * (quad[c] - quad[0] + np.log(det[c] / det[0]))
                    m += 1
            rows[k, s, h] = _log_sum(each, m)
        for h in range(n_rows):
            each[h] = rows[k, s, h] + log_prior[h]
        total[k, s] = _log_sum(each, n_rows)


@compiled()
def add_by_label(  # type: ignore[no-untyped-def]
    rows, log_weight, free, first, second, needs, mirror, factors, count
):
    """Add each pair's log Bayes factors to the labels (first[k], second[k]) and their mirror."""
    n_rows, n_readings = rows.shape[2], rows.shape[1]
    logs, each = np.empty(n_rows), np.empty(n_readings)
    # The weight of the readings in which no c, c_j, c_i or both must be free.
    shares = np.empty(4)
    for k in range(len(rows)):
        i, j = first[k], second[k]
        for kind in range(4):
            m = 0
            for s in range(n_readings):
                if (free[k, s, 0] or kind < 2) and (free[k, s, 1] or kind % 2 == 0):
                    each[m] = log_weight[k, s]
                    m += 1
            shares[kind] = _log_sum(each, m)
        most = -np.inf
        for h in range(n_rows):
            share, m = shares[2 * needs[h, 0] + needs[h, 1]], 0
            for s in range(n_readings):
                if (free[k, s, 0] or not needs[h, 0]) and (free[k, s, 1] or not needs[h, 1]):
                    each[m] = rows[k, s, h] + log_weight[k, s]
                    m += 1
            logs[h] = -np.inf if share == -np.inf else _log_sum(each, m) - share
            most = max(most, logs[h])
        for h in range(n_rows):
            # Taken against the best hypothesis and floored, the small differences between those
            # that fit survive the division by the first.
            logs[h] = max(logs[h] - most, -CERTAIN)
        for h in range(n_rows):
            factors[h, i, j] += logs[h] - logs[0]
            factors[h, j, i] += logs[mirror[h]] - logs[0]
        count[i, j] += 1
        count[j, i] += 1
