"""The reading of each regime that fits all pairs best.

A regime has several readings: candidate lines, with c free or zero. With `F_ij[s, t]` the log
evidence of a pair under readings s and t, and `own_i[s]` that of the regime itself, maximise
`Σ_i own_i[s_i] + Σ_{i<j} F_ij[s_i, s_j]` by best single changes from
`s_i = argmax_s (own_i[s] + Σ_j max_t F_ij[s, t])`. Where the choice is close, the evidence of a
pair is averaged over its readings, with weights from all the other pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray

__all__ = ["Choice", "choose_readings"]


@dataclass(frozen=True, eq=False)
class Choice:
    """The reading chosen for every regime.

    Parameters
    ----------
    reading : array of int, shape (r,)
    score : array, shape (r, s)
        Evidence of a regime and its pairs when it takes each reading and the others keep theirs.
    """

    reading: IntArray
    score: FloatArray

    @property
    def margin(self) -> FloatArray:
        """By how much the log evidence falls if a regime takes its next best reading, (r,)."""
        rows = np.arange(len(self.reading))
        others = self.score.copy()
        others[rows, self.reading] = -np.inf
        return np.asarray(self.score[rows, self.reading] - others.max(axis=1))

    def log_weight(self, F: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
        """Log weight of the readings (s, t) of each pair from all other pairs, shape (k, s · s).

        The pair's own evidence is left out, so that it can be combined with these weights to
        average a hypothesis over the readings.
        """
        own_i = self.score[i] - F[i, j, :, self.reading[j]]
        own_j = self.score[j] - F[i, j, self.reading[i], :]
        own_i -= own_i.max(axis=1, keepdims=True)
        own_j -= own_j.max(axis=1, keepdims=True)
        s = self.score.shape[1]
        return np.asarray((own_i[:, :, None] + own_j[:, None, :]).reshape(len(i), s * s))


def choose_readings(F: FloatArray, own: FloatArray) -> Choice:
    """Choose a reading per regime.

    Parameters
    ----------
    F : array, shape (r, r, s, s)
        `F[i, j, s, t]`, with `F[j, i, t, s]` equal to it and zeros on the diagonal.
    own : array, shape (r, s)
        Log likelihood of each reading by the regime alone; very small where it does not exist.
    """
    r = len(own)
    rows = np.arange(r)
    # Readings are few: as many maxima of whole arrays are faster than many of three numbers.
    best_of_pair = reduce(np.maximum, np.moveaxis(F, 3, 0))
    choice = (own + best_of_pair.sum(axis=1)).argmax(axis=1).astype(np.intp)
    # score[i, s]: evidence of regime i when it takes reading s and the others keep theirs.
    score = own + F[rows[:, None], rows[None, :], :, choice[None, :]].sum(axis=1)
    for _ in range(20 * r + 20):
        gain = score.max(axis=1) - score[rows, choice]
        best = int(gain.argmax())
        # A gain within rounding of the sums is a tie, not an improvement.
        if not gain[best] > 1e-9 * (1.0 + np.abs(score[best, choice[best]])):
            break
        new = int(score[best].argmax())
        score += F[:, best, :, new] - F[:, best, :, choice[best]]
        choice[best] = new
    return Choice(choice, score)
