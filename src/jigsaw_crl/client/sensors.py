"""The noise variance of each sensor, by factor analysis of all regimes together.

With sensors of unequal noise, regime j has the covariance `C_j = G Σ_j Gᵀ + Ψ`, with Ψ diagonal and
G of rank r (the number of latents). In coordinates scaled by a current Ψ, write `A_j` for its
sample covariance, V for an orthonormal basis of the space of G, P for the projector off it,
`S_j = Vᵀ A_j V` and `T_j = S_j − I` (the signal). To first order in δ, the change of log Ψ, and in
E, the turn of V,

    P (A − I) P = P δ P + noise ,      P A_j V = E T_j + P δ V + noise ,

with δ as a diagonal matrix, A the average of the A_j, and the last noise of covariance `S_j/n_j` a
row. Generalised least squares gives E for every δ, and for δ the normal equations `H δ = g`:

    H = (ν/2) P∘P + P∘(V F Vᵀ) ,     F = Σ n_j S_j⁻¹ − B K⁻¹ Bᵀ ,
    B = Σ n_j S_j⁻¹ T_j ,            K = Σ n_j T_j S_j⁻¹ T_j .

The first term of H is that of factor analysis of one sample. The second is what regimes with
different Σ_j add: they share the space of G, which the noise does not. The errors of log Ψ have the
covariance H⁻¹.

If the noise is equal, `(ν/2) gᵀ (P∘P)⁺ g` with `g = diag(P (A − I) P)` is about χ² (Rao's score
test), which needs at least two features more than latents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.client.nulls import FALSE_ALARM
from jigsaw_crl.moments.checks import RANK_TOLERANCE
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
# Regimes with fewer rows than this many times the latents are not used: S_j has no good inverse.
ENOUGH_ROWS = 4
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


def sensor_noise(control: Moments, others: Sequence[Moments], r: int) -> SensorNoise:
    """Noise variance of each sensor, if it is unequal, of a client with r latents."""
    covariance, degrees = pooled_covariance(control, others)
    d = len(covariance)
    if d - r < 2 or not np.diagonal(covariance).all():
        return SensorNoise(0.0)
    values, vectors = np.linalg.eigh(covariance)
    floor, off = float(values[: d - r].mean()), vectors[:, : d - r]
    if floor <= RANK_TOLERANCE * float(values.sum()):
        return SensorNoise(0.0)
    beyond = _unevenness((off @ off.T) ** 2, off**2 @ (values[: d - r] / floor - 1), degrees)
    regimes = [
        (float(m.n or 1), m.covariance)
        for m in (control, *others)
        if m.n is None or m.n >= ENOUGH_ROWS * r
    ]
    if beyond <= 1 or not regimes:
        return SensorNoise(beyond)
    try:
        return SensorNoise(beyond, *_fitted(regimes, degrees, covariance, r, floor))
    except np.linalg.LinAlgError:
        # Some regime has no variance at all along some direction: it has no noise either.
        return SensorNoise(0.0)


def _fitted(
    regimes: list[tuple[float, FloatArray]],
    degrees: float,
    covariance: FloatArray,
    r: int,
    floor: float,
) -> tuple[FloatArray, FloatArray] | tuple[()]:
    """Ψ, shrunk and as fitted, by Newton's steps; nothing if they do not settle."""
    least = ROUNDING if np.isinf(degrees) else NEGLIGIBLE * np.sqrt(2.0 / degrees)
    d = len(covariance)
    psi = np.full(d, floor)
    if degrees > 2 * d:
        # What the other sensors do not explain: a noisy one is not taken for a latent then.
        psi = 1 / np.diagonal(np.linalg.inv(covariance))
    V = np.linalg.eigh(covariance / np.sqrt(np.outer(psi, psi)))[1][:, -r:]
    for _ in range(MOST_STEPS):
        H, g, alone, along = _equations(regimes, np.sqrt(psi), V)
        H[np.diag_indices(d)] += SINGULAR * float(np.trace(H)) / d
        step = np.asarray(np.linalg.solve(H, g), dtype=np.float64)
        step *= min(LONGEST / max(float(np.abs(step).max()), 1e-300), 1.0)
        before, psi = psi, psi * np.exp(step)
        typical = float(np.exp(np.log(psi).mean()))
        psi = np.clip(psi, typical / SPREAD, typical * SPREAD)
        # The space in the new units, turned.
        turned = (V + alone - along(step)) * np.sqrt(before / psi)[:, None]
        V = np.asarray(np.linalg.qr(turned)[0], dtype=np.float64)
        if float(np.abs(np.log(psi / before)).max()) <= least:
            errors = np.diagonal(np.linalg.inv(H))
            if errors.min() <= 0:
                break
            return (psi if np.isinf(degrees) else _shrunk(psi, errors)), psi
    return ()


def _equations(
    regimes: list[tuple[float, FloatArray]], root: FloatArray, V: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, Callable[[FloatArray], FloatArray]]:
    """H and g of the module's docstring, and the turn `N E` of V as a function of δ."""
    d, r = V.shape
    P = np.eye(d) - V @ V.T
    average, identity = np.zeros(d), np.eye(r)
    J, B, K = np.zeros((3, r, r))
    Y, Z, total = np.zeros((d, r)), np.zeros((d, r)), 0.0
    for n, C in regimes:
        image = (C @ (V / root[:, None])) / root[:, None]
        S = V.T @ image
        inner = np.linalg.inv(S)
        T = S - identity
        outside = image - V @ S
        J += n * inner
        B += n * (inner @ T)
        K += n * (T @ inner @ T)
        Y += n * outside @ inner
        Z += n * outside @ inner @ T
        # diag(P A P), without the product of the large matrices.
        across = np.einsum("dr,dr->d", V, outside)
        average += n * (np.diagonal(C) / root**2 - np.einsum("dr,dr->d", V @ S, V) - 2 * across)
        total += n
    K[np.diag_indices(r)] += SINGULAR * float(np.trace(K)) / r
    inverse = np.linalg.inv(K)
    F = J - B @ inverse @ B.T
    H = 0.5 * total * P**2 + P * (V @ F @ V.T)
    g = 0.5 * (average - total * np.diagonal(P))
    g = g + np.einsum("dr,dr->d", Y - Z @ inverse @ B.T, V)

    def along(step: FloatArray) -> FloatArray:
        return np.asarray(P @ (step[:, None] * V) @ B @ inverse)

    return H, g, Z @ inverse, along


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
