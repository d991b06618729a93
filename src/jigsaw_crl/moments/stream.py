"""Moments of rows that arrive in chunks, in one pass and constant memory.

Rows are collected into blocks whose size depends only on the number of features, so the result does
not depend on how the rows were cut into chunks: a CSV file, a Parquet file and an array with the
same rows give the same moments to the last bit.

Each block is summed about a typical value of its own and merged into the running sums. With `n_a`
rows before and `n_b` in the block, `δ = μ_b − μ_a` and `n = n_a + n_b`,

    M₂ ← M₂ + M₂ᵇ + δδᵀ n_a n_b / n

and likewise for the third and fourth powers of each feature. No large numbers are subtracted, so a
mean far from zero costs no precision; compensated summation keeps the rounding error of each sum,
so a billion rows cost none either.

Compiled code shifts a block into a buffer that stays in a core's cache, where the matrix product
reads it. Fewer rows than one block are summed by numpy, because loading numba takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import reduce
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import ArrayLike, FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.checks import LARGEST_VALUE, check_values
from jigsaw_crl.moments.incomplete import Incomplete
from jigsaw_crl.moments.summary import MOST_PARTS, Summary, coarsened

__all__ = ["MOST_BLOCK_ROWS", "MomentStream", "block_rows", "few_parts"]


# Of many features, fewer parts are kept where only their spread is asked for, because many entries
# of few matrices show it as well.
_PART_VALUES = MOST_PARTS * 128**2
# A block of 2**17 numbers (1 MB) stays in a core's cache. From about 350 features on, a block has
# as many rows as features, so that updating the d-by-d sums never costs more than the product.
_BLOCK_VALUES = 1 << 17
MOST_BLOCK_ROWS = 8192
# Blocks are a multiple of the shortest stretch. Stretches double in length, so later on they end
# where blocks end.
_STRETCHES_PER_BLOCK = 64
_FEWEST_STRETCH_ROWS = 16
# Partial sums of a column.
_TOGETHER = 64
# If the typical value and all distances from it are below a tenth of the largest value allowed, so
# are the values; the sums show this without another pass over the rows.
_SURELY_ALLOWED = LARGEST_VALUE / 10


def block_rows(n_features: int) -> int:
    """Number of rows in a block."""
    fitting = min(MOST_BLOCK_ROWS, _BLOCK_VALUES // max(n_features, 1))
    stretch = max(fitting // _STRETCHES_PER_BLOCK, -(-n_features // _STRETCHES_PER_BLOCK))
    return stretch * _STRETCHES_PER_BLOCK


def few_parts(n_features: int) -> int:
    """Number of stretches whose moments show how far moments vary: from 2 to `MOST_PARTS`."""
    return min(max(_PART_VALUES // max(n_features, 1) ** 2, 2), MOST_PARTS)


def _summary_of_few(rows: FloatArray) -> Summary:
    """Summary of fewer rows than one block."""
    n = len(rows)
    typical = _median(rows[0], rows[n // 2], rows[n - 1])
    x = rows - typical
    mean = x.sum(axis=0) / n
    x -= mean
    squares = x * x
    third = np.einsum("ij,ij->j", squares, x) / n
    fourth = np.einsum("ij,ij->j", squares, squares) / n
    return Summary(n, typical + mean, x.T @ x / n, third, fourth)


def _median(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """Median of three rows; NaN where one of them is."""
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


# -- blocks and running sums ----------------------------------------------------------------------


class _Workspace:
    """Buffers that consecutive blocks of up to `n` rows share."""

    def __init__(self, n: int, n_features: int) -> None:
        self.shifted, self.powers = np.empty((2, n, n_features))
        self.product = np.empty((n_features, n_features))


def _column_sums(x: FloatArray) -> FloatArray:
    """Sums of columns, in `_TOGETHER` partial sums: one long sum would lose digits."""
    n, d = x.shape
    even = n - n % _TOGETHER
    sums = x[:even].reshape(-1, _TOGETHER, d).sum(axis=0).sum(axis=0)
    return np.asarray(sums + x[even:].sum(axis=0))


class _Block:
    """Power sums of one block about a typical value, the median of three rows.

    The sums about the block's own mean follow from these: `Σ(x−μ)² = Σx² − nμ²` and so on. Two of
    the three rows lie within √n standard deviations, so few digits can cancel, and a constant gives
    exactly 0. `product` is a buffer of the workspace, valid until the next block.
    """

    def __init__(self, rows: FloatArray, work: _Workspace) -> None:
        n, _ = rows.shape
        typical = _median(rows[0], rows[n // 2], rows[n - 1])
        with np.errstate(over="ignore", invalid="ignore"):  # such values are refused below
            shifted = np.subtract(rows, typical, out=work.shifted[:n])
            powers = np.multiply(shifted, shifted, out=work.powers[:n])
            squares = powers * powers
            powers *= shifted
            sums = np.stack([_column_sums(x) for x in (shifted, powers, squares)])
        # Written with <= so that NaN fails the test.
        allowed = np.maximum.reduce(abs(typical), initial=0) <= _SURELY_ALLOWED
        if not (allowed and np.maximum.reduce(sums[2], initial=0) <= _SURELY_ALLOWED**4):
            check_values(rows)
        self.n = n
        self.typical = typical
        self.sums = sums
        self.product = np.matmul(shifted.T, shifted, out=work.product)


def _add(sums: FloatArray, term: FloatArray) -> None:
    """Add to `sums[0]`, and its rounding error to `sums[1]` (Knuth's two-sum)."""
    old = sums[0].copy()
    sums[0] += term
    back = sums[0] - old
    sums[1] += (old - (sums[0] - back)) + (term - back)


class _RunningSums:
    """Power sums about the running mean, each with its rounding error.

    Means are stored relative to the first block's typical value: far from zero, their differences
    have digits that the means themselves lack.
    """

    def __init__(self, n_features: int) -> None:
        self.n = 0
        self._origin = np.zeros(n_features)
        self._vectors = np.zeros((2, 3, n_features))
        self._seconds = np.zeros((2, n_features, n_features))

    def add(self, block: _Block) -> None:
        """Merge the sums of a block, about the common mean."""
        if self.n == 0:
            self._origin = block.typical
        n, (sum1, q3, q4), q2 = block.n, block.sums, np.diagonal(block.product)
        # Means of the block's shifted rows, and of its rows less the running mean.
        mean = sum1 / n
        running = self._vectors[0] + self._vectors[1]
        shift = (block.typical - self._origin) - running[0] + mean
        here, there = self.n / (self.n + n), n / (self.n + n)
        weight = here * n
        va, vb = np.diagonal(self._seconds[0] + self._seconds[1]), q2 - n * mean**2
        tb = q3 - 3 * mean * q2 + 2 * n * mean**3
        fb = q4 - 4 * mean * q3 + 6 * mean**2 * q2 - 3 * n * mean**4
        third = tb + weight * (here - there) * shift**3 + 3 * shift * (here * vb - there * va)
        fourth = fb + weight * (here**2 - here * there + there**2) * shift**4
        fourth += 6 * shift**2 * (here**2 * vb + there**2 * va)
        fourth += 4 * shift * (here * tb - there * running[1])
        # Products of two vectors are symmetric to the last bit.
        second = block.product - n * np.outer(mean, mean) + weight * np.outer(shift, shift)
        _add(self._vectors, np.stack([there * shift, third, fourth]))
        _add(self._seconds, second)
        self.n += n

    def copy(self) -> _RunningSums:
        """Sums that can be added to without changing these."""
        twin = copy(self)
        twin._vectors, twin._seconds = self._vectors.copy(), self._seconds.copy()
        return twin

    def summary(self) -> Summary:
        n = self.n
        mean, third, fourth = self._vectors[0] + self._vectors[1]
        covariance = (self._seconds[0] + self._seconds[1]) / n
        return Summary(n, self._origin + mean, covariance, third / n, fourth / n)


class _Stretches:
    """Summaries of consecutive stretches of rows, which grow longer as rows arrive.

    When there are `most` of them, neighbours are merged, and from then on stretches are twice as
    long.
    """

    def __init__(self, n_features: int, most: int) -> None:
        self._n_features, self._most = n_features, most
        # One full block at least is added, so shorter stretches would be merged at once.
        self._rows = _stretch_rows(block_rows(n_features), n_features, most)
        self._done: tuple[Summary, ...] = ()
        self._open = _RunningSums(n_features)

    def pieces(self, rows: FloatArray) -> Iterator[FloatArray]:
        """The rows, cut where stretches end; each piece must be added before the next is taken."""
        start = 0
        while start < len(rows):
            taken = rows[start : start + self._rows - self._open.n]
            start += len(taken)
            yield taken

    def add(self, block: _Block) -> None:
        self._open.add(block)
        if self._open.n < self._rows:
            return
        self._done += (self._open.summary(),)
        self._open = _RunningSums(self._n_features)
        if len(self._done) == self._most:
            self._done = coarsened(self._done, self._most // 2)
            self._rows *= 2

    def copy(self) -> _Stretches:
        twin = copy(self)
        twin._open = self._open.copy()
        return twin

    def summaries(self) -> tuple[Summary, ...]:
        return self._done + ((self._open.summary(),) if self._open.n else ())


def _stretch_rows(n: int, n_features: int, most: int) -> int:
    """Rows per stretch when there are `n` in all: few, but with fewer than `most` full."""
    rows = block_rows(n_features) // _STRETCHES_PER_BLOCK
    while rows < _FEWEST_STRETCH_ROWS or n // rows >= most:
        rows *= 2
    return rows


def _stretches_of_few(rows: FloatArray, most: int) -> tuple[Summary, ...]:
    n, length = len(rows), _stretch_rows(len(rows), rows.shape[1], most)
    return tuple(_summary_of_few(rows[start : start + length]) for start in range(0, n, length))


# -- the stream -----------------------------------------------------------------------------------


class MomentStream:
    """Collects the moments of one regime from chunks of rows; see `Moments.from_stream`.

    Missing, infinite and too large values raise an `InputError`, in `add` or in `summaries`;
    afterwards the stream cannot be used.

    Parameters
    ----------
    n_features : int
    parts : bool or int
        Also keep the moments of consecutive stretches of the rows: at most this many, 2 or more;
        `MOST_PARTS` if True.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.regime import Moments
    >>> from jigsaw_crl.moments.stream import MomentStream
    >>> stream = MomentStream(2)
    >>> stream.add(np.array([[0.0, 1.0]]))
    >>> stream.add(np.array([[2.0, 1.0]], dtype=np.float32))
    >>> Moments.from_stream(stream).covariance.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, n_features: int, *, parts: bool | int = False) -> None:
        self.n_features = n_features
        self.groups: int | None = None  # see `GroupedStream`
        # See `incomplete`: number of latents, if known, and what missing values cost.
        self.rank: int | None = None
        self.incomplete: Incomplete | None = None
        self.left_out = 0  # rows that lay farthest out; see `TrimmedStream`
        self._block = block_rows(n_features)
        self._waiting = np.empty((0, n_features))
        self._filled = 0
        self._sums = _RunningSums(n_features)
        self._most = MOST_PARTS if parts is True else int(parts)
        self._stretches = _Stretches(n_features, self._most) if parts else None

    @classmethod
    def over(cls, rows: npt.NDArray[np.generic], *, parts: bool | int = False) -> MomentStream:
        """A stream that has received `rows`; it copies no rows, so they must not change."""
        stream = cls(rows.shape[1], parts=parts)
        if not _summable_in_place(rows):
            stream.add(rows)
            return stream
        whole = len(rows) - len(rows) % stream._block
        stream.add(rows[:whole])
        stream._waiting, stream._filled = rows[whole:], len(rows) - whole
        return stream

    @property
    def n(self) -> int:
        """Number of rows so far."""
        return self._sums.n + self._filled

    def add(self, rows: ArrayLike) -> None:
        """Add rows, shape (any, n_features); float32 rows are summed in float64."""
        x = np.asarray(rows)
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise InputError(
                f"rows of shape {x.shape} in a stream of {self.n_features} features",
                "Pass matrices with one column per feature.",
            )
        in_place = _summable_in_place(x)
        # Buffers are not kept between calls: a table can have thousands of streams.
        work: _Workspace | None = None
        start = 0
        while start < len(x):
            taken = x[start : start + self._block - self._filled]
            start += len(taken)
            whole = in_place and len(taken) == self._block
            if not whole:
                self._wait(taken)
                if self._filled < self._block:
                    continue
            work = work or _Workspace(self._block, self.n_features)
            self._filled = 0
            full = taken if whole else self._waiting
            _sum(full, work, self._sums, self._stretches)

    def _wait(self, rows: npt.NDArray[np.generic]) -> None:
        """Keep rows until a block is full."""
        needed = self._filled + len(rows)
        if needed > len(self._waiting):
            # Doubling the buffer keeps it small for regimes with few rows.
            size = min(self._block, max(needed, 2 * len(self._waiting), 64))
            grown = np.empty((size, self.n_features))
            grown[: self._filled] = self._waiting[: self._filled]
            self._waiting = grown
        self._waiting[self._filled : needed] = rows
        self._filled = needed

    def summaries(self) -> tuple[Summary, tuple[Summary, ...]]:
        """Summary of all rows so far and of their stretches; the stream can be continued."""
        if self.n == 0:
            raise InputError("there are no rows", "Add rows before asking for their moments.")
        sums, stretches, rows = self._sums, self._stretches, self._waiting[: self._filled]
        if sums.n == 0:
            check_values(rows)
            if stretches is None:
                return _summary_of_few(rows), ()
            parts = _stretches_of_few(rows, self._most)
            return reduce(Summary.merge, parts), parts
        if self._filled:
            sums, stretches = sums.copy(), stretches and stretches.copy()
            _sum(rows, _Workspace(len(rows), self.n_features), sums, stretches)
        return sums.summary(), () if stretches is None else stretches.summaries()


def _sum(
    rows: FloatArray, work: _Workspace, sums: _RunningSums, stretches: _Stretches | None
) -> None:
    """Add a block of rows to the sums and to those of their stretches; each row is summed once."""
    if stretches is None:
        sums.add(_Block(rows, work))
        return
    for piece in stretches.pieces(rows):
        block = _Block(piece, work)
        sums.add(block)
        stretches.add(block)


def _summable_in_place(rows: npt.NDArray[np.generic]) -> TypeGuard[FloatArray]:
    """Can the compiled code read these rows? Others are copied first, block by block."""
    return rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned
