"""Sums of rows that arrive in chunks, in one pass and constant memory.

Rows are collected into blocks whose size depends only on the number of features, so the result does
not depend on how the rows were cut into chunks: a CSV file, a Parquet file and an array with the
same rows give the same moments to the last bit.

Each block is centred and summed, and its moments are merged with those before it.
All rows are taken relative to a typical first one, so a mean far from zero costs no precision.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import ArrayLike, FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.checks import as_numbers, check_values
from jigsaw_crl.moments.regime import MOST_PARTS, Moments, coarsened

__all__ = ["FEWEST_STRETCH_ROWS", "MOST_BLOCK_ROWS", "Sums", "block_rows", "few_parts", "sum_rows"]

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
FEWEST_STRETCH_ROWS = 16


def block_rows(n_features: int) -> int:
    """Number of rows in a block."""
    fitting = min(MOST_BLOCK_ROWS, _BLOCK_VALUES // max(n_features, 1))
    stretch = max(fitting // _STRETCHES_PER_BLOCK, -(-n_features // _STRETCHES_PER_BLOCK))
    return stretch * _STRETCHES_PER_BLOCK


def few_parts(n_features: int) -> int:
    """Number of stretches whose moments show how far moments vary: from 2 to `MOST_PARTS`."""
    return min(max(_PART_VALUES // max(n_features, 1) ** 2, 2), MOST_PARTS)


class Sums:
    """Moments of consecutive stretches of rows, which grow longer as rows arrive.

    When there are `most` of them, neighbours are merged, and from then on stretches are twice as
    long. Missing, infinite and too large values raise an `InputError`; afterwards the sums cannot
    be used.

    Parameters
    ----------
    n_features : int
    most : int
        The largest number of stretches, 2 or more; 0 for one stretch of all rows.
    """

    def __init__(self, n_features: int, most: int = 0) -> None:
        self.n_features, self.most = n_features, most
        self.n = 0
        # Rows that do not fill a block yet.
        self._waiting: list[FloatArray] = []
        self._filled = 0
        self._origin: FloatArray | None = None
        self._done: tuple[Moments, ...] = ()
        self._open: Moments | None = None
        # One full block at least is summed, so shorter stretches would be merged at once.
        self._rows = _stretch_rows(block_rows(n_features), n_features, most)

    def add(self, rows: ArrayLike) -> None:
        """Add rows, shape (any, n_features); float32 rows are summed in float64."""
        x = np.asarray(rows)
        if x.ndim != 2 or x.shape[1] != self.n_features:
            raise InputError(
                f"rows of shape {x.shape} where there are {self.n_features} features",
                "Pass matrices with one column per feature.",
            )
        self.n += len(x)
        block, start = block_rows(self.n_features), 0
        # Buffers are not kept between calls: a table can have thousands of regimes.
        work = np.empty((3, min(block, len(x) + self._filled), self.n_features))
        while start < len(x):
            taken = x[start : start + block - self._filled]
            start += len(taken)
            if len(taken) < block:
                self._waiting.append(np.array(taken, dtype=np.float64))
                self._filled += len(taken)
                if self._filled < block:
                    continue
                taken, self._waiting, self._filled = np.concatenate(self._waiting), [], 0
            self._take(taken, work)

    def _take(self, block: npt.NDArray[np.generic], work: FloatArray) -> None:
        """Sum a full block, in pieces that end where stretches end; `work` is overwritten."""
        if self._origin is None:
            self._origin = _typical(block)
        start = 0
        while start < len(block):
            piece = block[start : start + self._rows - ((self._open and self._open.n) or 0)]
            start += len(piece)
            own = _moments(piece, self._origin, work)
            self._open = own if self._open is None else self._open.merge(own)
            if (self._open.n or 0) < self._rows:
                continue
            self._done, self._open = (*self._done, self._open), None
            if len(self._done) == self.most:
                self._done = coarsened(self._done, self.most // 2)
                self._rows *= 2

    def moments(self) -> Moments:
        """Moments of all rows so far, with those of their stretches; more rows can be added."""
        if self.n == 0:
            raise InputError("there are no rows", "Add rows before asking for their moments.")
        rest = np.concatenate([np.empty((0, self.n_features)), *self._waiting])
        work = np.empty((3, *rest.shape))
        if self._origin is None:
            origin, length = _typical(rest), _stretch_rows(self.n, self.n_features, self.most)
            starts = range(0, self.n, length)
            found = [_moments(rest[k : k + length], origin, work) for k in starts]
        else:
            twin = Sums(self.n_features, self.most)
            vars(twin).update(vars(self))
            twin._take(rest, work)
            origin = self._origin
            found = [*twin._done, *([] if twin._open is None else [twin._open])]
        whole = reduce(Moments.merge, found)
        parts = tuple(m.moved(origin) for m in found) if self.most else ()
        return replace(whole.moved(origin), parts=parts)


def sum_rows(rows: ArrayLike, most: int) -> Moments:
    """Moments of rows in memory, and of at most so many stretches of them."""
    x = as_numbers(rows)
    # Sums stop at the first bad block; this message counts all bad values.
    check_values(x)
    sums = Sums(x.shape[1], most)
    sums.add(x)
    return sums.moments()


def _stretch_rows(n: int, n_features: int, most: int) -> int:
    """Rows per stretch when there are `n` in all: few, but with fewer than `most` full."""
    if not most:
        return sys.maxsize
    rows = block_rows(n_features) // _STRETCHES_PER_BLOCK
    while rows < FEWEST_STRETCH_ROWS or n // rows >= most:
        rows *= 2
    return rows


def _typical(rows: npt.NDArray[np.generic]) -> FloatArray:
    """The median of three rows; two of them lie within √n standard deviations of the mean."""
    few = np.array(rows[[0, len(rows) // 2, -1]], dtype=np.float64)
    return np.asarray(np.median(few, axis=0))


def _moments(rows: npt.NDArray[np.generic], origin: FloatArray, work: FloatArray) -> Moments:
    """Moments of the rows less `origin`; `work` has room for three times as many."""
    n = len(rows)
    x, squares, powers = work[:, :n]
    x[:] = rows
    check_values(x)
    x -= origin
    # A product with ones is faster than a sum, and loses fewer digits.
    ones = np.ones(n)
    mean = ones @ x / n
    x -= mean
    mean += ones @ x / n  # what rounding left
    np.multiply(x, x, out=squares)
    third = ones @ np.multiply(squares, x, out=powers) / n
    fourth = ones @ np.multiply(squares, squares, out=powers) / n
    return Moments(n, mean, x.T @ x / n, third, fourth)
