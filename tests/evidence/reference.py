"""The evidence of pairs in plain NumPy: slow, and close to the formulas.

This is the specification of `mixture`, which is tested against it. For a pair with statistics g and
sampling covariance C, a component with scales v has the density `N(g; 0, C + diag(v²))`, divided by
that of the reference; a hypothesis is the weighted sum of its components. What a pair says about a
hypothesis is the log ratio of its density to that of the first hypothesis, each averaged over the
readings in which it is possible.
"""

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.evidence.mixture import CERTAIN, JITTER

__all__ = ["by_label", "densities"]


def densities(statistics, hypotheses, units, far):
    """What `mixture.densities` returns."""
    owner, scales, weights = hypotheses.components
    each = np.stack([_log_normal(statistics, v * units) for v in scales], axis=-1)
    each = each - _log_normal(statistics, far)[..., None] + np.log(weights)
    rows = np.stack([_log_sum(each[..., owner == h]) for h in range(len(hypotheses.rows))], axis=-1)
    return np.where(_possible(statistics, hypotheses), rows, -np.inf)


def _possible(statistics, hypotheses):
    """Readings in which each hypothesis is possible, shape (k, n_readings, n_hypotheses)."""
    free = (statistics.free[:, :, None, :] | ~hypotheses.free).all(axis=-1)
    return np.asarray(free & statistics.exists[..., None])


def _log_normal(statistics, scales):
    """`log N(g; 0, C + diag(v²))` up to a constant, shape (k, n_readings), over existing g."""
    out = np.zeros(statistics.exists.shape)
    for k, reading in np.argwhere(statistics.exists):
        c_i, c_j = statistics.free[k, reading]
        used = np.array([True, c_j, c_i])
        g = statistics.values[k, reading][used]
        C = statistics.covariance[k, reading][np.ix_(used, used)]
        A = C + np.diag(JITTER * np.diagonal(C) + scales[k][used] ** 2)
        out[k, reading] = -0.5 * (np.linalg.slogdet(A)[1] + g @ np.linalg.solve(A, g))
    return out


def _log_sum(x):
    return np.asarray(np.logaddexp.reduce(x, axis=-1, initial=-np.inf))


def by_label(statistics, rows, log_weight, hypotheses, owner, n_labels):
    """What `mixture.by_label` returns."""
    said: dict[tuple[int, int], list[FloatArray]] = {}
    possible = _possible(statistics, hypotheses)
    for k, (i, j) in enumerate(zip(owner[statistics.first], owner[statistics.second], strict=True)):
        weight = np.where(possible[k], log_weight[k][:, None], -np.inf).T
        share = _log_sum(weight)
        never = np.isneginf(share)
        logs = np.where(never, -np.inf, _log_sum(rows[k].T + weight) - np.where(never, 0, share))
        logs = np.maximum(logs - logs.max(), -CERTAIN)
        said.setdefault((i, j), []).append(logs - logs[0])
        said.setdefault((j, i), []).append(logs[hypotheses.mirror] - logs[0])
    out = np.full((len(hypotheses.rows), n_labels, n_labels), np.nan)
    for (i, j), all_of_pair in said.items():
        out[:, i, j] = np.mean(all_of_pair, axis=0)
    return out
