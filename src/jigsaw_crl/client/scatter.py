"""The scatter of many columns as a product H Hᵀ, its leading directions and the columns' noise.

With `X = G Z + ε` and `Cov(ε) = Ψ` (diagonal), the covariance is `G Cov(Z) Gᵀ + Ψ`. Ψ is found as
in factor analysis: it is the variance of each column that r leading directions, in units of Ψ^½, do
not explain. r is the smallest number that leaves no direction with more variance than noise has
(`noise_edge`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.client.nulls import FALSE_ALARM, noise_edge

__all__ = ["Leading", "Scatter", "most_visible", "noise_of", "standing_out", "visible_in"]

# Directions that stand out are followed up to this many times those that are wanted, and some more.
MOST_VISIBLE, AND_MORE = 2, 32
# The share of all variance that single precision cannot tell from none.
SINGLE = 1e-5
# Steps on Ψ, and the share of its sampling error (on a logarithmic scale) at which they end.
STEPS, SETTLED = 100, 0.2
# The least share of a column's variance that is noise: one without any would be all that counts.
LEAST_NOISE = 1e-4


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

    def leading(self, noise: FloatArray) -> Leading:
        """Leading eigenpairs of the covariance within cells, each column divided by `√noise`."""
        half = self.half / np.sqrt(noise)[:, None]
        values, turn = np.linalg.eigh(half.T @ half)
        kept = values > np.finfo(np.float32).eps ** 2 * float(values[-1])
        turn = (turn[:, kept] / np.sqrt(values[kept]))[:, ::-1]
        return Leading(values[kept][::-1] / max(self.degrees, 1), half, turn)


@dataclass(frozen=True, eq=False)
class Leading:
    """Leading eigenpairs of the covariance within cells.

    Parameters
    ----------
    values : array, shape (k,)
        Largest first.
    half, turn : array
        Their product has the eigenvectors as columns.
    """

    values: FloatArray
    half: FloatArray
    turn: FloatArray

    @cached_property
    def vectors(self) -> FloatArray:
        """The eigenvectors, shape (m, k); orthonormal."""
        return self.half @ self.turn


def most_visible(labels: int) -> int:
    """Up to how many directions that stand out are followed."""
    return MOST_VISIBLE * labels + AND_MORE


def standing_out(values: FloatArray, total: float, m: int, degrees: float) -> int:
    """How many of the leading eigenvalues of m columns exceed those of noise.

    Parameters
    ----------
    values : array
        Largest first.
    total : float
        The sum of all m eigenvalues.
    m : int
    degrees : float
        Degrees of freedom of the covariance.
    """
    beyond = total - np.append(0.0, np.cumsum(values))
    for r, value in enumerate(values.tolist()):
        level = max(float(beyond[r]), SINGLE * total) / max(m - r, 1)
        if value <= level * noise_edge(max(m - r, 1), max(degrees - r, 1.0), FALSE_ALARM):
            return r
    return len(values)


def noise_of(scatter: Scatter, use: BoolArray, least: int, most: int) -> tuple[FloatArray, Leading]:
    """Ψ with the fewest latents, from `least` on, that leave nothing above noise; 1 if not in use.

    With `most` of them, whatever they leave. Too many would explain noisy columns away. The leading
    directions in units of Ψ^½ are returned with it.
    """
    start = np.where(use, np.maximum(scatter.variances, np.finfo(np.float64).tiny), 1.0)

    def fitted(r: int) -> tuple[tuple[FloatArray, Leading], bool]:
        noise = _fitted(scatter, start, use, r)
        top = scatter.leading(noise)
        return (noise, top), visible_in(scatter, top, noise, use) <= r

    low, r, step = least - 1, least, 1
    found, fits = fitted(r)
    while not fits and r < most:
        low, r, step = r, min(r + step, most), 2 * step
        found, fits = fitted(r)
    while r - low > 1:
        middle = (low + r) // 2
        fewer, fits = fitted(middle)
        low, r, found = (low, middle, fewer) if fits else (middle, r, found)
    return found


def _fitted(scatter: Scatter, start: FloatArray, use: BoolArray, r: int) -> FloatArray:
    """The variance of each column that r directions do not explain, by repetition."""
    variances, m, noise = scatter.variances, int(use.sum()), start
    settled = SETTLED * np.sqrt(2 / max(scatter.degrees, 1))
    for _ in range(STEPS):
        top = scatter.leading(noise)
        total, own = float(np.sum(variances / noise)), top.values[:r]
        level = (total - float(own.sum())) / max(m - r, 1)
        if level * m <= SINGLE * total:
            break
        explained = top.vectors[:, :r] ** 2 @ np.maximum(own - level, 0.0)
        left = np.clip(variances - noise * explained, LEAST_NOISE * variances, variances)
        before, noise = noise, np.where(use, np.maximum(left, np.finfo(np.float64).tiny), 1.0)
        if float(np.abs(np.log(noise / before)).max()) < settled:
            break
    return noise


def visible_in(scatter: Scatter, top: Leading, noise: FloatArray, use: BoolArray) -> int:
    """How many directions stand out of the noise."""
    total = float(np.sum(scatter.variances / noise))
    return standing_out(top.values, total, int(use.sum()), scatter.degrees)
