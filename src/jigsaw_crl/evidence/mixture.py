"""Log densities of a table of hypotheses, for many pairs and readings of each, compiled.

A pair may be read in several ways (which of its two lines is a target's own). For every pair and
reading the functions here evaluate each hypothesis of a table, then average over readings and add
up by label. `reference` says the same in plain NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.evidence.hypotheses import Hypotheses

__all__ = ["Densities", "Statistics", "by_label", "densities"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

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
    used : array of bool, shape (k, 3)
        Statistics that exist: a target with a single direction has no c.
    same_as : array of int, shape (k, n_readings)
        An earlier reading with the same values, or the reading's own number.
    """

    first: IntArray
    second: IntArray
    values: FloatArray
    covariance: FloatArray
    used: BoolArray
    same_as: IntArray


@dataclass(frozen=True, eq=False)
class Densities:
    """Log densities, up to a constant shared by all hypotheses of a pair.

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
    scales, weights, priors = hypotheses.of_pairs(sizes)
    owners = np.array([k for k, _ in hypotheses.components])
    start = np.searchsorted(owners, np.arange(len(hypotheses) + 1))
    rows = np.empty((*s.values.shape[:2], len(hypotheses)))
    total = np.empty(s.values.shape[:2])
    log_densities(
        s.values, s.covariance, s.used, s.same_as, scales, weights, priors, start, rows, total
    )
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

    They are averaged over the readings and over the regimes of two labels. The regimes of a label
    share the other label's error, so their evidence does not simply add; the average never claims
    more than one pair of regimes would. NaN where no pair of regimes says anything.

    Parameters
    ----------
    rows : array, shape (k, n_readings, n_hypotheses)
    log_weight : array, shape (k, n_readings)
        Log weight of each reading, up to a constant per pair.
    owner : array of int, shape (r,)
        Label of each regime.
    """
    from jigsaw_crl.evidence.mixture_loops import add_by_label  # compiled, as in `densities`

    factors = np.zeros((len(hypotheses), n_labels, n_labels))
    count = np.zeros((n_labels, n_labels))
    log_weight = log_weight - log_weight.max(axis=1, keepdims=True)
    pairs = owner[statistics.first], owner[statistics.second]
    add_by_label(rows, log_weight, *pairs, hypotheses.mirror, factors, count)
    count[count == 0] = np.nan
    factors /= count
    return factors
