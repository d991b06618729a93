"""What a user asks of rows before they are summed, and the rows that stay when some are trimmed.

Whole rows are left out, never single values: cutting values one by one would bend straight lines.
The distance is `(x − m)ᵀ C⁻¹ (x − m)`, with m and C of the half of the rows that lie closest. It is
found by concentration: start from the rows nearest to the median, then repeatedly take the half
with the smallest distances (Rousseeuw and Van Driessen 1999). Then the same is done with all rows
that stay, because the half is shaped by chance and would leave a trace in the covariance.
(`fast_mcd` of scikit-learn starts from random subsets: a hundred times slower, and it kept 200
spoilt rows of 1,000 that mask one another.)

For rows with elliptical contours the covariance of the rows that stay is that of all rows times a
number that depends only on the share and the number of features. All regimes have it in common, and
it cancels when they are compared with the control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from jigsaw_crl.base.arrays import AnyArray, BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.checks import RANK_TOLERANCE, check_values

Missing = Literal["refuse", "drop", "em"]
# The half of the rows that lie closest must be sound, and some margin is needed.
MOST_TRIMMED = 0.4
# Concentration seldom takes more rounds.
CONCENTRATIONS = 20


@dataclass(frozen=True)
class RowOptions:
    """What is asked for, of all regimes of a client.

    Parameters
    ----------
    trim : float
        Share of the rows of each regime to leave out: those that lie farthest out.
    missing : {"refuse", "drop", "em"}
        Refuse missing values, leave their rows out, or use all values by EM.
    grouped, batched : bool
        Rows come in groups, or in batches.

    Raises
    ------
    InputError
        A value is unknown, or two of them do not go together.
    """

    trim: float = 0.0
    missing: Missing = "refuse"
    grouped: bool = False
    batched: bool = False

    def __post_init__(self) -> None:
        number = isinstance(self.trim, int | float | np.number) and self.trim is not True
        if not number or not 0 <= self.trim <= MOST_TRIMMED:
            remedy = f"Pass the share of rows to leave out, from 0 to {MOST_TRIMMED:g}."
            raise InputError(f"trim is {self.trim!r}", remedy)
        if self.missing not in ("refuse", "drop", "em"):
            raise InputError(f"missing is {self.missing!r}", 'Use "refuse", "drop" or "em".')
        for given, what in ((self.trim, "trim"), (self.batched, "batch")):
            if self.missing == "em" and given:
                raise InputError(
                    f'missing="em" (--fill-missing) cannot be combined with {what}, which needs '
                    "complete rows",
                    f'Leave incomplete rows out (missing="drop"), or drop {what}.',
                )


def inner_rows(rows: AnyArray, share: float) -> BoolArray:
    """Which rows stay when a share of them, those farthest out, is left out.

    Of too few rows for a covariance (twice the features or fewer) all stay. Missing, infinite and
    too large values are refused.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.preparing import inner_rows
    >>> rows = np.random.default_rng(0).normal(size=(100, 2))
    >>> rows[7] *= 50
    >>> np.flatnonzero(~inner_rows(rows, 0.01)).tolist()
    [7]
    """
    x = np.asarray(rows, dtype=np.float64)
    check_values(x)
    n, d = x.shape
    out = int(share * n)
    kept = np.ones(n, dtype=bool)
    if not out or n <= 2 * d:
        return kept
    x = x - np.median(x, axis=0)
    scale = np.median(np.abs(x), axis=0)
    x /= np.where(scale > 0, scale, 1.0)
    half = max(n // 2 + 1, d + 2)
    distances, chosen = np.einsum("ij,ij->i", x, x), np.empty(0, dtype=np.intp)
    for count in (half, n - out):
        for _ in range(CONCENTRATIONS):
            before, chosen = chosen, np.sort(np.argsort(distances, kind="stable")[:count])
            if np.array_equal(before, chosen):
                break
            # Squared Mahalanobis distances of all rows by the moments of the chosen ones.
            mean = x[chosen].mean(axis=0)
            own = x[chosen] - mean
            values, vectors = np.linalg.eigh(own.T @ own / len(own))
            real = values > RANK_TOLERANCE * max(float(values[-1]), np.finfo(np.float64).tiny)
            y = (x - mean) @ (vectors[:, real] / np.sqrt(values[real]))
            distances = np.einsum("ij,ij->i", y, y)
    kept[:] = False
    kept[chosen] = True
    return kept
