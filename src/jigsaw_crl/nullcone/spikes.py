"""Directions that an intervention moved: eigenvalues outside the noise.

In coordinates whitened by the control, `M_j − I = D_j` has at most one positive and one negative
eigenvalue in the population. From samples the bulk of `M_j`'s eigenvalues fills the
Marchenko–Pastur interval for dimension d − 1 and size `1/(1/n_j + 1/n_eff)`; the smallest and the
largest eigenvalue are real when they leave it by more than `MARGIN` Tracy–Widom scales.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.client.white import White

__all__ = ["Spikes", "bulk_edges", "judge"]

Edges = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

# Tracy–Widom (real case) has mean −1.2 and standard deviation 1.27: 3.3 scales beyond the edge is
# three and a half standard deviations, exceeded by about one null eigenvalue in 5,000.
MARGIN = 3.3
# A regime is left out only on clear evidence: heavy tails push single eigenvalues out of the
# bulk.
SEVERAL = 10.0


@dataclass(frozen=True, eq=False)
class Spikes:
    """Extreme eigenpairs of each regime, and which of them are real.

    Parameters
    ----------
    high, low : array, shape (r,)
        Largest and smallest eigenvalue of `M_j`, minus 1.
    high_vector, low_vector : array, shape (r, p)
    has_high, has_low : array of bool, shape (r,)
    directions : array, shape (r, 2, p)
        The real ones as orthonormal rows, zeros elsewhere.
    excess : array, shape (r,)
        How far the extreme eigenvalues leave the null interval, in Tracy–Widom scales (the larger
        of the two; a target is seen when it exceeds `MARGIN`).
    second : array, shape (r,)
        The same for the weaker of the two extreme eigenvalues: beyond `MARGIN` the rank is 2.
    third : array, shape (r,)
        The same for the next eigenvalue inwards: beyond `SEVERAL`, more than one target moved.
    """

    high: FloatArray
    low: FloatArray
    high_vector: FloatArray
    low_vector: FloatArray
    has_high: BoolArray
    has_low: BoolArray
    directions: FloatArray
    excess: FloatArray
    second: FloatArray
    third: FloatArray

    @property
    def several(self) -> BoolArray:
        """Regimes in which more than one target moved."""
        return self.third > SEVERAL


def bulk_edges(d: int, n: FloatArray) -> Edges:
    """Interval that the null eigenvalues of an estimated identity of dimension d fill.

    Marchenko–Pastur edges `(1 ± √(d/n))²` and their Tracy–Widom scales: lower, its scale, upper,
    its scale.
    """
    d = max(d, 1)
    root_n, root_d = np.sqrt(n), np.sqrt(float(d))
    upper = (root_n + root_d) ** 2 / n
    upper_scale = (root_n + root_d) * (1 / root_n + 1 / root_d) ** (1 / 3) / n
    gap = np.maximum(root_n - root_d, 0.0)
    lower = gap**2 / n
    lower_scale = gap * np.maximum(1 / root_d - 1 / root_n, 0.0) ** (1 / 3) / n
    # With n close to d the lower edge is at zero and has no scale.
    return lower, np.maximum(lower_scale, 1e-3 * upper_scale), upper, upper_scale


def two_sample_edges(d: int, n: FloatArray, n_base: float) -> Edges:
    """The same when the whitening itself comes from `n_base` rows.

    The ratio of two samples fills `((1 ± √(x + y − xy))/(1 − y))²` with x = d/n and y = d/n_base;
    scales as for one sample of the joint size.
    """
    _, lower_scale, _, upper_scale = bulk_edges(d, 1.0 / (1.0 / n + 1.0 / n_base))
    x, y = np.minimum(d / n, 1.0), min(d / n_base, 0.9)
    root = np.sqrt(x + y - x * y)
    lower, upper = ((1 - root) / (1 - y)) ** 2, ((1 + root) / (1 - y)) ** 2
    return np.asarray(lower), lower_scale, np.asarray(upper), upper_scale


def judge(white: White) -> Spikes:
    """Which extreme eigenpairs of each regime are real."""
    p = white.dimension
    if white.exact or white.n_eff != white.n_control:
        edges = bulk_edges(p - 1, white.size)
    else:
        # Whitened by the control alone, a sample no larger than the regimes' own.
        edges = two_sample_edges(p - 1, white.n, white.n_control)
    lower, lower_scale, upper, upper_scale = edges
    eigen, seen = white.eigen, white.seen

    def beyond(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (lower - low) / lower_scale, (high - upper) / upper_scale

    below, above = beyond(seen[:, 0], seen[:, 3])
    third = np.full(len(seen), -np.inf)
    if p > 2:
        third = np.maximum(*beyond(seen[:, 1], seen[:, 2]))
    has_low, has_high = below > MARGIN, above > MARGIN
    return Spikes(
        high=eigen.values[:, 3] - 1.0,
        low=eigen.values[:, 0] - 1.0,
        high_vector=eigen.high,
        low_vector=eigen.low,
        has_high=has_high,
        has_low=has_low,
        directions=np.stack([eigen.high * has_high[:, None], eigen.low * has_low[:, None]], axis=1),
        excess=np.maximum(below, above),
        second=np.minimum(below, above),
        third=third,
    )
