"""First and second moments of one regime, and the linear algebra that is done with them.

`Moments` holds the mean `μ` and the covariance `C` (divisor n) of `n` rows of `d` features, or the
exact population values when `n is None`. Nothing else of the rows is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dtrtrs

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import ReadOnlyArrays

__all__ = [
    "Moments",
    "column_space",
    "fixed_rank_pinv",
    "inverse_square_root",
    "second_moment_about",
    "solve_lower",
]

FloatArray = npt.NDArray[np.float64]

# A matrix that should be symmetric or positive semi-definite may miss it by rounding: products of
# d numbers carry a relative error of about d·eps, and users pass matrices that went through text
# files with eight digits. Anything coarser is a mistake worth an error.
SYMMETRY_TOLERANCE = 1e-8

# Fourth powers of the rows are summed; 1e70 to the fourth leaves room for 1e28 rows below 1e308.
LARGEST_VALUE = 1e70


@dataclass(frozen=True, eq=False)
class Moments(ReadOnlyArrays):
    """Mean and covariance of one regime.

    Parameters
    ----------
    n : int or None
        Number of rows; None for exact population moments.
    mean : array, shape (d,)
    covariance : array, shape (d, d)
        About `mean`, with divisor n.
    third, fourth : array, shape (d,), optional
        Third and fourth central moments of each feature, for judging how heavy its tails are;
        None where only second moments were given.
    parts : tuple of Moments, optional
        Moments of consecutive stretches of the same rows, in their order (at most eight), for
        seeing whether the regime drifts; empty where the order of rows is not known.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.regime import Moments
    >>> m = Moments.from_rows(np.array([[0.0, 1.0], [2.0, 1.0]]))
    >>> m.n, m.mean.tolist(), m.covariance.tolist()
    (2, [1.0, 1.0], [[1.0, 0.0], [0.0, 0.0]])
    """

    n: int | None
    mean: FloatArray
    covariance: FloatArray
    third: FloatArray | None = None
    fourth: FloatArray | None = None
    parts: tuple[Moments, ...] = ()

    def __post_init__(self) -> None:
        # Copies, read-only: a caller's array must neither change nor be changed.
        for field in ("mean", "covariance", "third", "fourth"):
            if getattr(self, field) is None:
                continue
            value = np.array(getattr(self, field), dtype=np.float64)
            value.flags.writeable = False
            object.__setattr__(self, field, value)

    @classmethod
    def from_rows(cls, rows: npt.ArrayLike, *, parts: bool = False) -> Moments:
        """Moments of rows held in memory, shape (n, d); `parts` keeps those of stretches too.

        They are the same to the last bit as those of a stream of the same rows.
        """
        from jigsaw_crl.moments.stream import moments_of

        x = _numbers(rows)
        try:
            return moments_of(x, parts=parts)
        except InputError:
            # The stream met the first bad value; say how many there are.
            check_values(x)
            raise

    @property
    def n_features(self) -> int:
        return int(self.mean.shape[0])

    def merge(self, other: Moments) -> Moments:
        """Moments of both sets of rows together."""
        if self.n is None or other.n is None:
            raise InputError(
                "population moments cannot be merged with others", "Merge estimates only."
            )
        if self.n_features != other.n_features:
            raise InputError(
                f"moments of {self.n_features} and of {other.n_features} features cannot be merged",
                "Compute both from the same columns.",
            )
        n = self.n + other.n
        here, there = self.n / n, other.n / n
        shift = other.mean - self.mean
        third, fourth = _merged_higher(self, other, here, there, shift)
        return Moments(
            n,
            self.mean + there * shift,
            here * self.covariance
            + there * other.covariance
            + (here * there) * np.outer(shift, shift),
            third,
            fourth,
            _joined_parts(self, other),
        )


# Eight stretches show a trend or a jump, and cost eight matrices.
MOST_PARTS = 8


def _merged_higher(
    a: Moments, b: Moments, here: float, there: float, shift: FloatArray
) -> tuple[FloatArray | None, FloatArray | None]:
    """Third and fourth central moments of both sets of rows together, feature by feature."""
    if a.third is None or a.fourth is None or b.third is None or b.fourth is None:
        return None, None
    va, vb = np.diagonal(a.covariance), np.diagonal(b.covariance)
    both = here * there
    third = here * a.third + there * b.third + both * (here - there) * shift**3
    third += 3 * both * shift * (vb - va)
    fourth = here * a.fourth + there * b.fourth
    fourth += both * (here**2 - both + there**2) * shift**4
    fourth += 6 * both * shift**2 * (here * vb + there * va)
    fourth += 4 * both * shift * (b.third - a.third)
    return third, fourth


def _joined_parts(a: Moments, b: Moments) -> tuple[Moments, ...]:
    if not a.parts or not b.parts:
        return ()
    return coarsened(a.parts + b.parts)


def coarsened(parts: tuple[Moments, ...], most: int = MOST_PARTS) -> tuple[Moments, ...]:
    """Neighbouring stretches merged two by two until at most `most` are left."""
    while len(parts) > most:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = tuple(p[0] if len(p) == 1 else p[0].merge(p[1]) for p in pairs)
    return parts


def second_moment_about(moments: Moments, centre: FloatArray) -> FloatArray:
    """`E (X − centre)(X − centre)ᵀ`, shape (d, d).

    Taken about the *control* mean, a shift of the mean under an intervention acts as a change of
    variance, which is a soft intervention like any other.
    """
    shift = moments.mean - centre
    return moments.covariance + np.outer(shift, shift)


def column_space(second_moment: FloatArray, rank: int) -> FloatArray:
    """Orthonormal basis of the leading `rank` eigenvectors, shape (d, rank)."""
    _, vectors = np.linalg.eigh(second_moment)
    return np.ascontiguousarray(vectors[:, ::-1][:, :rank])


def fixed_rank_pinv(matrix: FloatArray, rank: int) -> FloatArray:
    """Pseudo-inverse of a symmetric positive semi-definite matrix whose rank is known.

    The rank is passed because the model knows it (the number of latents a client accesses); a
    cutoff on eigenvalues would guess it.
    """
    values, vectors = np.linalg.eigh(matrix)
    top = vectors[..., :, -rank:]
    scaled = top / values[..., None, -rank:]
    inverse = scaled @ np.swapaxes(top, -1, -2)
    return np.asarray((inverse + np.swapaxes(inverse, -1, -2)) / 2, dtype=np.float64)


def inverse_square_root(matrix: FloatArray) -> FloatArray:
    """Symmetric `M^(−1/2)`; directions that are empty up to rounding count as rounding."""
    values, vectors = np.linalg.eigh(matrix)
    least = max(float(values[-1]) * np.finfo(np.float64).eps, np.finfo(np.float64).tiny)
    values = np.maximum(values, least)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T, dtype=np.float64)


def solve_lower(L: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """`L⁻¹ right`, or `L⁻ᵀ right`, for a lower triangular L without zeros on its diagonal.

    LAPACK itself: for small matrices the checks around it cost more than the solution.
    """
    # A matrix in rows is its transpose in columns, as LAPACK reads it: nothing is copied.
    solution, _ = dtrtrs(L.T, right, lower=0, trans=0 if transposed else 1)
    return np.asarray(solution)


def _numbers(rows: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Rows as an array of numbers; one that is so already is not copied to another width."""
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "fiub":
        return np.asarray(rows)
    return np.asarray(rows, dtype=np.float64)


