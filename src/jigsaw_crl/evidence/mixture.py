"""Log densities of a table of hypotheses, for many pairs and readings of each, compiled.

A target may be read in several ways: which of two lines is its own, and whether it has a second
direction at all. For every pair of targets and every reading of the two, the functions here
evaluate each hypothesis of a table, then average over readings and add up by label. `reference`
says the same in plain NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.hypotheses import Hypotheses

__all__ = ["Densities", "Statistics", "by_label", "densities"]


# Statistics that are copies of each other would make C singular; relative to their variances.
JITTER = 1e-9
# Exact moments exclude hypotheses by log odds of 1e12; beyond this, odds count as certain, so that
# files and sums stay finite.
CERTAIN = 1e4


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of pairs of regimes, in every reading.

    Parameters
    ----------
    first, second : array of int, shape (k,)
        Regimes i and j of each pair.
    values : array, shape (k, n_readings, 3)
        (⟨q_i, q_j⟩, ⟨q_i, c_j⟩, ⟨c_i, q_j⟩).
    covariance : array, shape (k, n_readings, 3, 3)
    exists : array of bool, shape (k, n_readings)
        Readings that both targets have.
    free : array of bool, shape (k, n_readings, 2)
        Is c_i, c_j free in this reading? Where it is not, the statistic with it does not exist.
    """

    first: IntArray
    second: IntArray
    values: FloatArray
    covariance: FloatArray
    exists: BoolArray
    free: BoolArray

    def of(self, chosen: BoolArray) -> Statistics:
        """Those of some pairs."""
        return Statistics(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))

    def as_effects(self, hard_i: BoolArray, hard_j: BoolArray) -> Statistics:
        """With effects in place of ⟨c_i, q_j⟩ and ⟨q_i, c_j⟩ where an intervention is hard.

        If the intervention on j is hard, the effect of i on j is proportional to
        `⟨q_i, q_j⟩ − ⟨q_i, c_j⟩` in natural lengths (T8).

        Parameters
        ----------
        hard_i, hard_j : array of bool, shape (k,)
        """
        to = np.broadcast_to(np.eye(3), (len(self.first), 3, 3)).copy()
        for row, hard in ((1, hard_j), (2, hard_i)):
            to[hard, row, 0], to[hard, row, row] = 1.0, -1.0
        values = np.einsum("kab,ksb->ksa", to, self.values)
        covariance = np.einsum("kab,ksbc,kdc->ksad", to, self.covariance, to)
        return replace(self, values=values, covariance=np.ascontiguousarray(covariance))


@dataclass(frozen=True, eq=False)
class Densities:
    """Log densities against the reference; −inf where a reading or hypothesis is impossible.

    Parameters
    ----------
    rows : array, shape (k, n_readings, n_hypotheses)
    total : array, shape (k, n_readings)
        All hypotheses together, with their priors.
    """

    rows: FloatArray
    total: FloatArray


def densities(
    statistics: Statistics, hypotheses: Hypotheses, sizes: dict[str, FloatArray]
) -> Densities:
    """Evaluate every hypothesis; `sizes` are the quantities of each pair that the table uses."""
    # Compiled on first use: numba takes longer to import than a small study to recover.
    from jigsaw_crl.evidence.mixture_loops import log_densities

    s = statistics
    scales, weights = hypotheses.of_pairs(sizes)
    owners = np.array([k for k, _ in hypotheses.components])
    start = np.searchsorted(owners, np.arange(len(hypotheses) + 1))
    rows = np.empty((*s.exists.shape, len(hypotheses)))
    total = np.empty(s.exists.shape)
    given = (s.values, s.covariance, s.exists, s.free, scales, weights, hypotheses.priors)
    log_densities(*given, start, hypotheses.free, rows, total)
    return Densities(rows, total)


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
    says anything.

    Parameters
    ----------
    rows : array, shape (k, n_readings, n_hypotheses)
    log_weight : array, shape (k, n_readings)
        Log weight of each reading, up to a constant per pair.
    owner : array of int, shape (r,)
        Label of each regime.
    """
    from jigsaw_crl.evidence.mixture_loops import add_by_label  # compiled, as in `densities`

    s = statistics
    factors = np.zeros((len(hypotheses), n_labels, n_labels))
    count = np.zeros((n_labels, n_labels))
    pairs = owner[s.first], owner[s.second]
    log_weight = np.where(s.exists, log_weight, -np.inf)
    table = hypotheses.free, hypotheses.mirror
    add_by_label(rows, log_weight, s.free, *pairs, *table, factors, count)
    count[count == 0] = np.nan
    factors /= count
    return factors
