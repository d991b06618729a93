"""The leading directions of a wide table, from one pass over its rows and without an m × m matrix.

For rows x in cells c (a regime, or a batch of it) with means μ_c, the pass accumulates

    Y = S Ω ,   S = Σ_c Σ_{x in c} (x − μ_c)(x − μ_c)ᵀ ,   Ω of shape (m, k) ,

and the diagonal of S. From these the Nyström approximation `S ≈ Y (ΩᵀY)⁻¹ Yᵀ` has the leading
eigenvectors of S (Halko, Martinsson and Tropp 2011). A random Ω alone would mix much noise into
them: with eigenvalues λ of the signal and σ² of the noise, the angle is about (σ²/λ)·√(m/(k − p)).
So Ω is replaced along the way, each time the rows have doubled, by the directions found so far, and
Y by the approximation times the new Ω. Each exchange multiplies the angle by σ²/λ, as a step of the
power method would, but without another pass.

Products are in single precision: their errors turn the directions by about a millionth. The moments
are summed later, in double precision, in whatever directions were chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.scatter import Scatter, most_visible, noise_of, visible_in
from jigsaw_crl.moments.checks import LARGEST_VALUE, check_values

__all__ = ["ColumnSketch"]

# Directions beyond those that are wanted: at least this many, and half as many as wanted.
SPARE = 16
# Rows before the random directions are first replaced.
FIRST_ROWS = 512
# The share of the rows that must have met the last Ω, for them to be used alone.
LATE = 0.2
# Rows whose spread gives the unit of each column in the first Ω.
UNIT_ROWS = 64
# Rows that are multiplied at a time: few enough for the cache, many enough for fast products.
BLOCK_ROWS = 512
# Directions whose share of ΩᵀY (scaled to a unit diagonal) is lower are rounding errors.
ROUNDING = 1e-6
# Single precision serves columns whose spread is between the first two of these, and whose mean is
# at most this many times their spread; from other means that of the first rows is subtracted.
NARROWEST, WIDEST, FAR = 1e-12, 1e12, 30.0


class ColumnSketch:
    """Collects Y and the variances of the columns from chunks of rows, in O(m·k) memory.

    Missing, infinite and too large values raise an `InputError`.

    Parameters
    ----------
    n_columns : int
    wanted : int
        Number of leading directions; `want` asks for more.
    grows : bool
        Follow further directions that stand out of the noise, up to `most_visible`.
    seed : int
        Of Ω: the same rows in the same chunks give the same sketch.

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.client.sketch import ColumnSketch
    >>> rng = np.random.default_rng(0)
    >>> mixing = rng.normal(size=(3, 100))
    >>> sketch = ColumnSketch(100, wanted=3)
    >>> sketch.add(rng.normal(size=(400, 3)) @ mixing, np.zeros(400, dtype=int))
    >>> vectors = sketch.scatter().leading(np.ones(100)).vectors[:, :3]
    >>> bool(np.abs(mixing - mixing @ vectors @ vectors.T).max() < 1e-4)
    True
    """

    def __init__(self, n_columns: int, *, wanted: int, grows: bool = False, seed: int = 0) -> None:
        self.n_columns, self.n_rows = n_columns, 0
        # Degrees of freedom, since Ω was last replaced and before.
        self._degrees = self._degrees_before = 0
        self.wanted = self.wanted_least = wanted
        self.grows = grows
        self._random = np.random.default_rng(seed)
        self._next = FIRST_ROWS
        self._kind: npt.DTypeLike = np.float32
        self._origin: FloatArray | None = None
        self._omega: npt.NDArray[np.floating] = np.empty((n_columns, 0))
        # Y and the diagonal of S since Ω was last replaced, and those of the rows before.
        self._image = self._carried = np.empty((n_columns, 0))
        self._squares, self._earlier = np.zeros((2, n_columns))
        # Rows and mean of each cell.
        self._sizes: list[int] = []
        self._means: list[FloatArray] = []

    def want(self, count: int) -> None:
        """Ask for more leading directions, from the next exchange on."""
        self.wanted_least = max(self.wanted_least, count)
        self.wanted = max(self.wanted, count)

    # -- rows -----------------------------------------------------------------------------------

    def add(self, rows: Any, cells: IntArray) -> None:
        """Add rows, shape (any, m), dense or a scipy CSR matrix; `cells` numbers their cells."""
        order = np.argsort(cells, kind="stable") if (np.diff(cells) < 0).any() else None
        for start in range(0, len(cells), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            chosen = part if order is None else order[part]
            self._add_block(rows[chosen], cells[chosen])

    def _add_block(self, rows: Any, cells: IntArray) -> None:
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        sizes = np.diff(starts, append=len(cells))
        sparse = hasattr(rows, "toarray")
        if self.n_rows == 0:
            self._begin(rows, sparse=sparse)
        means = self._add_sparse(rows, sizes) if sparse else self._add_dense(rows, sizes)
        before = len(self._sizes)
        own = zip(cells[starts].tolist(), sizes.tolist(), means, strict=True)
        # The first piece of a cell adds nothing between pieces.
        between = np.array([x for piece in own if (x := self._joined(*piece)) is not None])
        if len(between):
            squares = np.einsum("ij,ij->j", between, between)
            fit = self._kind if float(squares.max()) < WIDEST**2 else np.float64
            self._add_products(between.astype(fit, copy=False), squares)
        self.n_rows += len(cells)
        # The first piece of a cell has one degree of freedom less than rows.
        self._degrees += len(cells) - (len(self._sizes) - before)
        if self.n_rows >= self._next:
            self._next = 2 * self.n_rows
            self._exchange()

    def _begin(self, rows: Any, *, sparse: bool) -> None:
        """Choose the first Ω, in units of each column's spread in the first rows."""
        first = rows[:UNIT_ROWS]
        x = np.asarray(first.toarray() if sparse else first, dtype=np.float64)
        check_values(x)
        mean, spread = x.mean(axis=0), x.std(axis=0)
        known = spread > 0
        units = np.where(known, spread, np.median(spread[known]) if known.any() else 1.0)
        if units.min() < NARROWEST or units.max() > WIDEST:
            self._kind = np.float64
        if not sparse and (np.abs(mean) > FAR * units).any():
            self._origin = mean
        random = self._random.standard_normal((self.n_columns, self._width()))
        self._omega = (random / units[:, None]).astype(self._kind)
        self._image, self._carried = np.zeros((2, *random.shape))

    def _add_dense(self, rows: npt.NDArray[np.number], sizes: IntArray) -> FloatArray:
        """Add rows about the mean of each piece; returns the means, less the origin."""
        x = self._about_origin(rows, self._kind)
        means, squares = _centre(x, sizes)
        if not np.isfinite(squares).all() and self._kind == np.float32:
            x = self._about_origin(rows, np.float64)
            means, squares = _centre(x, sizes)
        if not float(squares.max()) <= LARGEST_VALUE**2:
            check_values(rows)
        self._add_products(x, squares)
        return means

    def _about_origin(
        self, rows: npt.NDArray[np.number], kind: npt.DTypeLike
    ) -> npt.NDArray[np.floating]:
        with np.errstate(over="ignore"):
            return np.array(rows if self._origin is None else rows - self._origin, dtype=kind)

    def _add_sparse(self, rows: Any, sizes: IntArray) -> FloatArray:
        """Add rows of a sparse matrix, Σ x xᵀ − n μ μᵀ of each piece: zeros are not filled in."""
        # Imported here for start-up time.
        from scipy.sparse import csr_matrix

        check_values(rows.data)
        x, n = rows.astype(np.float64), int(sizes.sum())
        pieces = np.append(0, np.cumsum(sizes))
        sums = (csr_matrix((np.ones(n), np.arange(n), pieces), (len(sizes), n)) @ x).toarray()
        means = np.asarray(sums / sizes[:, None])
        squares = np.asarray(x.multiply(x).sum(axis=0)).ravel()
        squares -= np.einsum("ij,ij->j", sums, means)
        omega = self._omega.astype(np.float64)
        self._image += x.T @ (x @ omega) - sums.T @ (means @ omega)
        self._squares += squares
        return means

    def _add_products(self, x: npt.NDArray[np.floating], squares: FloatArray) -> None:
        self._squares += squares
        self._image += x.T @ (x @ self._omega.astype(x.dtype, copy=False))

    def _joined(self, cell: int, n: int, mean: FloatArray) -> FloatArray | None:
        """Add a piece to its cell; `√(n_a n_b/n) (μ_b − μ_a)`, which their scatters lack."""
        while len(self._sizes) <= cell:
            self._sizes.append(0)
            self._means.append(np.zeros(self.n_columns))
        before, total = self._sizes[cell], self._sizes[cell] + n
        shift = mean - self._means[cell]
        self._sizes[cell] = total
        self._means[cell] += shift * (n / total)
        return np.asarray(shift * np.sqrt(before * n / total)) if before else None

    # -- Ω and Y --------------------------------------------------------------------------------

    def _width(self) -> int:
        return min(self.wanted + max(SPARE, self.wanted // 2), self.n_columns)

    def _exchange(self) -> None:
        """Replace Ω by the directions found so far, and Y by the approximation times it."""
        found = self.scatter()
        use, most = found.squares > 0, most_visible(self.wanted_least)
        noise, top = noise_of(found, use, self.wanted_least, most)
        if self.grows:
            self.wanted = max(self.wanted, min(visible_in(found, top, noise, use), most))
        omega = top.vectors
        missing = self._width() - omega.shape[1]
        if missing > 0:
            fresh = self._random.standard_normal((self.n_columns, missing))
            omega = np.hstack([omega, fresh / np.sqrt(self.n_columns)])
        self._omega = (omega / np.sqrt(noise)[:, None]).astype(self._kind)
        self._carried = found.half @ (found.half.T @ self._omega)
        self._earlier, self._degrees_before = found.squares, found.degrees
        self._image, self._squares = np.zeros(omega.shape), np.zeros(self.n_columns)
        self._degrees = 0

    def _half(self, image: FloatArray) -> FloatArray:
        """H of shape (m, k) with `H Hᵀ = Y (ΩᵀY)⁻¹ Yᵀ`."""
        inner = self._omega.T.astype(np.float64) @ image
        size = np.sqrt(np.maximum(np.diagonal(inner), 0.0))
        scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        values, vectors = np.linalg.eigh(scale[:, None] * (inner + inner.T) / 2 * scale)
        kept = values > ROUNDING * max(float(values[-1]), 0.0)
        return np.asarray(image @ (scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])))

    # -- what was found -------------------------------------------------------------------------

    def scatter(self) -> Scatter:
        """The scatter of all rows."""
        half = self._half(self._image + self._carried)
        return Scatter(half, self._squares + self._earlier, self._degrees + self._degrees_before)

    def late_scatter(self) -> Scatter | None:
        """That of the rows since Ω was last replaced, if they are a good part of all.

        It is closer: earlier rows met a worse Ω, which lost some of their signal.
        """
        if self._degrees < LATE * (self._degrees + self._degrees_before):
            return None
        return Scatter(self._half(self._image), self._squares, self._degrees)

    def rows_of(self, cells: list[int]) -> int:
        """Number of rows of some cells."""
        return sum(self._sizes[c] for c in cells)

    def mean(self, cells: list[int]) -> FloatArray:
        """Mean of the rows of some cells, in single precision."""
        sizes = np.array([self._sizes[c] for c in cells], dtype=np.float64)
        mean = sizes @ np.array([self._means[c] for c in cells]) / sizes.sum()
        return np.asarray(mean if self._origin is None else mean + self._origin)

    def constant(self) -> BoolArray:
        """Columns that have one value in all rows, as far as single precision tells."""
        means = np.array([m for m, n in zip(self._means, self._sizes, strict=True) if n])
        return np.asarray((self._squares + self._earlier <= 0) & (np.ptp(means, axis=0) == 0))


def _centre(x: npt.NDArray[np.floating], sizes: IntArray) -> tuple[FloatArray, FloatArray]:
    """Take the mean of each piece off its rows, in place; the means, and the sums of squares."""
    means = np.empty((len(sizes), x.shape[1]))
    end = 0
    with np.errstate(over="ignore", invalid="ignore"):
        for i, size in enumerate(sizes.tolist()):
            start, end = end, end + size
            # A product with ones is faster than a sum.
            mean = np.ones(size, dtype=x.dtype) @ x[start:end] / size
            x[start:end] -= mean
            means[i] = mean
        return means, np.einsum("ij,ij->j", x, x)
