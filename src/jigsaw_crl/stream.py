"""Moments of rows that arrive in chunks, in one pass and constant memory.

Rows are gathered into blocks whose size depends on the number of features alone, so the result does
not depend on how the rows were cut into chunks: a CSV file, a Parquet file and an array in memory
with the same rows give the same moments to the last bit.

Each block is summed about its own mean and merged into the sums so far. With `n_a` rows before and
`n_b` in the block, `δ = μ_b − μ_a` and `n = n_a + n_b`,

    M₂ ← M₂ + M₂ᵇ + δδᵀ n_a n_b / n

and likewise for the third and fourth powers of each feature. No large numbers are subtracted, so a
mean far from zero costs nothing; each sum carries its rounding error along (compensated
summation), so a billion rows cost no digits either.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.errors import InputError
from jigsaw_crl.moments import MOST_PARTS, Moments, coarsened

__all__ = ["MomentStream", "block_rows"]

FloatArray = npt.NDArray[np.float64]

# A block of 2**17 numbers (1 MB) stays in a core's cache; beyond 362 features a block has as many
# rows as features, so that the update of the d-by-d sums never costs more than the product.
_BLOCK_VALUES = 1 << 17
_MOST_BLOCK_ROWS = 8192


def block_rows(n_features: int) -> int:
    """Rows in a block."""
    return max(min(_MOST_BLOCK_ROWS, _BLOCK_VALUES // max(n_features, 1)), n_features)


class _Sum:
    """A sum of arrays that carries its rounding error along (Knuth's two-sum)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.value = np.zeros(shape)
        self._error = np.zeros(shape)

    def add(self, term: FloatArray) -> None:
        total = self.value + term
        back = total - self.value
        self._error += (self.value - (total - back)) + (term - back)
        self.value = total

    def result(self) -> FloatArray:
        return self.value + self._error


class _Sums:
    """Sums of powers about the running mean."""

    def __init__(self, n_features: int) -> None:
        self.n = 0
        self.mean = _Sum((n_features,))
        self.second = _Sum((n_features, n_features))
        self.third = _Sum((n_features,))
        self.fourth = _Sum((n_features,))

    def add(self, block: _Block) -> None:
        na, nb = self.n, block.n
        n = na + nb
        if na == 0:
            self.mean.add(block.mean)
            self.second.add(block.second)
            self.third.add(block.third)
            self.fourth.add(block.fourth)
            self.n = n
            return
        here, there = na / n, nb / n
        shift = block.mean - self.mean.result()
        va, vb = np.diagonal(self.second.result()), np.diagonal(block.second)
        t3 = self.third.result()
        weight = here * nb
        self.fourth.add(
            block.fourth
            + weight * (here * here - here * there + there * there) * shift**4
            + 6 * shift**2 * (here * here * vb + there * there * va)
            + 4 * shift * (here * block.third - there * t3)
        )
        self.third.add(
            block.third + weight * (here - there) * shift**3 + 3 * shift * (here * vb - there * va)
        )
        self.second.add(block.second + weight * np.outer(shift, shift))
        self.mean.add(there * shift)
        self.n = n

    def moments(self, parts: tuple[Moments, ...] = ()) -> Moments:
        n = self.n
        return Moments(
            n,
            self.mean.result(),
            self.second.result() / n,
            self.third.result() / n,
            self.fourth.result() / n,
            parts,
        )


class _Block:
    """Sums of powers of one block about its own mean.

    Powers are first summed about a typical value of the block (the median of three rows), which
    takes the place of the mean in one pass: `Σ(x−μ)² = Σx² − nμ²` and so on. Two of the three rows
    lie within √n standard deviations, so few digits can cancel, and a constant gives exactly 0.
    """

    def __init__(self, rows: npt.NDArray[np.generic]) -> None:
        n = self.n = rows.shape[0]
        typical = np.median(np.asarray(rows[[0, n // 2, n - 1]], dtype=np.float64), axis=0)
        # Always float64 in columns: sums then run in the same order whatever the rows' layout.
        x = np.empty(rows.shape, order="F")
        np.subtract(rows, typical, out=x)
        mu = x.sum(axis=0) / n
        product = x.T @ x
        q2 = np.diagonal(product)
        squares = x * x
        q3 = np.einsum("ij,ij->j", squares, x)
        q4 = np.einsum("ij,ij->j", squares, squares)
        self.mean = typical + mu
        self.second = product - n * np.outer(mu, mu)
        self.third = q3 - 3 * mu * q2 + 2 * n * mu**3
        self.fourth = q4 - 4 * mu * q3 + 6 * mu**2 * q2 - 3 * n * mu**4


class MomentStream:
    """Moments of one regime, row chunk by row chunk.

    Parameters
    ----------
    n_features : int
    parts : bool
        Also keep the moments of consecutive stretches of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.stream import MomentStream
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
        start = 0
        while start < x.shape[0]:
            room = self._block - self._filled
            if self._filled == 0 and x.shape[0] - start >= self._block:
                # A whole block is at hand: no need to copy it first.
                self._take(x[start : start + self._block])
                start += self._block
                continue
            taken = x[start : start + room]
            self._wait(taken)
            start += len(taken)

    def _wait(self, rows: npt.NDArray[np.generic]) -> None:
        needed = self._filled + len(rows)
        if needed > len(self._waiting):
            # Grow by doubling: a regime of forty rows should not reserve a whole block.
            size = min(self._block, max(needed, 2 * len(self._waiting), 64))
            # In columns, as blocks are: copies then run along memory.
            grown = np.empty((size, self.n_features), order="F")
            grown[: self._filled] = self._waiting[: self._filled]
            self._waiting = grown
        self._waiting[self._filled : needed] = rows
        self._filled = needed
        if self._filled == self._block:
            self._take(self._waiting)
            self._filled = 0

    def _take(self, rows: npt.NDArray[np.generic]) -> None:
        block = _Block(rows)
        self._sums.add(block)
        if self._stretches is not None:
            self._stretches.add(rows, block)

    def moments(self) -> Moments:
        """Moments of all rows so far; the stream may go on afterwards."""
        if self.n == 0:
            raise InputError("there are no rows", "Add rows before asking for their moments.")
        sums = _copy(self._sums)
        stretches = self._stretches
        rows = self._waiting[: self._filled]
        if self._filled:
            block = _Block(rows)
            sums.add(block)
            if stretches is not None:
                stretches = stretches.copy()
                stretches.add(rows, block)
        return sums.moments() if stretches is None else sums.moments(stretches.parts())


class _Stretches:
    """Moments of consecutive stretches of rows, coarser and coarser as rows arrive.

    Stretches start short, at 1/64 of a block; when there are `MOST_PARTS` of them, neighbours are
    merged and stretches are twice as long from then on.
    """

    def __init__(self, n_features: int) -> None:
        self._n_features = n_features
        self._rows = max(block_rows(n_features) // 64, 16)
        self._done: tuple[Moments, ...] = ()
        self._open = _Sums(n_features)

    def add(self, rows: npt.NDArray[np.generic], block: _Block) -> None:
        start = 0
        while start < len(rows):
            taken = rows[start : start + self._rows - self._open.n]
            start += len(taken)
            self._open.add(block if len(taken) == len(rows) else _Block(taken))
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
        twin._open = _copy(self._open)
        return twin


def _copy(sums: _Sums) -> _Sums:
    # `_Sum.add` never writes into the arrays it replaces except the error term.
    twin = _Sums.__new__(_Sums)
    twin.n = sums.n
    for name in ("mean", "second", "third", "fourth"):
        source: _Sum = getattr(sums, name)
        copied = _Sum.__new__(_Sum)
        copied.value = source.value
        copied._error = source._error.copy()
        setattr(twin, name, copied)
    return twin
