"""The step to which each column of a table was rounded.

Readings that were rounded, or come from a converter of few bits, lie on a lattice: all differences
between values are multiples of one step s. Rounding adds noise of variance `s²/12`, which is all
that is known of a sensor's noise where the sensors are too few to estimate it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from jigsaw_crl.base.arrays import FloatArray

# A few rows show the step of a column as well as all of them do.
MOST_ROWS = 1024
# A column of fewer values has no step; one of more levels has a step too small to matter.
FEWEST_VALUES, MOST_LEVELS = 4, 1000.0
# Multiples of a step are off by less than the first share of it: numbers in files are rounded, too.
# Values closer than the second share of their range are the same.
CLOSE, SAME = 0.01, 1e-7


def steps_of(rows: FloatArray) -> FloatArray:
    """The step of each column of rows, shape (d,); 0 where there is none. NaN are passed over."""
    first = np.sort(rows[:MOST_ROWS], axis=0)
    return np.array([_step(np.diff(column[~np.isnan(column)])) for column in first.T])


def common_steps(found: Iterable[FloatArray | None]) -> FloatArray | None:
    """The steps of columns whose rows have these steps; None if those of some rows are unknown."""
    return reduce(_both, found)


def _both(a: FloatArray | None, b: FloatArray | None) -> FloatArray | None:
    if a is None or b is None:
        return None
    low, high = np.minimum(a, b), np.maximum(a, b)
    times = np.divide(high, low, out=np.full(len(low), 0.5), where=low > 0)
    return np.where(np.abs(times - np.round(times)) <= CLOSE * times, low, 0.0)


def _step(gaps: FloatArray) -> float:
    """The greatest common divisor of the gaps between sorted values, by Euclid's algorithm."""
    total = float(gaps.sum())
    gaps = gaps[gaps > SAME * total]
    if len(gaps) + 1 < FEWEST_VALUES:
        return 0.0
    step = float(gaps.min())
    while step * MOST_LEVELS > total:
        rest = np.abs(gaps - step * np.round(gaps / step))
        rest = rest[rest > CLOSE * step]
        if len(rest) == 0:
            return total / round(total / step)
        step = float(rest.min())
    return 0.0
