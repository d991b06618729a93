"""Moments of rows that arrive in chunks, in one pass and constant memory.

Rows are gathered into blocks whose size depends on the number of features alone, so the result does
not depend on how the rows were cut into chunks: a CSV file, a Parquet file and an array in memory
with the same rows give the same moments to the last bit.

Each block is summed about a typical value of its own and merged into the sums so far, about the
mean of both. With `n_a` rows before and `n_b` in the block, `δ = μ_b − μ_a` and `n = n_a + n_b`,

    M₂ ← M₂ + M₂ᵇ + δδᵀ n_a n_b / n

and likewise for the third and fourth powers of each feature. No large numbers are subtracted, so a
mean far from zero costs nothing; each sum carries its rounding error along (compensated
summation), so a billion rows cost no digits either.

A block is read from memory once: compiled code shifts it into a buffer that stays in a core's
cache, where the matrix product finds it. Fewer rows than fill one block are summed without: the
compiler takes longer to load than they do.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.regime import LARGEST_VALUE, MOST_PARTS, Moments, check_values, coarsened

__all__ = ["MomentStream", "block_rows", "moments_of"]

FloatArray = npt.NDArray[np.float64]

# A block of 2**17 numbers (1 MB) stays in a core's cache; from some 350 features on a block has as
# many rows as features, so that the update of the d-by-d sums never costs more than the product.
_BLOCK_VALUES = 1 << 17
_MOST_BLOCK_ROWS = 8192
# A block is this many times as long as the shortest stretch of rows whose moments are kept.
# Stretches double, so their ends come to be ends of blocks.
_STRETCHES = 64
_FEWEST_ROWS = 16

# Short rows are summed end to end, several at a time: a loop over eight numbers spends its time on
# starting and stopping.
_LONG_ROW = 256

# When a typical value and all distances from it are below a tenth of the largest value allowed, so
# are the values: the sums show it without another look at the rows.
_TAME = LARGEST_VALUE / 10


def block_rows(n_features: int) -> int:
    """Rows in a block."""
    fitting = min(_MOST_BLOCK_ROWS, _BLOCK_VALUES // max(n_features, 1))
    return max(fitting // _STRETCHES, -(-n_features // _STRETCHES)) * _STRETCHES


class _Workspace:
    """Buffers for one block after another."""

    def __init__(self, n: int, n_features: int) -> None:
        # Compiled code waits for the first full block.
        from jigsaw_crl.moments.power_sums import add_powers

        self.add_powers = add_powers
        self.together = k = max(_LONG_ROW // max(n_features, 1), 1)
        self.shifted = np.empty((n, n_features))
        self.product = np.empty((n_features, n_features))
        self.typical = np.empty((k, n_features))
        self.sums = np.empty((3, k, n_features))


class _Block:
    """Sums of powers of one block about a typical value, the median of three rows.

    From these follow the sums about the block's own mean: `Σ(x−μ)² = Σx² − nμ²` and so on. Two of
    the three rows lie within √n standard deviations, so few digits can cancel, and a constant gives
    exactly 0.

    The product is the workspace's: it holds until the next block.
    """

    def __init__(self, rows: FloatArray, work: _Workspace) -> None:
        n, d = rows.shape
        shifted, k = work.shifted[:n], work.together
        even = n - n % k
        long_rows = (even // k, k * d)
        typical = _median(rows[0], rows[n // 2], rows[n - 1])
        work.typical[:] = typical
        work.sums.fill(0)
        work.add_powers(
            rows[:even].reshape(long_rows),
            work.typical.reshape(k * d),
            shifted[:even].reshape(long_rows),
            work.sums.reshape(3, k * d),
        )
        sums = np.add.reduce(work.sums, axis=1)
        if even < n:
            work.add_powers(rows[even:], typical, shifted[even:], sums)
        # Not the other way round: no comparison with nan holds.
        tame = np.maximum.reduce(abs(typical), initial=0) <= _TAME
        if not (tame and np.maximum.reduce(sums[2], initial=0) <= _TAME**4):
            check_values(rows)
        self.n = n
        self.typical = typical
        self.sums = sums
        self.product = np.matmul(shifted.T, shifted, out=work.product)


def _ready(rows: npt.NDArray[np.generic]) -> TypeGuard[FloatArray]:
    """Can rows be summed where they are? Others are copied first, block by block."""
    return rows.dtype == np.float64 and rows.flags.c_contiguous and rows.flags.aligned


def _median(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """The median of three rows; nan where one of them is."""
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


class _Sums:
    """Sums of powers about the running mean, each with its rounding error.

    Means are counted from the first block's typical value: where they are far from zero, the
    distance between two of them has digits that neither has.
    """

    def __init__(self, n_features: int) -> None:
        self.n = 0
        self._origin = np.zeros(n_features)
        self._vectors = np.zeros((2, 3, n_features))
        self._seconds = np.zeros((2, n_features, n_features))

    def add(self, block: _Block) -> None:
        from jigsaw_crl.moments.power_sums import merge_block

        if self.n == 0:
            self._origin = block.typical
        mean = block.sums[0] / block.n
        so_far = self._vectors[0, 0] + self._vectors[1, 0]
        shift = (block.typical - self._origin) - so_far + mean
        merge_block(
            self.n, block.n, mean, shift, block.sums, block.product, self._vectors, self._seconds
        )
        self.n += block.n

    def moments(self, parts: tuple[Moments, ...] = ()) -> Moments:
        n = self.n
        mean, third, fourth = self._vectors[0] + self._vectors[1]
        covariance = (self._seconds[0] + self._seconds[1]) / n
        return Moments(n, self._origin + mean, covariance, third / n, fourth / n, parts)

    def copy(self) -> _Sums:
        twin = _Sums.__new__(_Sums)
        twin.n, twin._origin = self.n, self._origin
        twin._vectors, twin._seconds = self._vectors.copy(), self._seconds.copy()
        return twin


class MomentStream:
    """Moments of one regime, row chunk by row chunk.

    Values that are missing, infinite or too large for their fourth powers are refused with an
    `InputError`, by `add` or by `moments`; a stream that refused rows is of no further use.

    Parameters
    ----------
    n_features : int
    parts : bool
        Also keep the moments of consecutive stretches of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.moments.stream import MomentStream
    >>> stream = MomentStream(2)
    >>> stream.add(np.array([[0.0, 1.0]]))
    >>> stream.add(np.array([[2.0, 1.0]], dtype=np.float32))
    >>> stream.moments().covariance.tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self, n_features: int, *, parts: bool = False) -> None:
        self.n_features = n_features
        self._block = block_rows(n_features)
        self._waiting = np.empty((0, n_features))
        self._filled = 0
        self._sums = _Sums(n_features)
        self._stretches = _Stretches(n_features) if parts else None

    @property
    def n(self) -> int:
        """Rows so far."""
        return self._sums.n + self._filled

    def add(self, rows: npt.ArrayLike) -> None:
        """Add rows, shape (any, n_features); float32 rows are summed in float64."""
        x = np.asarray(rows)
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise InputError(
                f"rows of shape {x.shape} in a stream of {self.n_features} features",
                "Pass matrices with one column per feature.",
            )
        ready = _ready(x)
        # Buffers are not kept between calls: a table can have thousands of streams.
        work: _Workspace | None = None
        start = 0
        while start < len(x):
            taken = x[start : start + self._block - self._filled]
            start += len(taken)
            whole = ready and len(taken) == self._block
            if not whole:
                self._wait(taken)
                if self._filled < self._block:
                    continue
            work = work or _Workspace(self._block, self.n_features)
            self._filled = 0
            self._take(taken if whole else self._waiting, work)

    def _wait(self, rows: npt.NDArray[np.generic]) -> None:
        needed = self._filled + len(rows)
        if needed > len(self._waiting):
            # Grow by doubling: a regime of forty rows should not reserve a whole block.
            size = min(self._block, max(needed, 2 * len(self._waiting), 64))
            grown = np.empty((size, self.n_features))
            grown[: self._filled] = self._waiting[: self._filled]
            self._waiting = grown
        self._waiting[self._filled : needed] = rows
        self._filled = needed

    def _take(self, rows: FloatArray, work: _Workspace) -> None:
        block = _Block(rows, work)
        self._sums.add(block)
        if self._stretches is not None:
            self._stretches.add(rows, block, work)

    def moments(self) -> Moments:
        """Moments of all rows so far; the stream may go on afterwards."""
        if self.n == 0:
            raise InputError("there are no rows", "Add rows before asking for their moments.")
        sums, stretches, rows = self._sums, self._stretches, self._waiting[: self._filled]
        if sums.n == 0:
            check_values(rows)
            return _of_few(rows, () if stretches is None else _stretches_of_few(rows))
        if self._filled:
            work = _Workspace(len(rows), self.n_features)
            block = _Block(rows, work)
            sums = sums.copy()
            sums.add(block)
            if stretches is not None:
                stretches = stretches.copy()
                stretches.add(rows, block, work)
        return sums.moments(() if stretches is None else stretches.parts())


