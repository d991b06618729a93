"""Which of its two lines is a target's own? The choice that makes the pairs fit best.

Each regime of rank 2 has two candidate lines (T5). With `F_ij[s,t]` the log evidence of a pair under
the choices s and t, maximise `Σ_{i,j} F_ij[s_i, s_j]` by best single flips from
`s_i = argmax_s Σ_j max_t F_ij[s,t]`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["choose_lines"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


def choose_lines(F: FloatArray, free: npt.NDArray[np.bool_]) -> tuple[IntArray, FloatArray]:
    """Choose a line per regime.

    Parameters
    ----------
    F : array, shape (r, r, 2, 2)
        `F[i, j, s, t]`, with `F[j, i, t, s]` equal to it and zeros on the diagonal.
    free : array of bool, shape (r,)
        Regimes that have two lines; the others keep line 0.

    Returns
    -------
    choice : array of int, shape (r,)
    margin : array, shape (r,)
        By how much the log evidence would fall if this regime alone took its other line.
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
    margin = np.where(free, score[rows, choice] - score[rows, 1 - choice], np.inf)
    return choice, margin
