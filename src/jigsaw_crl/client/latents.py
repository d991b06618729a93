"""How many latents a client has, estimated from its features when `n_latent` is not given.

With sensor noise of variance σ² in each direction, the covariance of the rows within regimes,

    C = Σ_j n_j C_j / ν ,   ν = Σ_j (n_j − 1)   (C_j about the regime's own mean) ,

is `G S Gᵀ + σ² I` in the population, whatever the regimes are, and its noise is exactly that of one
sample with ν degrees of freedom. If r directions carry signal, the other d − r eigenvalues are
those of pure noise with ν − r degrees of freedom: the largest exceeds their mean by no more than
Marchenko–Pastur's edge with Tracy–Widom's margin (`noise_edge`). The estimate is the smallest r, at
least the number of labels, for which that holds.

If the noise is not equal with as many directions as labels, two things may be the reason: more
latents, or sensors of unequal noise. For r from the number of labels on, the noise of each sensor
is fitted (`sensors`), and the test is repeated with features in units of it; the smallest r that
fits either way is used. Where the features are too few to tell the noise of each sensor, the widest
gap between eigenvalues decides if it is wide; otherwise the number of labels is used.
Exact moments have the rank that their eigenvalues show up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.client.checks import numerical_rank
from jigsaw_crl.client.nulls import FALSE_ALARM, noise_edge
from jigsaw_crl.client.sensors import needed_features, pooled_covariance, sensor_noise
from jigsaw_crl.moments.checks import RANK_TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jigsaw_crl.moments.regime import Moments

__all__ = ["LatentCount", "count_latents"]

Reason = Literal["noise", "sensors", "gap", "rank", "features", "uneven", "rows"]

# Share of the directions beyond the labels that must look like equal noise: sensors of unequal
# noise leave one or two at the end that happen to agree.
BULK = 1 / 3
# A raised number needs a gap: the variance along the weakest direction of the signal exceeds that
# along the strongest of the noise by this factor. Variances of unequal sensors follow each other
# more closely.
GAP = 1.25
# Numbers of latents that are tried with unequal noise.
MOST_TRIED = 8
# Where the noise is uneven, the widest gap separates signal from noise if it is at least this wide.
WIDE_GAP = 2.0


@dataclass(frozen=True)
class LatentCount:
    """The number of latents that a client's features show, and what it rests on.

    Parameters
    ----------
    used : int
        The number of latents to use: at least the number of labels.
    visible : int
        Directions that stand out of the noise; fewer than the labels if some latents are drowned.
    reason : {"noise", "sensors", "gap", "rank", "features", "uneven", "rows"}
        - "noise": the other directions look like noise of equal variance;
        - "sensors": they do in units of the noise of each sensor, which is unequal;
        - "gap": the other directions are noise of unequal variance, far below the signal;
        - "rank": the features span `visible` dimensions, up to rounding;
        - "features": there is at most one feature more than labels, so further latents cannot be
          told from noise;
        - "uneven": more directions than labels stand out, but no gap separates them from noise of
          unequal variance, so the labels are counted;
        - "rows": the control has too few rows for the visible directions, so the labels are
          counted.
    """

    used: int
    visible: int
    reason: Reason


def count_latents(control: Moments, others: Sequence[Moments], labels: int) -> LatentCount:
    """The number of latents that the moments of a client with `labels` labels show."""
    d = control.n_features
    if d <= labels:
        return LatentCount(labels, d, "features")
    if control.n is None:
        count = _exact(_descending(pooled_covariance(control, others)[0]), labels)
    else:
        count = _estimated(control, others, labels)
    if count.used == labels:
        return count
    if control.n is not None and count.used + 1 > control.n:
        return LatentCount(labels, count.visible, "rows")
    # The control has all latents, so a direction that it lacks is none.
    rank = numerical_rank(control.covariance)
    return count if count.used <= rank else LatentCount(max(rank, labels), rank, "rank")


def _descending(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.eigvalsh(matrix)[::-1], dtype=np.float64)


def _exact(values: FloatArray, labels: int) -> LatentCount:
    """The rank of exact moments, without a floor that two or more directions share."""
    rounding = RANK_TOLERANCE * values[0]
    rank = int(np.count_nonzero(values > rounding))
    if rank < len(values):
        return LatentCount(max(rank, labels), rank, "rank")
    above = int(np.count_nonzero(values - values[-1] > rounding))
    if above == len(values) - 1:
        # Any covariance has one lowest direction: it may be noise or a latent.
        return LatentCount(labels, above, "features" if above == labels else "uneven")
    return LatentCount(max(above, labels), above, "noise")


def _estimated(control: Moments, others: Sequence[Moments], labels: int) -> LatentCount:
    """The number of directions that stand out of the noise of a sample."""
    covariance, degrees = pooled_covariance(control, others)
    values = _descending(covariance)
    d = len(values)
    rank = int(np.count_nonzero(values > RANK_TOLERANCE * values[0]))
    # Fewer directions than features and rows: there is no noise, or some features are copies.
    degenerate = rank < min(d, degrees)
    if degenerate:
        values, d = values[:rank], rank
        if rank <= labels:
            return LatentCount(labels, rank, "rank")
    found = _first_noise(values, degrees, labels)
    least_bulk = max(3 if degenerate else 2, BULK * (d - labels))
    if found == labels and d - found >= least_bulk:
        return LatentCount(labels, _first_noise(values, degrees, 0), "noise")
    uneven = None
    if not degenerate:
        uneven = _by_sensors(control, others, labels, found)
        if uneven is not None and uneven.reason == "sensors":
            return uneven
    if d - found >= least_bulk:
        # One direction without a gap may belong to the noise; the signal ends before it.
        for r in (found, found - 1):
            if r > labels and values[r - 1] > GAP * values[r]:
                return LatentCount(r, r, "noise")
    elif degenerate:
        return LatentCount(rank, rank, "rank")
    if d == labels + 1:
        return LatentCount(labels, _first_noise(values, degrees, 0), "features")
    ratios = values[labels - 1 : -1] / values[labels:]
    widest = labels + int(np.argmax(ratios))
    if uneven is None and d - widest >= least_bulk and ratios.max() > WIDE_GAP:
        # The gap may also be that at the number of labels, which is then confirmed.
        return LatentCount(widest, widest, "gap")
    return LatentCount(labels, found, "uneven")


def _by_sensors(
    control: Moments, others: Sequence[Moments], labels: int, found: int
) -> LatentCount | None:
    """The smallest number below `found` that fits with unequal noise; None if there is none.

    Its reason is "uneven" if the features are so few that any number would fit.
    """
    covariance, degrees = pooled_covariance(control, others)
    for r in range(labels, min(found, labels + MOST_TRIED)):
        enough = len(covariance) >= needed_features(r)
        noise = sensor_noise(control, others, r).fitted
        if noise is not None:
            values = _descending(covariance / np.sqrt(np.outer(noise, noise)))
            if _first_noise(values, degrees, r) == r:
                visible = _first_noise(values, degrees, 0) if enough else found
                return LatentCount(r, visible, "sensors" if enough else "uneven")
        if not enough:
            return None
    return None


def _first_noise(values: FloatArray, degrees: float, least: int) -> int:
    """The smallest r from `least` on for which all values from r on are within those of noise."""
    d = len(values)
    means = np.cumsum(values[::-1])[::-1] / np.arange(d, 0, -1)
    for r in range(least, d - 1):
        if values[r] <= means[r] * noise_edge(d - r, max(degrees - r, 1.0), FALSE_ALARM):
            return r
    return max(d - 1, least)
