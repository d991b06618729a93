"""Log densities of a table of hypotheses, for many pairs and readings of each.

A target may be read in several ways: which of two lines is its own, and whether it has a second
direction at all. For every pair of targets and every reading of the two, the functions here
evaluate each hypothesis of a table, then average over readings and add up by label. `reference`
says the same one pair at a time. A pair of targets in one reading is an *entry*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import TOGETHER, BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.hypotheses import Hypotheses

# Statistics that are copies of each other would make C singular; relative to their variances.
JITTER = 1e-9
# Exact moments exclude hypotheses by log odds of 1e12; beyond this, odds count as certain, so that
# files and sums stay finite.
CERTAIN = 1e4


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of pairs of regimes, in every reading."""

    # Regimes i and j of each pair, shape (k,).
    first: IntArray
    second: IntArray
    # (⟨q_i, q_j⟩, ⟨q_i, c_j⟩, ⟨c_i, q_j⟩), shape (k, n_readings, 3), and their covariance.
    values: FloatArray
    covariance: FloatArray
    # Readings that both targets have, shape (k, n_readings).
    exists: BoolArray
    # Is c_i, c_j free in this reading, shape (k, n_readings, 2)? Where it is not, the statistic
    # with it does not exist.
    free: BoolArray

    def of(self, chosen: BoolArray) -> Statistics:
        """Those of some pairs."""
        return Statistics(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def as_effects(self, hard_i: BoolArray, hard_j: BoolArray) -> Statistics:
        """With effects in place of ⟨c_i, q_j⟩ and ⟨q_i, c_j⟩ where an intervention is hard.

        If the intervention on j is hard, the effect of i on j is proportional to
        `⟨q_i, q_j⟩ − ⟨q_i, c_j⟩` in natural lengths (T8).
        """
        to = np.broadcast_to(np.eye(3), (len(self.first), 3, 3)).copy()
        for row, hard in ((1, hard_j), (2, hard_i)):
            to[hard, row, 0], to[hard, row, row] = 1.0, -1.0
        values = np.einsum("kab,ksb->ksa", to, self.values)
        covariance = np.einsum("kab,ksbc,kdc->ksad", to, self.covariance, to)
        return replace(self, values=values, covariance=np.ascontiguousarray(covariance))

    def without_c(self, regimes: BoolArray) -> Statistics:
        """Without what they say about the c of some regimes (a mask)."""
        values, covariance, free = self.values.copy(), self.covariance.copy(), self.free.copy()
        for side, (regime, at) in enumerate(((self.first, 2), (self.second, 1))):
            k = regimes[regime]
            values[k, :, at] = 0.0
            covariance[k, :, at, :] = covariance[k, :, :, at] = 0.0
            covariance[k, :, at, at] = 1.0
            free[k, :, side] = True
        return replace(self, values=values, covariance=covariance, free=free)


def densities(
    statistics: Statistics,
    hypotheses: Hypotheses,
    units: FloatArray,
    reference: FloatArray,
    measured: Statistics | None = None,
) -> FloatArray:
    """Log densities against the reference, shape (k, n_readings, n_hypotheses).

    −inf where a reading or hypothesis is impossible. The reference says that the two targets' lines
    are unrelated directions: readings with different statistics can then be compared.

    Parameters
    ----------
    statistics : Statistics
    hypotheses : Hypotheses
    units, reference : array, shape (k, 3)
        For each pair, the units of the table's scales, and the scales of the reference.
    measured : Statistics, optional
        The statistics that the reference is about, if they are not those of the hypotheses: effects
        (`Statistics.as_effects`) have the same volume.
    """
    s, m = statistics, measured or statistics
    owner, scales, weights = hypotheses.components
    log_weights = np.log(weights)[:, None]
    rows = np.full((*s.exists.shape, len(hypotheses.rows)), -np.inf)
    pair, reading = np.nonzero(s.exists)
    for k in range(0, len(pair), TOGETHER):
        at = own, _ = pair[k : k + TOGETHER], reading[k : k + TOGETHER]
        free = s.free[at]
        used = np.array([np.ones(len(own), dtype=bool), free[:, 1], free[:, 0]])
        each = _log_normals(
            s.values[at].T, s.covariance[at].T, used, scales.T[:, :, None] * units[own].T[:, None]
        )
        far = _log_normals(m.values[at].T, m.covariance[at].T, used, reference[own].T[:, None])
        each += log_weights - far
        parts = (each[owner == h] for h in range(len(hypotheses.rows)))
        found = np.array([np.logaddexp.reduce(part) for part in parts])
        found[~(free[:, None] | ~hypotheses.free).all(axis=2).T] = -np.inf
        rows[at] = found.T
    return rows


def in_all(rows: FloatArray, hypotheses: Hypotheses) -> FloatArray:
    """Log density of all hypotheses together, with their priors, shape (k, n_readings)."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.logaddexp.reduce(rows.T + np.log(hypotheses.priors)[:, None, None]).T)


def _log_normals(g: FloatArray, C: FloatArray, used: BoolArray, scales: FloatArray) -> FloatArray:
    """`log N(g; 0, C + diag(v²))` up to a constant, shape (n_components, k).

    A statistic that is not `used` counts as known and zero; `scales` are v, (3, n_components, k).
    """
    # In standard errors.
    precision = np.array([np.where(u & (C[a, a] > 0), C[a, a], 1.0) for a, u in enumerate(used)])
    precision = 1.0 / precision
    root = np.sqrt(precision) * used
    x, y, w = g * root
    d, e, f = C[0, 1] * root[0] * root[1], C[0, 2] * root[0] * root[2], C[1, 2] * root[1] * root[2]
    a, b, c = (scales * root[:, None]) ** 2 + (1.0 + JITTER)
    # The inverse of the symmetric matrix (a d e, d b f, e f c) times its determinant.
    m_a, m_b, m_c = b * c - f * f, a * c - e * e, a * b - d * d
    m_d, m_e, m_f = e * f - d * c, d * f - b * e, d * e - a * f
    det = a * m_a + d * m_d + e * m_e
    quad = x * x * m_a + y * y * m_b + w * w * m_c
    quad += 2 * (x * y * m_d + x * w * m_e + y * w * m_f)
    return np.asarray(-0.5 * (np.log(det) + quad / det))


def by_label(
    statistics: Statistics,
    rows: FloatArray,
    log_weight: FloatArray,
    hypotheses: Hypotheses,
    owner: IntArray,
    n_labels: int,
) -> FloatArray:
    """Log Bayes factors of every hypothesis against the first, shape (n_hypotheses, p, p).

    A hypothesis is averaged over the readings in which it is possible, and over the regimes of two
    labels. The regimes of a label share the other label's error, so their evidence does not simply
    add; the average never claims more than one pair of regimes would. NaN where no pair of regimes
    says anything. `rows` and `log_weight` are by pair and reading, `owner` has the label of each
    regime.
    """
    s = statistics
    weight, each = np.where(s.exists, log_weight, -np.inf).T, rows.T
    logs = np.empty((len(each), len(s.first)))
    for h, needs in enumerate(hypotheses.free):
        possible = np.where((s.free | ~needs).all(axis=2).T, weight, -np.inf)
        share = np.logaddexp.reduce(possible)
        share[share == -np.inf] = 0.0
        logs[h] = np.logaddexp.reduce(each[h] + possible) - share
    # Taken against the best hypothesis and floored, the small differences between those that fit
    # survive the division by the first.
    logs = np.maximum(logs - logs.max(axis=0), -CERTAIN)
    first, second = owner[s.first], owner[s.second]
    cells = np.concatenate([first * n_labels + second, second * n_labels + first])
    count = np.bincount(cells, minlength=n_labels**2).astype(np.float64)
    count[count == 0] = np.nan
    said = np.concatenate([logs - logs[0], logs[hypotheses.mirror] - logs[0]], axis=1)
    factors = [np.bincount(cells, row, n_labels**2) / count for row in said]
    return np.array(factors).reshape(len(logs), n_labels, n_labels)
