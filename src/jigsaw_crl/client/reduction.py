"""From the columns of a wide table to a few directions that hold its latents.

A client needs the p-dimensional space of its latents, not all m columns. With `X = G Z + ε` and
`Cov(ε) = Ψ` (diagonal), any matrix B of shape (m, d) gives a table `X B` of d features
with the same latents, another mixing and the noise `Bᵀ Ψ B`. Nothing is lost but signal, and least
is lost with

    B = Ψ^(−½) [V  R] O ,

V the leading eigenvectors of the covariance within regimes in units of Ψ^½, R a few random
directions orthogonal to V, along which the noise is measured, and O a random rotation: without it a
latent could be taken for the noise of one direction. The noise is the same in all d directions.

Ψ is that of factor analysis: the variance of each column that the leading directions do not
explain, found by repetition. Directions count as leading if their variance exceeds that of noise
(`noise_edge`), and as many as there are latents do so in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.client.latents import LatentCount
from jigsaw_crl.client.sketch import BLOCK_ROWS, ColumnSketch, most_visible

__all__ = ["WIDE", "Reduction", "reduce_columns"]

# From this many columns on, a table is reduced. Below, matrices of all columns cost less than a
# second read of the rows, and nothing is lost.
WIDE = 500
# A column with less than this share of its variance in the late rows has a few rows far out.
SELDOM = 0.2
# Random directions beside the leading ones, along which the noise is measured.
NOISE_DIRECTIONS = 16


@dataclass(frozen=True, eq=False)
class Reduction(ReadOnlyArrays):
    """The directions that stand in for the columns of a wide table; private, as the mixing is.

    Parameters
    ----------
    columns : tuple of str
        Names of the columns of the table.
    matrix : array, shape (m, d)
        B: rows of the table times this are rows of the client's features.
    centre : array, shape (m,)
        Mean of the control rows.
    leading : int
        How many of the directions hold latents; noise is measured along the others.
    counted : LatentCount or None
        How the number of latents was found; None if it was given.

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
    matrix: FloatArray
    centre: FloatArray
    leading: int
    counted: LatentCount | None = None

    def __post_init__(self) -> None:
        self._copy_read_only("matrix", "centre")

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the directions."""
        return tuple(f"direction {i + 1}" for i in range(self.matrix.shape[1]))

    def project(self, rows: Any) -> FloatArray:
        """Rows along the directions, shape (n, d), in double precision."""
        if hasattr(rows, "toarray"):
            return np.asarray(rows @ self.matrix)
        out = np.empty((len(rows), self.matrix.shape[1]))
        for start in range(0, len(rows), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            # This product is faster than that of the rows and the matrix.
            out[part] = (self.matrix.T @ rows[part].astype(np.float64, copy=False).T).T
        return out

    def select(self, columns: BoolArray) -> Reduction:
        """The same without the columns of which no direction has a part."""
        names = tuple(name for name, keep in zip(self.columns, columns, strict=True) if keep)
        return replace(
            self, columns=names, matrix=self.matrix[columns], centre=self.centre[columns]
        )

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

    Parameters
    ----------
    sketch : ColumnSketch
    columns : sequence of str
        All columns that the sketch saw.
    labels : int
    n_latent : int or None
        Estimated if None.
    control : list of int
        The cells of the control.
    kept : array of bool, optional
        Which columns to use; all by default. The directions have no part of the others.
    """
    least = max(labels, n_latent or 0)
    most = most_visible(least)
    scatter, late = sketch.scatter(), sketch.late_scatter()
    use = (scatter.squares > 0) if kept is None else kept & (scatter.squares > 0)
    # Of a column that hardly varies in the late rows, all variance counts as noise.
    varies = use & (late.variances > SELDOM * scatter.variances)
    noise = late.select(varies).fitted(least, most).noise
    fit = scatter.select(use).leading(np.where(use & ~varies, scatter.variances, noise))
    visible = min(fit.visible, most)
    v = min(max(least, visible), fit.vectors.shape[1])
    V = fit.vectors[:, :v]
    R = _orthogonal_to(V, use, min(NOISE_DIRECTIONS + least - min(v, least), int(use.sum()) - v))
    # A random rotation: without it a latent could be taken for the noise of one direction.
    d = v + R.shape[1]
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((d, d)))[0]
    matrix = (np.hstack([V, R]) @ turn) / np.sqrt(fit.noise)[:, None]
    matrix[~use] = 0.0
    counted = None
    if n_latent is None:
        counted = _count(labels, visible, most, sketch.rows_of(control))
    names = tuple(str(c) for c in columns)
    return Reduction(names, matrix, sketch.mean(control), v, counted)


def _count(labels: int, visible: int, most: int, rows: int) -> LatentCount:
    if visible <= labels:
        return LatentCount(labels, visible, "sensors")
    if visible >= most:
        return LatentCount(labels, visible, "uneven")
    if visible + 1 > rows:
        return LatentCount(labels, visible, "rows")
    return LatentCount(visible, visible, "sensors")


def _orthogonal_to(V: FloatArray, use: BoolArray, count: int) -> FloatArray:
    """Random orthonormal directions, orthogonal to the columns of V, shape (m, count)."""
    random = np.random.default_rng(1).standard_normal((len(V), max(count, 0))) * use[:, None]
    for _ in range(2):  # once more for rounding
        random -= V @ (V.T @ random)
    return np.asarray(np.linalg.qr(random)[0])
