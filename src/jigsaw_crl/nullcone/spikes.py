"""Directions that an intervention moved: eigenvalues outside the noise.

In coordinates whitened by the control, `M_j − I = D_j` has at most one positive and one negative
eigenvalue in the population. From samples the bulk of `M_j`'s eigenvalues fills the
Marchenko–Pastur interval for dimension d − 1 and size `1/(1/n_j + 1/n_eff)`; the smallest and the
largest eigenvalue are real when they leave it by more than `MARGIN` Tracy–Widom scales.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.extremes import DENSE, Extremes, Form, dense_pairs, extreme_pairs
from jigsaw_crl.moments.regime import inverse_square_root

__all__ = ["Spikes", "bulk_edges", "detect", "find", "judge"]

Edges = tuple[FloatArray, FloatArray, FloatArray, FloatArray]

# Tracy–Widom (real case) has mean −1.2 and standard deviation 1.27: 3.3 scales beyond the edge is
# three and a half standard deviations, exceeded by about one null eigenvalue in 5,000.
MARGIN = 3.3
# A regime is left out only on clear evidence: heavy tails push single eigenvalues out of the
# bulk.
SEVERAL = 10.0
# Share of the sampling error that a computation may add to it.
NEGLIGIBLE = 0.01


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

    @property
    def outer(self) -> FloatArray:
        """The lowest and the highest eigenvector of each regime, shape (r, 2, p)."""
        return np.stack([self.low_vector, self.high_vector], axis=1)

    def changed(self, regimes: IntArray, others: Spikes) -> Spikes:
        """The same, with those of some regimes replaced."""
        both = {f.name: getattr(self, f.name).copy() for f in fields(self)}
        for name, value in both.items():
            value[regimes] = getattr(others, name)
        return Spikes(**both)


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


def ratio_edges(d: int, n: FloatArray, n_base: float) -> Edges:
    """The same when the whitening itself comes from `n_base` rows.

    The ratio of two samples fills `((1 ± √(x + y − xy))/(1 − y))²` with x = d/n and y = d/n_base;
    scales as for one sample of the joint size.
    """
    _, lower_scale, _, upper_scale = bulk_edges(d, _size(n, n_base))
    x, y = np.minimum(d / n, 1.0), min(d / n_base, 0.9)
    root = np.sqrt(x + y - x * y)
    lower, upper = ((1 - root) / (1 - y)) ** 2, ((1 + root) / (1 - y)) ** 2
    return np.asarray(lower), lower_scale, np.asarray(upper), upper_scale


def detect(M: FloatArray, n: FloatArray, n_eff: float, noise: FloatArray | None = None) -> Spikes:
    """Extreme eigenpairs of every `M_j` against the null interval, from the matrices themselves.

    Sensor noise that was taken off is added back for the comparison: `M_j + noise` against
    `I + noise` is the ratio of two covariances of rows, whose null is known.
    """
    own = dense_pairs(M)
    if noise is None:
        return judge(own, own.values, n, n_eff)
    root = inverse_square_root(np.eye(M.shape[-1]) + noise)
    return judge(own, dense_pairs(root @ (M + noise) @ root).values, n, n_eff)


def find(
    form: Form,
    n: FloatArray,
    n_eff: float,
    before: FloatArray | None = None,
    *,
    ratio: bool = False,
    known: Extremes | None = None,
) -> tuple[Spikes, Extremes]:
    """The same for matrices that need not be formed; `before` are rows close to the answer.

    `ratio` when the whitening comes from a sample no larger than the regimes' own: see
    `ratio_edges`. `known` are the eigenpairs of this form, precomputed; in many dimensions
    they are too imprecise, and only serve as a start.
    """
    p = form.dimension
    size = _size(n, n_eff)
    edges = ratio_edges(p - 1, n, n_eff) if ratio else bulk_edges(p - 1, size)
    if known is not None and p < DENSE:
        return _judged(known, known.values, edges), known
    lower, lower_scale, upper, upper_scale = edges
    # Sampling moves an eigenvector as an error of norm √(p/n) does; a hundredth of it adds nothing.
    tolerance = NEGLIGIBLE * np.sqrt(p / size)
    margin = np.array([MARGIN, SEVERAL, SEVERAL, MARGIN])
    inside = (
        lower[:, None] - margin * lower_scale[:, None],
        upper[:, None] + margin * upper_scale[:, None],
    )
    own = extreme_pairs(form, inside, tolerance, before)
    seen = own
    if form.noise is not None:
        root = inverse_square_root(np.eye(p) + form.noise)
        seen = extreme_pairs(Form(form.regimes, root @ form.W), inside, tolerance, own.vectors)
    return _judged(own, seen.values, edges), own


def judge(own: Extremes, seen: FloatArray, n: FloatArray, n_eff: float) -> Spikes:
    """Which eigenpairs are real, given the values `seen` with the sensors' noise, shape (r, 4)."""
    return _judged(own, seen, bulk_edges(own.vectors.shape[2] - 1, _size(n, n_eff)))


def _judged(own: Extremes, seen: FloatArray, edges: Edges) -> Spikes:
    r, _, p = own.vectors.shape
    lower, lower_scale, upper, upper_scale = edges

    def beyond(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (lower - low) / lower_scale, (high - upper) / upper_scale

    below, above = beyond(seen[:, 0], seen[:, 3])
    third = np.full(r, -np.inf)
    if p > 2:
        third = np.maximum(*beyond(seen[:, 1], seen[:, 2]))
    has_low, has_high = below > MARGIN, above > MARGIN
    low_vector, high_vector = own.vectors[:, 0], own.vectors[:, 3]
    return Spikes(
        high=own.values[:, 3] - 1.0,
        low=own.values[:, 0] - 1.0,
        high_vector=high_vector,
        low_vector=low_vector,
        has_high=has_high,
        has_low=has_low,
        directions=np.stack(
            [high_vector * has_high[:, None], low_vector * has_low[:, None]], axis=1
        ),
        excess=np.maximum(below, above),
        second=np.minimum(below, above),
        third=third,
    )


def _size(n: FloatArray, n_eff: float) -> FloatArray:
    """Size of one sample as uncertain as the ratio of two."""
    return np.asarray(1.0 / (1.0 / n + 1.0 / n_eff))
