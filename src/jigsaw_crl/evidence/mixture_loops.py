"""The compiled loops of `mixture`; a pair stays in registers."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled
from jigsaw_crl.evidence.mixture import CERTAIN, JITTER

__all__ = ["add_by_label", "log_densities"]


@compiled()
def log_densities(  # type: ignore[no-untyped-def]
    values, covariance, exists, free, scales, weights, priors, start, needs, rows, total
):
    """Fill `rows` and `total`: see `Densities`.

    `scales`, shape (k, n_components, 3), and `weights` are those of each pair. Component 0 is the
    reference; those of hypothesis h are `start[h]` up to `start[h + 1]`. `needs` says which c must
    be free, shape (n_rows, 2).
    """
    n_components, n_rows = scales.shape[1], rows.shape[2]
    z, off, precision = np.empty(3), np.empty(3), np.empty(3)
    used = np.ones(3, np.bool_)
    each, log_weight, log_prior = np.empty(n_components), np.empty(n_components), np.empty(n_rows)
    for h in range(n_rows):
        log_prior[h] = np.log(priors[h]) if priors[h] > 0 else -np.inf
    for k in range(len(values)):
        for c in range(n_components):
            log_weight[c] = np.log(weights[k, c]) if weights[k, c] > 0 else -np.inf
        for reading in range(values.shape[1]):
            if not exists[k, reading]:
                rows[k, reading] = -np.inf
                total[k, reading] = -np.inf
                continue
            g, S = values[k, reading], covariance[k, reading]
            used[1], used[2] = free[k, reading, 1], free[k, reading, 0]
            # In standard errors; a statistic that does not exist counts as known and zero.
            for a in range(3):
                precision[a] = 1.0 / S[a, a] if used[a] and S[a, a] > 0 else 1.0
                z[a] = g[a] * np.sqrt(precision[a]) if used[a] else 0.0
            for slot in range(3):
                a, b = (0, slot + 1) if slot < 2 else (1, 2)
                off[slot] = 0.0
                if used[a] and used[b]:
                    off[slot] = S[a, b] * np.sqrt(precision[a] * precision[b])
            reference = _log_normal(z, precision, off, scales[k, 0], used)
            for c in range(1, n_components):
                each[c] = -np.inf
                if log_weight[c] > -np.inf:
                    density = _log_normal(z, precision, off, scales[k, c], used)
                    each[c] = density - reference + log_weight[c]
            for h in range(n_rows):
                possible = (used[2] or not needs[h, 0]) and (used[1] or not needs[h, 1])
                if not possible:
                    for c in range(start[h], start[h + 1]):
                        each[c] = -np.inf
                rows[k, reading, h] = _log_sum(each, start[h], start[h + 1])
                for c in range(start[h], start[h + 1]):
                    each[c] += log_prior[h]
            total[k, reading] = _log_sum(each, 1, n_components)


@compiled(kept=False)
def _log_normal(z, precision, off, scales, used):  # type: ignore[no-untyped-def]
    """Log density, up to a constant, of N(z; 0, A), A = 1 + precision · scale² on the diagonal."""
    a = 1.0 + (precision[0] * scales[0] ** 2 if used[0] else 0.0) + JITTER
    b = 1.0 + (precision[1] * scales[1] ** 2 if used[1] else 0.0) + JITTER
    c = 1.0 + (precision[2] * scales[2] ** 2 if used[2] else 0.0) + JITTER
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
    """`log Σ exp` of x[start:stop]; -inf for an empty range."""
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
def add_by_label(  # type: ignore[no-untyped-def]
    rows, log_weight, free, first, second, needs, mirror, factors, count
):
    """Add each pair's log Bayes factors to the labels (first[k], second[k]) and their mirror."""
    n_rows, n_readings = rows.shape[2], rows.shape[1]
    logs, each, weight = np.empty(n_rows), np.empty(n_readings), np.empty(n_readings)
    for k in range(len(rows)):
        i, j = first[k], second[k]
        most = -np.inf
        for h in range(n_rows):
            for reading in range(n_readings):
                possible = free[k, reading, 0] or not needs[h, 0]
                possible = possible and (free[k, reading, 1] or not needs[h, 1])
                weight[reading] = log_weight[k, reading] if possible else -np.inf
                each[reading] = rows[k, reading, h] + weight[reading]
            share = _log_sum(weight, 0, n_readings)
            logs[h] = -np.inf if share == -np.inf else _log_sum(each, 0, n_readings) - share
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
