"""From the columns of a wide table to a few directions that hold its latents.

A client needs the p-dimensional space of its latents, not all m columns. With `X = G Z + ε` and
`Cov(ε) = Ψ` (diagonal), any matrix B of shape (m, d) gives a table `X B` of d features
with the same latents, another mixing and the noise `Bᵀ Ψ B`. Nothing is lost but signal, and least
is lost with

    B = Ψ^(−½) [V  R] O ,

V the leading eigenvectors of the covariance within regimes in units of Ψ^½, R a few random
directions orthogonal to V, along which the noise is measured, and O a random rotation: without it a
latent could be taken for the noise of one direction. The noise is the same in all d directions.

No m × m matrix is made. For rows x in cells c (a regime, or a batch of it) with means μ_c, one pass
accumulates

    Y = S Ω ,   S = Σ_c Σ_{x in c} (x − μ_c)(x − μ_c)ᵀ ,   Ω of shape (m, k) ,

and the diagonal of S. From these the Nyström approximation `S ≈ Y (ΩᵀY)⁻¹ Yᵀ = H Hᵀ` has the
leading eigenvectors of S (Halko, Martinsson and Tropp 2011). A random Ω alone would mix much noise
into them: with eigenvalues λ of the signal and σ² of the noise, the angle is about
(σ²/λ)·√(m/(k − p)). So Ω is replaced each time the rows have doubled by the directions found so
far, and Y by the approximation times the new Ω. Each exchange multiplies the angle by σ²/λ, as a
step of the power method would, but without another pass. Means of cells are taken anew after an
exchange, which costs one degree of freedom a cell.

Ψ is that of factor analysis: the variance of each column that r leading directions, in units of
Ψ^½, do not explain, found by repetition. r is the smallest number that leaves no direction with
more variance than noise has (`noise_edge`), and as many as there are latents in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.client.noise import SPREAD, LatentCount, first_noise
from jigsaw_crl.moments.checks import RANK_TOLERANCE, check_values

# From this many columns on, a table is reduced. Below, matrices of all columns cost less than a
# second read of the rows, and nothing is lost.
WIDE_TABLE = 500
# Directions beside the leading ones: random ones along which the noise is measured, and at least so
# many columns of Ω more than are wanted, or half as many as wanted.
SPARE_DIRECTIONS = 16
# Rows that are multiplied at a time: few enough for the cache, many enough for fast products. After
# so many the random directions are first replaced.
BLOCK_ROWS = 512
# Steps on Ψ, and the share of its sampling error (on a logarithmic scale) at which they end.
FIT_STEPS, SETTLED = 100, 0.2


def _most_visible(labels: int) -> int:
    """Up to how many directions that stand out of the noise are followed."""
    return 2 * labels + 32


@dataclass(frozen=True, eq=False)
class Reduction(ReadOnlyArrays):
    """The directions that stand in for the columns of a wide table; private, as the mixing is.

    Examples
    --------
    >>> import numpy as np
    >>> import jigsaw_crl as jc
    >>> rng = np.random.default_rng(0)
    >>> x0, x1 = (rng.normal(size=(400, 1)) @ np.ones((1, 600)) * s for s in (1, 2))
    >>> client = jc.Client.from_samples(
    ...     "lab-1", observational=x0 + rng.normal(size=x0.shape),
    ...     interventions={"pump": x1 + rng.normal(size=x1.shape)},
    ... )
    >>> client.n_latent, client.n_features, client.reduction.matrix.shape
    (1, 17, (600, 17))
    """

    columns: tuple[str, ...]
    matrix: FloatArray  # B, shape (m, d): rows of the table times this are rows of the features
    centre: FloatArray  # mean of the control rows, shape (m,)
    leading: int  # how many of the directions hold latents; noise is measured along the others
    counted: LatentCount | None = None  # None if the number of latents was given

    def __post_init__(self) -> None:
        self._copy_read_only("matrix", "centre")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the directions."""
        return tuple(f"direction {i + 1}" for i in range(self.matrix.shape[1]))

    def project(self, rows: Any) -> FloatArray:
        """Rows along the directions, shape (n, d), in double precision."""
        return np.asarray(rows @ self.matrix)

    def to_columns(self, functionals: FloatArray) -> FloatArray:
        """Functionals of the directions, shape (any, d), as functionals of the columns."""
        return np.asarray(functionals @ self.matrix.T)

    def about(self, mean: FloatArray) -> Reduction:
        """The same, its centre moved so that along the directions it is `mean` exactly."""
        away = mean - self.centre @ self.matrix
        step = np.linalg.lstsq(self.matrix.T, away, rcond=None)[0]
        return replace(self, centre=self.centre + step)

    @property
    def message(self) -> str:
        """What was reduced to what, and why."""
        spare = self.matrix.shape[1] - self.leading
        return (
            f"{len(self.columns):,} columns are reduced to {self.matrix.shape[1]} directions: "
            f"{self.leading} that hold the latents and {spare} to measure the noise"
        )