def moments_of(rows: npt.NDArray[np.generic], *, parts: bool) -> Moments:
    """Moments of a matrix in memory: those of a stream, to the last bit."""
    stream = MomentStream(rows.shape[1], parts=parts)
    if _ready(rows):
        end = len(rows) - len(rows) % stream._block
        stream.add(rows[:end])
        # The rest waits where it is: neither will it change nor do other rows come.
        stream._waiting, stream._filled = rows[end:], len(rows) - end
    else:
        stream.add(rows)
    return stream.moments()


class _Stretches:
    """Moments of consecutive stretches of rows, coarser and coarser as rows arrive.

    When there are `MOST_PARTS` of them, neighbours are merged and stretches are twice as long from
    then on. A full block has come before anything is asked, so they need not start shorter than
    that would leave them.
    """

    def __init__(self, n_features: int) -> None:
        self._n_features = n_features
        self._rows = _stretch_rows(block_rows(n_features), n_features)
        self._done: tuple[Moments, ...] = ()
        self._open = _Sums(n_features)

    def add(self, rows: FloatArray, block: _Block, work: _Workspace) -> None:
        start = 0
        while start < len(rows):
            taken = rows[start : start + self._rows - self._open.n]
            start += len(taken)
            self._open.add(block if len(taken) == len(rows) else _Block(taken, work))
            if self._open.n < self._rows:
                continue
            self._done += (self._open.moments(),)
            self._open = _Sums(self._n_features)
            if len(self._done) == MOST_PARTS:
                self._done = coarsened(self._done, MOST_PARTS // 2)
                self._rows *= 2

    def parts(self) -> tuple[Moments, ...]:
        return self._done + ((self._open.moments(),) if self._open.n else ())

    def copy(self) -> _Stretches:
        twin = _Stretches.__new__(_Stretches)
        twin.__dict__.update(self.__dict__)
        twin._open = self._open.copy()
        return twin


def _stretch_rows(n: int, n_features: int) -> int:
    """Rows in a stretch when there are `n` in all: short, but fewer than `MOST_PARTS` are full."""
    rows = block_rows(n_features) // _STRETCHES
    while rows < _FEWEST_ROWS or n // rows >= MOST_PARTS:
        rows *= 2
    return rows


def _stretches_of_few(rows: FloatArray) -> tuple[Moments, ...]:
    """The stretches of rows that fill no block."""
    n = len(rows)
    length = _stretch_rows(n, rows.shape[1])
    return tuple(_of_few(rows[start : start + length]) for start in range(0, n, length))


def _of_few(rows: FloatArray, parts: tuple[Moments, ...] = ()) -> Moments:
    """Moments of rows that fill no block."""
    n = len(rows)
    typical = _median(rows[0], rows[n // 2], rows[n - 1])
    x = rows - typical
    mean = x.sum(axis=0) / n
    x -= mean
    squares = x * x
    third = np.einsum("ij,ij->j", squares, x) / n
    fourth = np.einsum("ij,ij->j", squares, squares) / n
    return Moments(n, typical + mean, x.T @ x / n, third, fourth, parts)
