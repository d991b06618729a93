"""The choice between the two candidate lines of each target.

Each regime of rank 2 has two candidate lines (T5). With `F_ij[s,t]` the log evidence of a pair
under the choices s and t, maximise `Σ_{i,j} F_ij[s_i, s_j]` by best single flips from
`s_i = argmax_s Σ_j max_t F_ij[s,t]`. Where the choice is close, the evidence of a pair is averaged
over its lines, with weights from all the other pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Choice", "choose_lines"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Choice:
    """The line chosen for every regime.

    Parameters
    ----------
    line : array of int, shape (r,)
    score : array, shape (r, 2)
        Evidence of a regime's pairs when it takes either line and the others keep theirs.
    """

    line: IntArray
    score: FloatArray

    @property
    def margin(self) -> FloatArray:
        """By how much the log evidence would fall if a regime alone took its other line, (r,)."""
        rows = np.arange(len(self.line))
        return np.asarray(self.score[rows, self.line] - self.score[rows, 1 - self.line])

    def log_weight(self, F: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
        """Log weight of the lines (s, t) of each pair from all other pairs, shape (k, 4).

        The pair's own evidence is left out, so that it can be combined with these weights to
        average a hypothesis over the choice of lines.
        """
        own_i = self.score[i] - F[i, j, :, self.line[j]]
        own_j = self.score[j] - F[i, j, self.line[i], :]
        return np.asarray((own_i[:, :, None] + own_j[:, None, :]).reshape(-1, 4))


def choose_lines(F: FloatArray, free: npt.NDArray[np.bool_]) -> Choice:
    """Choose a line per regime.

    Parameters
    ----------
    F : array, shape (r, r, 2, 2)
        `F[i, j, s, t]`, with `F[j, i, t, s]` equal to it and zeros on the diagonal.
    free : array of bool, shape (r,)
        Regimes that have two lines; the others keep line 0.

    Returns
    -------
    Choice
    """
    r = len(free)
    choice = np.where(free, F.max(axis=3).sum(axis=1).argmax(axis=1), 0).astype(np.intp)
    rows = np.arange(r)
    # score[i, s]: evidence of regime i's pairs when it takes line s and the others keep theirs.
    score = F[rows[:, None], rows[None, :], :, choice[None, :]].sum(axis=1)
    for _ in range(20 * r + 20):
        gain = np.where(free, score[rows, 1 - choice] - score[rows, choice], -np.inf)
        best = int(np.argmax(gain))
        # A gain within rounding of the sums is a tie, not an improvement.
        if not gain[best] > 1e-9 * (1.0 + np.abs(score[best]).max()):
            break
        score += F[:, best, :, 1 - choice[best]] - F[:, best, :, choice[best]]
        choice[best] = 1 - choice[best]
    score[~free, 1] = -np.inf
    return Choice(choice, score)
