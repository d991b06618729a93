"""The noise variance of each sensor, by factor analysis of all regimes together.

With sensors of unequal noise, the covariance of the rows within regimes is `C = G Σ Gᵀ + Ψ`, with Ψ
diagonal and G of rank r (the number of latents). In coordinates scaled by a current Ψ, A is the
sample's, V its r leading eigenvectors and P the projector off them. Maximum likelihood asks for
`g = diag(P (A − I) P) = 0`, and to first order in δ, the change of log Ψ,

    P (A − I) P = P δ P + noise ,       so that       (P∘P) δ = g ,

with errors of covariance `(2/ν) (P∘P)⁻¹`. If the noise is equal, `(ν/2) gᵀ (P∘P)⁺ g` is about χ²
(Rao's score test), which needs at least two features more than latents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.client.checks import RANK_TOLERANCE
from jigsaw_crl.client.nulls import FALSE_ALARM
from jigsaw_crl.moments.regime import Moments

__all__ = ["SensorNoise", "needed_features", "pooled_covariance", "sensor_noise"]

# Steps on log Ψ: the longest one, their number, and the share of the sampling error (of rounding,
# for exact moments) at which they end.
LONGEST, MOST_STEPS, NEGLIGIBLE, ROUNDING = 1.0, 60, 0.05, 1e-10
# Exact moments with log Ψ closer than this have equal noise.
EVEN = 1e-6
# A sensor's noise is at most this many times below or above the typical one: a sensor without noise
# of its own would otherwise be the only one that counts.
SPREAD = 1e3
# Directions in which P∘P is smaller than this share of its largest eigenvalue are not determined.
SINGULAR = 1e-6


@dataclass(frozen=True, eq=False)
class SensorNoise:
    """What is known about the noise of each sensor.

    Parameters
    ----------
    unevenness : float
        How far the sensors' noise is from equal; 1 is the edge of chance.
    variance : array, shape (n_features,), or None
        Noise variance of each sensor, drawn to the typical one in proportion to its error variance;
        None if the noise is equal up to chance, or if the features are too few to tell.
    fitted : array, shape (n_features,), or None
        The same as fitted.
    """

    unevenness: float
    variance: FloatArray | None = None
    fitted: FloatArray | None = None


def pooled_covariance(control: Moments, others: Iterable[Moments]) -> tuple[FloatArray, float]:
    """Covariance of the rows within regimes, and its degrees of freedom (infinite if exact)."""
    regimes = (control, *others)
    if control.n is None:
        return np.mean([m.covariance for m in regimes], axis=0), np.inf
    total, degrees = np.zeros_like(control.covariance), 0.0
    for m in regimes:
        assert m.n is not None
        total += m.n * m.covariance
        degrees += m.n - 1
    return total / max(degrees, 1.0), degrees


def sensor_noise(covariance: FloatArray, degrees: float, r: int) -> SensorNoise:
    """Noise variance of each sensor, if it is unequal, with r latents.

    `covariance` is that of `pooled_covariance`, with so many degrees of freedom.
    """
    d, beyond = len(covariance), 0.0
    if d - r < 2 or not np.diagonal(covariance).all():
        return SensorNoise(0.0)
    least = ROUNDING if np.isinf(degrees) else NEGLIGIBLE * np.sqrt(2.0 / degrees)
    psi = np.ones(d)
    for step in range(MOST_STEPS):
        root = np.sqrt(psi)
        values, vectors = np.linalg.eigh(covariance / root / root[:, None])
        level, off = float(values[: d - r].mean()), vectors[:, : d - r]
        if level <= RANK_TOLERANCE * float(values.sum()):
            return SensorNoise(beyond)
        H = (off @ off.T) ** 2
        gap = off**2 @ (values[: d - r] / level - 1)
        if step == 0:
            beyond = _unevenness(H, gap, degrees)
            if beyond <= 1 or d < needed_features(r):
                return SensorNoise(beyond)
            # What the other sensors do not explain: a noisy one is not taken for a latent then.
            psi = 1 / np.diagonal(np.linalg.inv(covariance))
            continue
        H[np.diag_indices(d)] += SINGULAR * float(np.trace(H)) / d
        change = np.linalg.solve(H, gap)
        change *= min(LONGEST / max(float(np.abs(change).max()), 1e-300), 1.0)
        before, psi = psi * level, psi * level * np.exp(change)
        typical = float(np.exp(np.log(psi).mean()))
        psi = np.clip(psi, typical / SPREAD, typical * SPREAD)
        if float(np.abs(np.log(psi / before)).max()) <= least:
            errors = 2 / degrees * np.diagonal(np.linalg.inv(H))
            return SensorNoise(beyond, psi if np.isinf(degrees) else _shrunk(psi, errors), psi)
    return SensorNoise(beyond)


def _unevenness(H: FloatArray, gap: FloatArray, degrees: float) -> float:
    """The score statistic of equal noise over its quantile; 0 if nothing can be tested."""
    if np.isinf(degrees):
        return float(np.abs(gap).max()) / EVEN
    values, vectors = np.linalg.eigh(H)
    kept = values > SINGULAR * values[-1]
    # The common size of the noise was fitted.
    freedom, g = int(kept.sum()) - 1, gap @ vectors[:, kept]
    if freedom < 1:
        return 0.0
    return 0.5 * degrees * float(g @ (g / values[kept])) / float(chdtri(freedom, FALSE_ALARM))


def needed_features(latents: int) -> int:
    """Features from which unequal noise can be told from further latents (Ledermann's bound)."""
    spare = 2
    while spare * (spare - 1) // 2 <= latents:
        spare += 1
    return latents + spare


def _shrunk(psi: FloatArray, variance: FloatArray) -> FloatArray:
    """Ψ with each logarithm drawn to their mean in proportion to its error variance."""
    log, typical = np.log(psi), float(np.median(variance))
    weight = 1.0 / (variance + typical)
    mean = float(weight @ log / weight.sum())
    known = variance <= 4 * typical
    spread = max(float(np.mean((log[known] - mean) ** 2 - variance[known])), 1e-6)
    return np.asarray(np.exp(mean + (log - mean) * spread / (spread + variance)))
