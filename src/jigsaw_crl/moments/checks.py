"""Checks of rows and of covariance matrices that a user passes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import ArrayLike, BoolArray, FloatArray
from jigsaw_crl.base.errors import InputError

# Rounding can make a matrix slightly asymmetric or indefinite: products of d numbers carry a
# relative error of about d·eps, and text files often keep only eight digits. A larger deviation is
# an error of the input.
SYMMETRY_TOLERANCE = 1e-8

# The smallest eigenvalue that still counts as a direction of the data, as a share of the largest:
# eigh resolves d·eps, and a direction below 1e-11 of the largest cannot be told from rounding.
RANK_TOLERANCE = 1e-11

# Fourth powers of the values are summed; 1e70 to the fourth leaves room for 1e28 rows below 1e308.
LARGEST_VALUE = 1e70


def check_rows(rows: ArrayLike) -> npt.NDArray[np.generic]:
    """Rows as a numeric matrix; an `InputError` if they are not one.

    Numeric arrays keep their type and are not copied. The values are checked when they are summed.
    """
    try:
        x = np.asarray(rows)
        x = x if x.dtype.kind in "fiubc" else np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "the rows hold values that are not numbers", "Drop or encode the non-numeric columns."
        ) from None
    if x.dtype.kind == "c":
        raise InputError(
            "its values are complex numbers",
            "Pass the real and the imaginary part as two features.",
        )
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(
            f"the rows have shape {x.shape}",
            "Pass a matrix with one row per sample and one column per feature.",
        )
    return x


def check_values(x: npt.NDArray[np.generic]) -> None:
    """Raise an `InputError` for values that are missing, infinite or too large to be summed."""
    # A missing value makes both NaN, and every comparison with NaN is false.
    low, high = float(x.min(initial=0)), float(x.max(initial=0))
    if low >= -LARGEST_VALUE and high <= LARGEST_VALUE:
        return
    bad = x.size - int(np.count_nonzero(np.isfinite(x)))
    if bad:
        raise InputError(
            f"{bad} of {x.size} values are missing or infinite",
            "Drop those rows, or impute them before passing the data.",
        )
    raise InputError(
        f"the values reach {max(-low, high):.3g}, whose fourth power cannot be represented",
        "Rescale the columns.",
    )


def check_second_moment(matrix: ArrayLike, *, client: str, regime: str) -> FloatArray:
    """The matrix, exactly symmetric; an `InputError` if it is not positive semi-definite."""
    fail = partial(InputError, client=client, regime=regime)
    remedy = "Pass a numeric covariance or precision matrix."
    try:
        c = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise fail("the matrix holds values that are not numbers", remedy) from None
    if c.ndim != 2 or c.shape[0] != c.shape[1] or c.shape[0] == 0:
        raise fail(
            f"the matrix has shape {c.shape}",
            "Pass a square matrix with one row and one column per feature.",
        )
    if not np.isfinite(c).all():
        raise fail("the matrix has missing or infinite entries", "Recompute it from complete rows.")
    slack = SYMMETRY_TOLERANCE * max(float(np.abs(c).max()), np.finfo(np.float64).tiny)
    gap = float(np.abs(c - c.T).max())
    if gap > slack:
        raise fail(f"the matrix is not symmetric (largest difference {gap:.3g})", remedy)
    c = (c + c.T) / 2
    try:
        # Much cheaper than the eigenvalues, which are needed only for the message.
        np.linalg.cholesky(c + slack * np.eye(len(c)))
    except np.linalg.LinAlgError:
        raise fail(
            f"the matrix is indefinite (smallest eigenvalue {np.linalg.eigvalsh(c)[0]:.3g})",
            "Pass a covariance or precision matrix; pairwise-complete estimates are often "
            "indefinite.",
        ) from None
    return c


def varying(regimes: Sequence[tuple[FloatArray, FloatArray]]) -> BoolArray:
    """Which features vary by more than rounding, within a regime or between regimes.

    Regimes are pairs of mean and covariance. Rounding gives a constant a standard deviation of a
    few units in the last place.
    """
    means = np.array([mean for mean, _ in regimes])
    rounding = 4 * np.finfo(np.float64).eps * np.abs(means)
    within = np.array([np.diagonal(covariance) for _, covariance in regimes]) > rounding**2
    return np.asarray(within.any(axis=0) | (np.ptp(means, axis=0) > rounding.max(axis=0)))