class Fit(NamedTuple):
    """The noise of each column, and the leading directions in units of it."""

    noise: FloatArray  # shape (m,)
    values: FloatArray  # eigenvalues, largest first, shape (k,)
    vectors: FloatArray  # orthonormal eigenvectors, shape (m, k)
    visible: int  # how many of them stand out of the noise


@dataclass(frozen=True, eq=False)
class Scatter:
    """The scatter of the columns: H with `S ≈ H Hᵀ`, the diagonal of S, its degrees of freedom."""

    half: FloatArray
    squares: FloatArray
    degrees: int

    def leading(self, noise: FloatArray) -> Fit:
        """Leading eigenpairs of the covariance within cells, each column divided by `√noise`."""
        half = self.half / np.sqrt(noise)[:, None]
        values, turn = np.linalg.eigh(half.T @ half)
        kept = values > RANK_TOLERANCE * max(float(values[-1]), 0.0)
        vectors = half @ (turn[:, kept] / np.sqrt(values[kept]))[:, ::-1]
        values = values[kept][::-1] / max(self.degrees, 1)
        total = float(np.sum(self.squares / noise)) / max(self.degrees, 1)
        rest = max(total - float(values.sum()), RANK_TOLERANCE * total)
        visible = first_noise(values, self.degrees, 0, int((self.squares > 0).sum()), rest)
        return Fit(noise, values, vectors, visible)

    def fitted(self, least: int, most: int) -> Fit:
        """Ψ with the fewest latents, from `least` on, that leave nothing above noise.

        With `most` of them, whatever they leave. Too many would explain noisy columns away.
        """
        variances, use = self.squares / max(self.degrees, 1), self.squares > 0
        m, settled = int(use.sum()), SETTLED * np.sqrt(2 / max(self.degrees, 1))
        found = self.leading(np.where(use, variances, 1.0))
        for r in range(least, most + 1):
            for _ in range(FIT_STEPS):
                own, before = found.values[:r], found.noise
                total = float(np.sum(variances / before))
                level = (total - float(own.sum())) / max(m - r, 1)
                if level * m <= RANK_TOLERANCE * total:
                    break
                explained = found.vectors[:, :r] ** 2 @ np.maximum(own - level, 0.0)
                left = np.clip(variances - before * explained, variances / SPREAD, variances)
                found = self.leading(np.where(use, left, 1.0))
                if float(np.abs(np.log(found.noise / before)).max()) < settled:
                    break
            if found.visible <= r:
                break
        return found


