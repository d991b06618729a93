"""The reading of each regime that fits all pairs best.

A regime has several readings: candidate lines, with c free or zero. With `F_ij[s, t]` the log
evidence of a pair under readings s and t, and `own_i[s]` that of the regime itself, maximise
`Σ_i own_i[s_i] + Σ_{i<j} F_ij[s_i, s_j]` by best single changes from
`s_i = argmax_s (own_i[s] + Σ_j max_t F_ij[s, t])`. Then each regime is held at each of its other
readings while the others follow. If that fits better it is taken, and otherwise the loss is how
sure the reading is: two lines that were exchanged together lose little together and much one by
one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.nullcone.readings import IMPOSSIBLE
from jigsaw_crl.nullcone.search import TIE


@dataclass(frozen=True, eq=False)
class Choice:
    """The reading chosen for every regime."""

    reading: IntArray
    # By how much the log evidence falls if a regime takes its next best reading and the others
    # follow; ∞ where there is no other.
    margin: FloatArray
    # The evidence of each regime's readings and of its pairs when the others keep theirs, (r, s).
    score: FloatArray


def choose_readings(F: FloatArray, own: FloatArray) -> Choice:
    """Choose a reading per regime.

    `F[i, j, s, t]` equals `F[j, i, t, s]`, with zeros on the diagonal; `own[i, s]` is `IMPOSSIBLE`
    where a reading does not exist.
    """
    rows = np.arange(len(own))
    choice = (own + F.max(axis=3).sum(axis=1)).argmax(axis=1).astype(np.intp)
    score = own + F[rows[:, None], rows[None, :], :, choice[None, :]].sum(axis=1)
    tie = TIE * (1.0 + float(np.abs(score[rows, choice]).max(initial=0.0)))
    _climb(F, score, choice, tie)
    margin = np.full(len(own), np.inf)
    # Every improvement starts the round again; there are few.
    waiting = [(i, s) for i, s in np.argwhere(own > 0.5 * IMPOSSIBLE).tolist()]
    k = 0
    while k < len(waiting):
        i, s = waiting[k]
        k += 1
        if s == choice[i]:
            continue
        other, its = choice.copy(), score.copy()
        gain = _change(F, its, other, i, s) + _climb(F, its, other, tie, held=i)
        if gain > tie:
            choice, score, k = other, its, 0
            margin[:] = np.inf
        else:
            changed = other != choice
            margin[changed] = np.minimum(margin[changed], max(-gain, 0.0))
    return Choice(choice, margin, score)


def _climb(F: FloatArray, score: FloatArray, choice: IntArray, tie: float, held: int = -1) -> float:
    """Best single changes, in place, as long as one improves the fit; what they gain together."""
    rows, total = np.arange(len(choice)), 0.0
    while len(rows):
        gain = score.max(axis=1) - score[rows, choice]
        if held >= 0:
            gain[held] = 0.0
        best = int(gain.argmax())
        if not gain[best] > tie:
            break
        total += _change(F, score, choice, best, int(score[best].argmax()))
    return total


def _change(F: FloatArray, score: FloatArray, choice: IntArray, i: int, s: int) -> float:
    """Give regime i the reading s, in place; what that gains."""
    gain = float(score[i, s] - score[i, choice[i]])
    score += F[:, i, :, s] - F[:, i, :, choice[i]]
    choice[i] = s
    return gain