def check_rows(rows: npt.ArrayLike, *, client: str, regime: str) -> npt.NDArray[np.generic]:
    """Rows as a matrix of numbers, or an `InputError` that says what is wrong with them.

    The values are not looked at: `Moments.from_rows` refuses bad ones in the pass that sums them.
    """
    try:
        x = _numbers(rows)
    except (TypeError, ValueError):
        raise InputError(
            "the rows hold values that are not numbers",
            "Drop or encode the non-numeric columns.",
            client=client,
            regime=regime,
        ) from None
    if x.ndim != 2 or 0 in x.shape:
        raise InputError(
            f"the rows have shape {x.shape}",
            "Pass a matrix with one row per sample and one column per feature.",
            client=client,
            regime=regime,
        )
    return x


def check_values(x: npt.NDArray[np.generic]) -> None:
    """Refuse values that are missing, infinite, or too large for their fourth powers."""
    # A missing value makes both ends nan, for which no comparison holds.
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


def check_second_moment(matrix: npt.ArrayLike, *, client: str, regime: str) -> FloatArray:
    """A symmetric positive semi-definite matrix, or an `InputError` that says why it is not."""
    try:
        c = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "the matrix holds values that are not numbers",
            "Pass a numeric covariance or precision matrix.",
            client=client,
            regime=regime,
        ) from None
    if c.ndim != 2 or c.shape[0] != c.shape[1] or c.shape[0] == 0:
        raise InputError(
            f"the matrix has shape {c.shape}",
            "Pass a square matrix with one row and one column per feature.",
            client=client,
            regime=regime,
        )
    if not np.isfinite(c).all():
        raise InputError(
            "the matrix has missing or infinite entries",
            "Recompute it from complete rows.",
            client=client,
            regime=regime,
        )
    size = float(np.abs(c).max())
    gap = float(np.abs(c - c.T).max())
    if gap > SYMMETRY_TOLERANCE * max(size, np.finfo(np.float64).tiny):
        raise InputError(
            f"the matrix is not symmetric (largest difference {gap:.3g})",
            "Pass a covariance or precision matrix.",
            client=client,
            regime=regime,
        )
    c = (c + c.T) / 2
    slack = SYMMETRY_TOLERANCE * max(size, np.finfo(np.float64).tiny)
    try:
        # Far cheaper than the eigenvalues, which are only needed for the message.
        np.linalg.cholesky(c + slack * np.eye(len(c)))
    except np.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(c)[0])
    else:
        smallest = 0.0
    if smallest < -slack:
        raise InputError(
            f"the matrix is indefinite (smallest eigenvalue {smallest:.3g})",
            "Pass a covariance or precision matrix; pairwise-complete estimates are often "
            "indefinite.",
            client=client,
            regime=regime,
        )
    return c