class ColumnSketch:
    """Collects Y and the variances of the columns from chunks of rows, in O(m·k) memory.

    `wanted` leading directions are followed, and further ones that stand out of the noise; `want`
    asks for more. Missing, infinite and too large values raise an `InputError`. The same rows in
    the same chunks give the same sketch.
    """

    def __init__(self, n_columns: int, *, wanted: int) -> None:
        self.n_columns, self.n_rows = n_columns, 0
        self.wanted = self.least = wanted
        self._random = np.random.default_rng(0)
        self._next = BLOCK_ROWS
        # Least and largest value of each column; values are summed less the first row.
        self._low, self._high = np.full((2, n_columns), np.nan)
        self._origin = np.zeros(n_columns)
        # Of the rows before Ω was last replaced.
        self._before = Scatter(np.empty((n_columns, 0)), np.zeros(n_columns), 0)
        # Since then: Ω, Σ x xᵀΩ, the sums of squares, and size and sum of each cell.
        self._omega = self._image = np.empty((n_columns, 0))
        self._squares = np.zeros(n_columns)
        self._cells: dict[int, tuple[int, FloatArray]] = {}
        # Size and sum of each cell, of all rows.
        self._all_cells: dict[int, tuple[int, FloatArray]] = {}

    def want(self, count: int) -> None:
        """Ask for more leading directions, from the next exchange on."""
        self.least, self.wanted = max(self.least, count), max(self.wanted, count)

    def add(self, rows: Any, cells: IntArray) -> None:
        """Add rows, shape (any, m), dense or a scipy CSR matrix; `cells` numbers their cells."""
        # Imported here for start-up time.
        from scipy.sparse import csr_matrix

        for start in range(0, len(cells), BLOCK_ROWS):
            x, own = rows[start : start + BLOCK_ROWS], cells[start : start + BLOCK_ROWS]
            n, sparse = len(own), hasattr(x, "toarray")
            check_values(x.data if sparse else x)
            low, high = x.min(axis=0), x.max(axis=0)
            if sparse:
                low, high = low.toarray()[0], high.toarray()[0]
            self._low, self._high = np.fmin(self._low, low), np.fmax(self._high, high)
            if self.n_rows == 0:
                # The first Ω is in units of each column's spread in the first rows.
                first = x.toarray() if sparse else np.asarray(x, np.float64)
                self._origin = self._origin if sparse else first[0]
                spread = first.std(axis=0)
                known = spread > 0
                units = np.where(known, spread, np.median(spread[known]) if known.any() else 1.0)
                omega = self._random.standard_normal((self.n_columns, self._width()))
                self._omega, self._image = omega / units[:, None], np.zeros_like(omega)
            x = x.astype(np.float64) if sparse else x - self._origin
            found, codes, sizes = np.unique(own, return_inverse=True, return_counts=True)
            sums = csr_matrix((np.ones(n), (codes, np.arange(n)))) @ x
            for i, (cell, size) in enumerate(zip(found.tolist(), sizes.tolist(), strict=True)):
                own_sum = sums[[i]].toarray()[0] if sparse else sums[i]
                for at in (self._cells, self._all_cells):
                    before = at.get(cell, (0, 0.0))
                    at[cell] = before[0] + size, before[1] + own_sum
            self._image += x.T @ (x @ self._omega)
            squares = x.multiply(x).sum(axis=0) if sparse else np.einsum("ij,ij->j", x, x)
            self._squares += np.asarray(squares).ravel()
            self.n_rows += n
            if self.n_rows >= self._next:
                self._next = 2 * self.n_rows
                self._exchange()

    def _width(self) -> int:
        return min(self.wanted + max(SPARE_DIRECTIONS, self.wanted // 2), self.n_columns)

    def _exchange(self) -> None:
        """Replace Ω by the directions found so far, and begin anew."""
        self._before, most = self.scatter(), _most_visible(self.least)
        fit = self._before.fitted(self.least, most)
        self.wanted = max(self.wanted, min(fit.visible, most))
        fresh = self._random.standard_normal(
            (self.n_columns, max(self._width() - fit.vectors.shape[1], 0))
        )
        omega = np.hstack([fit.vectors, fresh / np.sqrt(self.n_columns)])
        self._omega = omega / np.sqrt(fit.noise)[:, None]
        self._image, self._squares = np.zeros(omega.shape), np.zeros(self.n_columns)
        self._cells = {}

    def scatter(self) -> Scatter:
        """The scatter of all rows."""
        before = self._before
        if not self._cells:
            return before
        sizes = np.array([n for n, _ in self._cells.values()])
        sums = np.array([total for _, total in self._cells.values()])
        means = sums / sizes[:, None]
        squares = self._squares - np.einsum("ij,ij->j", sums, means)
        # A sum of so many squares errs by up to this share of it.
        share = int(sizes.sum()) * np.finfo(np.float64).eps
        squares = np.where(squares > share * self._squares, squares, 0.0)
        image = self._image - sums.T @ (means @ self._omega)
        image += before.half @ (before.half.T @ self._omega)
        # H of shape (m, k) with `H Hᵀ = Y (ΩᵀY)⁻¹ Yᵀ`.
        inner = self._omega.T @ image
        size = np.sqrt(np.maximum(np.diagonal(inner), 0.0))
        scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        values, vectors = np.linalg.eigh(scale[:, None] * (inner + inner.T) / 2 * scale)
        kept = values > RANK_TOLERANCE * max(float(values[-1]), 0.0)
        half = image @ (scale[:, None] * vectors[:, kept] / np.sqrt(values[kept]))
        degrees = before.degrees + int(sizes.sum()) - len(sizes)
        return Scatter(np.asarray(half), before.squares + squares, degrees)

    def control(self, cells: list[int]) -> tuple[int, FloatArray]:
        """Number of rows of some cells, and their mean."""
        own = [self._all_cells[c] for c in cells]
        n = sum(size for size, _ in own)
        return n, np.asarray(sum(total for _, total in own) / n + self._origin)

    def constant(self) -> BoolArray:
        """Columns that have one value in all rows."""
        return np.asarray(self._low == self._high)


def reduce_columns(
    sketch: ColumnSketch,
    columns: Sequence[str],
    *,
    labels: int,
    n_latent: int | None,
    control: list[int],
    kept: BoolArray | None = None,
) -> Reduction:
    """The directions of a table of which a sketch has seen all rows.

    `n_latent` is estimated if None, `control` are the cells of the control, and `kept` are the
    columns to use: the result is without the others.
    """
    least = max(labels, n_latent or 0)
    most = _most_visible(least)
    whole = sketch.scatter()
    kept = np.ones(len(columns), dtype=bool) if kept is None else kept
    use = kept & (whole.squares > 0)
    half, squares = np.where(use[:, None], whole.half, 0.0), np.where(use, whole.squares, 0.0)
    fit = Scatter(half, squares, whole.degrees).fitted(least, most)
    visible = min(fit.visible, most)
    v = min(max(least, visible), fit.vectors.shape[1])
    V = fit.vectors[:, :v]
    count = min(SPARE_DIRECTIONS + least - min(v, least), int(use.sum()) - v)
    R = np.random.default_rng(1).standard_normal((len(V), max(count, 0))) * use[:, None]
    for _ in range(2):  # once more for rounding
        R -= V @ (V.T @ R)
    # A random rotation: without it a latent could be taken for the noise of one direction.
    d = v + R.shape[1]
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((d, d)))[0]
    matrix = np.hstack([V, np.linalg.qr(R)[0]]) @ turn / np.sqrt(fit.noise)[:, None]
    matrix[~use] = 0.0
    rows, centre = sketch.control(control)
    counted = None
    if n_latent is None:
        counted = LatentCount(max(visible, labels), visible, "sensors")
        if visible > labels and (visible + 1 > rows or visible >= most):
            counted = LatentCount(labels, visible, "uneven" if visible >= most else "rows")
    names = tuple(str(columns[i]) for i in np.flatnonzero(kept).tolist())
    return Reduction(names, matrix[kept], centre[kept], v, counted)
