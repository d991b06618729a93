"""Moments without the rows that lie farthest out, by their robust Mahalanobis distance.

Whole rows are left out, never single values: cutting values one by one would bend straight lines.
The distance is `(x − m)ᵀ C⁻¹ (x − m)`, with m and C of the half of the rows that lie closest. It is
found by concentration: start from the rows nearest to the median, then repeatedly take the half
with the smallest distances (Rousseeuw and Van Driessen 1999). Then the same is done with all rows
that stay, because the half is shaped by chance and would leave a trace in the covariance.

For rows with elliptical contours the covariance of the rows that stay is that of all rows times a
number that depends only on the share and the number of features. All regimes have it in common, and
it cancels when they are compared with the control.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.checks import RANK_TOLERANCE, check_values

__all__ = ["MOST_TRIMMED", "check_trim", "inner_rows"]

# The half of the rows that lie closest must be sound, and some margin is needed.
MOST_TRIMMED = 0.4
# Concentration seldom takes more rounds.
ROUNDS = 20


def check_trim(trim: object) -> float:
    """The share as a number; an `InputError` unless it is from 0 to `MOST_TRIMMED`."""
    number = isinstance(trim, int | float | np.number) and not isinstance(trim, bool)
    if not number or not 0 <= float(trim) <= MOST_TRIMMED:  # type: ignore[arg-type]
        raise InputError(
            f"trim is {trim!r}",
            f"Pass the share of rows to leave out, from 0 to {MOST_TRIMMED:g}.",
        )
    return float(trim)  # type: ignore[arg-type]


def inner_rows(rows: npt.NDArray[np.generic], share: float) -> BoolArray:
    """Which rows stay when a share of them, those farthest out, is left out.

    Of too few rows for a covariance (twice the features or fewer) all stay. Missing, infinite and
    too large values are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.trimming import inner_rows
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> rows[7] *= 50
    >>> np.flatnonzero(~inner_rows(rows, 0.01)).tolist()
    [7]
    """
    x = np.asarray(rows, dtype=np.float64)
    check_values(x)
    n, d = x.shape
    out = int(share * n)
    if not out or n <= 2 * d:
        return np.ones(n, dtype=bool)
    x = x - np.median(x, axis=0)
    scale = np.median(np.abs(x), axis=0)
    x /= np.where(scale > 0, scale, 1.0)
    half = max(n // 2 + 1, d + 2)
    chosen = _closest(np.einsum("ij,ij->i", x, x), half)
    for count in (half, n - out):
        for _ in range(ROUNDS):
            before, chosen = chosen, _closest(_distances(x, chosen), count)
            if np.array_equal(before, chosen):
                break
    kept = np.zeros(n, dtype=bool)
    kept[chosen] = True
    return kept


def _closest(distances: FloatArray, count: int) -> IntArray:
    return np.sort(np.argsort(distances, kind="stable")[:count])


def _distances(x: FloatArray, chosen: IntArray) -> FloatArray:
    """Squared Mahalanobis distances of all rows by the moments of the chosen ones."""
    own = x[chosen]
    mean = own.mean(axis=0)
    own = own - mean
    values, vectors = np.linalg.eigh(own.T @ own / len(own))
    kept = values > RANK_TOLERANCE * max(float(values[-1]), np.finfo(np.float64).tiny)
    y = (x - mean) @ (vectors[:, kept] / np.sqrt(values[kept]))
    return np.asarray(np.einsum("ij,ij->i", y, y))
