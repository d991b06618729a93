"""Which directions did an intervention move? Eigenvalues that leave the noise.

In coordinates whitened by the control, `M_j − I = D_j` has at most one positive and one negative
eigenvalue in the population. From samples the bulk of `M_j`'s eigenvalues fills the
Marchenko–Pastur interval for dimension d − 1 and size `1/(1/n_j + 1/n_eff)`; the smallest and the
largest eigenvalue are real when they leave it by more than `MARGIN` Tracy–Widom scales.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.moments import inverse_square_root

__all__ = ["Spikes", "bulk_edges", "detect"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

# Tracy–Widom (real case) has mean −1.2 and standard deviation 1.27: 3.3 scales beyond the edge is
# three and a half standard deviations, exceeded by about one null eigenvalue in 5,000.
MARGIN = 3.3
# A regime is refused only on clear evidence: heavy tails push single eigenvalues out of the bulk.
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
    high_limit, low_limit : array, shape (r,)
        How large an eigenvalue of D may be, either way, without being seen.
    directions : array, shape (r, p, 2)
        The real ones as orthonormal columns, zeros elsewhere.
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
    high_limit: FloatArray
    low_limit: FloatArray
    directions: FloatArray
    excess: FloatArray
    second: FloatArray
    third: FloatArray

    @property
    def several(self) -> BoolArray:
        """Regimes in which more than one target moved."""
        return self.third > SEVERAL


def bulk_edges(d: int, n: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
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
    # With n hardly above d the lower edge is at zero and has no scale of its own.
    return lower, np.maximum(lower_scale, 1e-3 * upper_scale), upper, upper_scale


def detect(M: FloatArray, n: FloatArray, n_eff: float, noise: FloatArray | None = None) -> Spikes:
    """Extreme eigenpairs of every `M_j` against the null interval.

    Sensor noise that was taken off is added back for the comparison: `M_j + noise` against
    `I + noise` is the ratio of two covariances of rows, whose null is known.
    """
    p = M.shape[-1]
    values, vectors = np.linalg.eigh(M)
    size = 1.0 / (1.0 / n + 1.0 / n_eff)
    lower, lower_scale, upper, upper_scale = bulk_edges(p - 1, size)

    def beyond(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (lower - low) / lower_scale, (high - upper) / upper_scale

    seen: FloatArray = np.asarray(values, dtype=np.float64)
    if noise is not None:
        seen = np.linalg.eigvalsh(_against(M + noise, np.eye(p) + noise)).astype(np.float64)
    below, above = beyond(seen[:, 0], seen[:, -1])
    third = np.full(len(M), -np.inf)
    if p > 2:
        third = np.maximum(*beyond(seen[:, 1], seen[:, -2]))
    has_low, has_high = below > MARGIN, above > MARGIN
    low_vector, high_vector = vectors[:, :, 0], vectors[:, :, -1]
    return Spikes(
        high=values[:, -1] - 1.0,
        low=values[:, 0] - 1.0,
        high_vector=high_vector,
        low_vector=low_vector,
        has_high=has_high,
        has_low=has_low,
        high_limit=upper + MARGIN * upper_scale - 1.0,
        low_limit=1.0 - lower + MARGIN * lower_scale,
        directions=np.stack(
            [high_vector * has_high[:, None], low_vector * has_low[:, None]], axis=2
        ),
        excess=np.maximum(below, above),
        second=np.minimum(below, above),
        third=third,
    )


def _against(M: FloatArray, base: FloatArray) -> FloatArray:
    """`base^(−½) M base^(−½)`."""
    root = inverse_square_root(base)
    return np.asarray(root @ M @ root)
