"""The leading directions of a wide table, from one pass over its rows and without an m × m matrix.

For rows x in cells c (a regime, or a batch of it) with means μ_c, the pass accumulates

    Y = S Ω ,   S = Σ_c Σ_{x in c} (x − μ_c)(x − μ_c)ᵀ ,   Ω of shape (m, k) ,

and the diagonal of S. From these the Nyström approximation `S ≈ Y (ΩᵀY)⁻¹ Yᵀ = H Hᵀ` has the
leading eigenvectors of S (Halko, Martinsson and Tropp 2011). A random Ω alone would mix much noise
into them: with eigenvalues λ of the signal and σ² of the noise, the angle is about
(σ²/λ)·√(m/(k − p)). So Ω is replaced along the way, each time the rows have doubled, by the
directions found so far, and Y by the approximation times the new Ω. Each exchange multiplies the
angle by σ²/λ, as a step of the power method would, but without another pass.

Products are in single precision: their errors turn the directions by about a millionth. The moments
are summed later, in double precision, in whatever directions were chosen.

With `X = G Z + ε` and `Cov(ε) = Ψ` (diagonal), the covariance is `G Cov(Z) Gᵀ + Ψ`. Ψ is found as
in factor analysis: it is the variance of each column that r leading directions, in units of Ψ^½, do
not explain. r is the smallest number that leaves no direction with more variance than noise has
(`noise_edge`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.nulls import FALSE_ALARM, noise_edge
from jigsaw_crl.moments.checks import check_values

__all__ = ["BLOCK_ROWS", "ColumnSketch", "Fit", "Scatter", "most_visible"]

# The share of the rows that must have met the last Ω, for them to be used alone.
LATE = 0.2
# Directions beyond those that are wanted: at least this many, and half as many as wanted.
SPARE = 16
# Rows that are multiplied at a time: few enough for the cache, many enough for fast products. After
# so many the random directions are first replaced.
BLOCK_ROWS = 512
# The share of all variance that single precision cannot tell from none.
SINGLE = 1e-5
# Single precision serves columns whose spread lies between one over this and this.
WIDEST = 1e12
# Steps on Ψ, and the share of its sampling error (on a logarithmic scale) at which they end.
STEPS, SETTLED = 100, 0.2
# The least share of a column's variance that is noise: one without any would be all that counts.
LEAST_NOISE = 1e-4


def most_visible(labels: int) -> int:
    """Up to how many directions that stand out of the noise are followed."""
    return 2 * labels + 32


@dataclass(frozen=True, eq=False)
class Fit:
    """The noise of each column, and the leading directions in units of it.

    Parameters
    ----------
    noise : array, shape (m,)
        Ψ; 1 for columns without variance.
    values : array, shape (k,)
        Leading eigenvalues of the covariance in these units, largest first.
    vectors : array, shape (m, k)
        Their eigenvectors; orthonormal.
    visible : int
        How many of them stand out of the noise.
    """

    noise: FloatArray
    values: FloatArray
    vectors: FloatArray
    visible: int


@dataclass(frozen=True, eq=False)
class Scatter:
    """The scatter of the columns, approximately.

    Parameters
    ----------
    half : array, shape (m, k)
        H with `S ≈ H Hᵀ`.
    squares : array, shape (m,)
        The diagonal of S.
    degrees : int
        Degrees of freedom of S.
    """

    half: FloatArray
    squares: FloatArray
    degrees: int

    @property
    def variances(self) -> FloatArray:
        """Variance of each column within cells."""
        return np.asarray(np.maximum(self.squares, 0.0) / max(self.degrees, 1))

    def select(self, use: BoolArray) -> Scatter:
        """The same, with zeros for the columns that are not in use."""
        half, squares = np.where(use[:, None], self.half, 0.0), np.where(use, self.squares, 0.0)
        return Scatter(half, squares, self.degrees)

    def leading(self, noise: FloatArray) -> Fit:
        """Leading eigenpairs of the covariance within cells, each column divided by `√noise`."""
        half = self.half / np.sqrt(noise)[:, None]
        values, turn = np.linalg.eigh(half.T @ half)
        kept = values > np.finfo(np.float32).eps ** 2 * float(values[-1])
        vectors = half @ (turn[:, kept] / np.sqrt(values[kept]))[:, ::-1]
        values = values[kept][::-1] / max(self.degrees, 1)
        return Fit(noise, values, vectors, self._standing_out(values, noise))

    def _standing_out(self, values: FloatArray, noise: FloatArray) -> int:
        """How many of the leading eigenvalues exceed those of noise."""
        total, m = float(np.sum(self.variances / noise)), int((self.squares > 0).sum())
        beyond = total - np.append(0.0, np.cumsum(values))
        for r, value in enumerate(values.tolist()):
            level = max(float(beyond[r]), SINGLE * total) / max(m - r, 1)
            edge = noise_edge(max(m - r, 1), max(self.degrees - r, 1.0), FALSE_ALARM)
            if value <= level * edge:
                return r
        return len(values)

    def fitted(self, least: int, most: int) -> Fit:
        """Ψ with the fewest latents, from `least` on, that leave nothing above noise.

        With `most` of them, whatever they leave. Too many would explain noisy columns away.
        """
        found = self.leading(np.where(self.squares > 0, self.variances, 1.0))
        r = least
        while True:
            found = self._explained(found, r)
            if found.visible <= r or r >= most:
                return found
            r += 1

    def _explained(self, found: Fit, r: int) -> Fit:
        """Ψ that r directions do not explain, by repetition from what was found before."""
        variances, use = self.variances, self.squares > 0
        m, settled = int(use.sum()), SETTLED * np.sqrt(2 / max(self.degrees, 1))
        for _ in range(STEPS):
            own, before = found.values[:r], found.noise
            total = float(np.sum(variances / before))
            level = (total - float(own.sum())) / max(m - r, 1)
            if level * m <= SINGLE * total:
                return found
            explained = found.vectors[:, :r] ** 2 @ np.maximum(own - level, 0.0)
            left = np.clip(variances - before * explained, LEAST_NOISE * variances, variances)
            found = self.leading(np.where(use, left, 1.0))
            if float(np.abs(np.log(found.noise / before)).max()) < settled:
                return found
        return found


class ColumnSketch:
    """Collects Y and the variances of the columns from chunks of rows, in O(m·k) memory.

    Missing, infinite and too large values raise an `InputError`. The same rows in the same chunks
    give the same sketch.

    Parameters
    ----------
    n_columns : int
    wanted : int
        Number of leading directions; `want` asks for more.
    grows : bool
        Follow further directions that stand out of the noise, up to `most_visible`.

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

    def __init__(self, n_columns: int, *, wanted: int, grows: bool = False) -> None:
        self.n_columns, self.n_rows = n_columns, 0
        self.wanted = self.least = wanted
        self.grows = grows
        self._random = np.random.default_rng(0)
        self._next = BLOCK_ROWS
        self._kind: npt.DTypeLike = np.float32
        self._origin: FloatArray | float = 0.0
        self._omega: npt.NDArray[np.floating] = np.empty((n_columns, 0))
        # Y, the diagonal of S and its degrees of freedom since Ω was last replaced, and before.
        self._image = self._carried = np.empty((n_columns, 0))
        self._squares, self._earlier = np.zeros((2, n_columns))
        self._degrees = self._degrees_before = 0
        # Rows and mean of each cell, less the origin.
        self._sizes: list[int] = []
        self._means: list[FloatArray] = []

    def want(self, count: int) -> None:
        """Ask for more leading directions, from the next exchange on."""
        self.least, self.wanted = max(self.least, count), max(self.wanted, count)

    def add(self, rows: Any, cells: IntArray) -> None:
        """Add rows, shape (any, m), dense or a scipy CSR matrix; `cells` numbers their cells."""
        order = np.argsort(cells, kind="stable") if (np.diff(cells) < 0).any() else None
        for start in range(0, len(cells), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            chosen = part if order is None else order[part]
            self._add_block(rows[chosen], cells[chosen])

    def _add_block(self, rows: Any, cells: IntArray) -> None:
        sparse = hasattr(rows, "toarray")
        if self.n_rows == 0:
            self._begin(rows.toarray() if sparse else rows, sparse=sparse)
        starts = np.flatnonzero(np.diff(cells, prepend=-1))
        sizes = np.diff(starts, append=len(cells))
        means = (self._add_sparse if sparse else self._add_dense)(rows, sizes)
        between = []
        for cell, n, mean in zip(cells[starts].tolist(), sizes.tolist(), means, strict=True):
            between += self._joined(cell, n, mean)
        if between:
            steps = np.array(between)
            squares = np.einsum("ij,ij->j", steps, steps)
            fit = self._kind if float(squares.max()) < WIDEST**2 else np.float64
            self._add_products(steps.astype(fit, copy=False), squares)
        self.n_rows += len(cells)
        # The first piece of a cell has one degree of freedom less than rows.
        self._degrees += len(cells) - len(means) + len(between)
        if self.n_rows >= self._next:
            self._next = 2 * self.n_rows
            self._exchange()

    def _begin(self, first: npt.NDArray[np.number], *, sparse: bool) -> None:
        """Choose the first Ω, in units of each column's spread in the first rows."""
        check_values(first)
        mean, spread = first.mean(axis=0, dtype=np.float64), first.std(axis=0, dtype=np.float64)
        known = spread > 0
        units = np.where(known, spread, np.median(spread[known]) if known.any() else 1.0)
        if units.min() * WIDEST < 1 or units.max() > WIDEST:
            self._kind = np.float64
        self._origin = 0.0 if sparse else mean
        random = self._random.standard_normal((self.n_columns, self._width()))
        self._omega = (random / units[:, None]).astype(self._kind)
        self._image, self._carried = np.zeros((2, *random.shape))

    def _add_dense(
        self, rows: npt.NDArray[np.number], sizes: IntArray, kind: npt.DTypeLike | None = None
    ) -> FloatArray:
        """Add rows about the mean of each piece; returns the means, less the origin."""
        kind = kind or self._kind
        if kind == np.float64:
            check_values(rows)
        x, means, end = np.empty(rows.shape, kind), np.empty((len(sizes), rows.shape[1])), 0
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(rows, self._origin, out=x, casting="same_kind")
            for i, size in enumerate(sizes.tolist()):
                start, end = end, end + size
                # A product with ones is faster than a sum.
                mean = np.ones(size, kind) @ x[start:end] / size
                x[start:end] -= mean
                means[i] = mean
            squares = np.einsum("ij,ij->j", x, x)
        if not np.isfinite(squares).all():
            # Beyond single precision, or not numbers.
            return self._add_dense(rows, sizes, np.float64)
        self._add_products(x, squares)
        return means

    def _add_sparse(self, rows: Any, sizes: IntArray) -> FloatArray:
        """Add rows of a sparse matrix, Σ x xᵀ − n μ μᵀ of each piece: zeros are not filled in."""
        # Imported here for start-up time.
        from scipy.sparse import csr_matrix

        check_values(rows.data)
        x, n = rows.astype(np.float64), int(sizes.sum())
        pieces = np.append(0, np.cumsum(sizes))
        sums = (csr_matrix((np.ones(n), np.arange(n), pieces), (len(sizes), n)) @ x).toarray()
        means = np.asarray(sums / sizes[:, None])
        omega = self._omega.astype(np.float64)
        self._image += x.T @ (x @ omega) - sums.T @ (means @ omega)
        self._squares += np.asarray(x.multiply(x).sum(axis=0)).ravel()
        self._squares -= np.einsum("ij,ij->j", sums, means)
        return means

    def _add_products(self, x: npt.NDArray[np.floating], squares: FloatArray) -> None:
        self._squares += squares
        self._image += x.T @ (x @ self._omega.astype(x.dtype, copy=False))

    def _joined(self, cell: int, n: int, mean: FloatArray) -> list[FloatArray]:
        """Add a piece to its cell; `√(n_a n_b/n) (μ_b − μ_a)`, which their scatters lack."""
        while len(self._sizes) <= cell:
            self._sizes.append(0)
            self._means.append(np.zeros(self.n_columns))
        before, total = self._sizes[cell], self._sizes[cell] + n
        shift = mean - self._means[cell]
        self._sizes[cell] = total
        self._means[cell] += shift * (n / total)
        return [np.asarray(shift * np.sqrt(before * n / total))] if before else []

    def _width(self) -> int:
        return min(self.wanted + max(SPARE, self.wanted // 2), self.n_columns)

    def _exchange(self) -> None:
        """Replace Ω by the directions found so far, and Y by the approximation times it."""
        found, most = self.scatter(), most_visible(self.least)
        fit = found.fitted(self.least, most)
        if self.grows:
            self.wanted = max(self.wanted, min(fit.visible, most))
        omega = fit.vectors
        missing = self._width() - omega.shape[1]
        if missing > 0:
            fresh = self._random.standard_normal((self.n_columns, missing))
            omega = np.hstack([omega, fresh / np.sqrt(self.n_columns)])
        self._omega = (omega / np.sqrt(fit.noise)[:, None]).astype(self._kind)
        self._carried = found.half @ (found.half.T @ self._omega)
        self._earlier, self._degrees_before = found.squares, found.degrees
        self._image, self._squares = np.zeros(omega.shape), np.zeros(self.n_columns)
        self._degrees = 0

    def scatter(self) -> Scatter:
        """The scatter of all rows."""
        half = self._half(self._image + self._carried)
        return Scatter(half, self._squares + self._earlier, self._degrees + self._degrees_before)

    def late_scatter(self) -> Scatter:
        """That of the rows since Ω was last replaced, if they are a good part of all.

        It is closer: earlier rows met a worse Ω, which lost some of their signal.
        """
        if self._degrees < LATE * (self._degrees + self._degrees_before):
            return self.scatter()
        return Scatter(self._half(self._image), self._squares, self._degrees)

    def _half(self, image: FloatArray) -> FloatArray:
        """H of shape (m, k) with `H Hᵀ = Y (ΩᵀY)⁻¹ Yᵀ`."""
        inner = self._omega.T.astype(np.float64) @ image
        size = np.sqrt(np.maximum(np.diagonal(inner), 0.0))
        scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        values, vectors = np.linalg.eigh(scale[:, None] * (inner + inner.T) / 2 * scale)
        # Directions of a lower share are rounding errors of single precision.
        kept = values > 1e-6 * max(float(values[-1]), 0.0)
        return np.asarray(image @ (scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])))

    def rows_of(self, cells: list[int]) -> int:
        """Number of rows of some cells."""
        return sum(self._sizes[c] for c in cells)

    def mean(self, cells: list[int]) -> FloatArray:
        """Mean of the rows of some cells."""
        sizes = np.array([self._sizes[c] for c in cells], dtype=np.float64)
        mean = sizes @ np.array([self._means[c] for c in cells]) / sizes.sum()
        return np.asarray(mean + self._origin)

    def constant(self) -> BoolArray:
        """Columns that have one value in all rows, up to rounding."""
        means = np.array([m for m, n in zip(self._means, self._sizes, strict=True) if n])
        return np.asarray((self._squares + self._earlier <= 0) & (np.ptp(means, axis=0) == 0))
