"""The step to which each column of a table was rounded.

Readings that were rounded, or come from a converter of few bits, lie on a lattice: all differences
between values are multiples of one step s. Rounding adds noise of variance `s²/12`, which is all
that is known of a sensor's noise where the sensors are too few to estimate it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jigsaw_crl.base.arrays import FloatArray

# A few rows show the step of a column as well as all of them do.
MOST_ROWS = 1024
# A column of fewer values has no step; one of more levels has a step too small to matter.
FEWEST_VALUES, MOST_LEVELS = 4, 1000.0
# Multiples of a step are off by less than the first share of it: numbers in files are rounded, too.
# Values closer than the second share of their range are the same.
OFF, SAME_VALUE = 0.01, 1e-7


def steps_of(rows: FloatArray) -> FloatArray:
    """The step of each column of rows, shape (d,); 0 where there is none. NaN are passed over.

    It is the greatest common divisor of the gaps between sorted values, by Euclid's algorithm.
    """
    first = np.sort(rows[:MOST_ROWS], axis=0)
    steps = np.zeros(rows.shape[1])
    for i, column in enumerate(first.T):
        gaps = np.diff(column[~np.isnan(column)])
        total = float(gaps.sum())
        gaps = gaps[gaps > SAME_VALUE * total]
        step = float(gaps.min()) if len(gaps) + 1 >= FEWEST_VALUES else 0.0
        while step * MOST_LEVELS > total:
            rest = np.abs(gaps - step * np.round(gaps / step))
            rest = rest[rest > OFF * step]
            if len(rest) == 0:
                steps[i] = total / round(total / step)
                break
            step = float(rest.min())
    return steps


def common_steps(found: Iterable[FloatArray | None]) -> FloatArray | None:
    """The steps of columns whose rows have these steps; None if those of some rows are unknown."""
    common, *others = found
    for own in others:
        if common is None or own is None:
            return None
        low, high = np.minimum(common, own), np.maximum(common, own)
        times = np.divide(high, low, out=np.full(len(low), 0.5), where=low > 0)
        common = np.where(np.abs(times - np.round(times)) <= OFF * times, low, 0.0)
    return common
