"""The space of a client's latents when there are more features than latents.

With sensor noise, `X = G Z + ε` and `Cov(ε) = σ² I`, every regime's covariance is
`G Cov(Z) Gᵀ + σ² I`. All regimes share the leading p-dimensional space (the columns of G) and the
noise floor σ² on the other d − p directions. The floor is estimated on those directions and
subtracted from the leading block.

Where the sensors' noise is not equal, `Cov(ε) = Ψ`, each feature is first divided by the size of
its own noise (`sensors`), so that the noise is equal in the new units.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.client.client import RANK_TOLERANCE, Client
from jigsaw_crl.client.sensors import SensorNoise, sensor_noise
from jigsaw_crl.moments.regime import second_moment_about

__all__ = ["Spectrum", "reduce_to_rank"]


# The floor is an estimate: subtracting more than this share of the weakest direction could leave a
# covariance that is not positive definite.
MOST_SUBTRACTED = 0.9


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues, leading space and noise floor of a client.

    Parameters
    ----------
    basis : array, shape (d, p)
        Takes features to the leading space, p being the client's `n_latent`: orthonormal columns,
        each row divided by the relative noise of its sensor where the noise is uneven.
    eigenvalues : array, shape (d,)
        Of the average covariance of the regimes, largest first; exact moments are about the
        control's mean.
    noise_floor : float
        σ², the variance of the sensor noise in each direction; 0 if there is none, or if there are
        as many latents as features and it cannot be estimated.
    visible : bool
        Whether the floor could be estimated.
    subtracted : float
        The variance that `project` subtracts: the floor, or a little less than `weakest`.
    weakest : float
        Smallest variance of the control along any direction of the leading space.
    n : float
        Effective number of rows behind the eigenvalues; infinite for exact moments.
    unevenness : float
        How far the sensors' noise is from equal; 1 is the edge of chance.
    scale : array, shape (d,), or None
        What each feature was multiplied by, so that the noise of all sensors is equal; None for
        1. Eigenvalues and variances are those of the scaled features.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.client.spectrum import reduce_to_rank
    >>> client = jc.simulate.setting("A", 0).client(0)
    >>> spectrum = reduce_to_rank(client)
    >>> spectrum.basis.shape == (client.n_features, client.n_latent), spectrum.noise_floor
    (True, 0.0)
    """

    basis: FloatArray
    eigenvalues: FloatArray
    noise_floor: float
    visible: bool
    subtracted: float
    weakest: float
    n: float
    unevenness: float = 0.0
    scale: FloatArray | None = None

    @property
    def sensors(self) -> float | FloatArray:
        """The noise variance of each feature as given that `project` subtracts."""
        return self.subtracted if self.scale is None else self.subtracted / self.scale**2

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    @property
    def gap(self) -> float:
        """`λ_p / λ_{p+1}`; infinite if λ_{p+1} is zero up to rounding or does not exist."""
        if self.rank == len(self.eigenvalues):
            return float("inf")
        last, below = self.eigenvalues[self.rank - 1 : self.rank + 1].tolist()
        negligible = RANK_TOLERANCE * float(self.eigenvalues[0])
        return float("inf") if below <= negligible else float(last / below)

    @property
    def noise_share(self) -> float:
        """Noise variance over signal variance, both summed over features."""
        noise = self.noise_floor * len(self.eigenvalues)
        signal = float(self.eigenvalues.sum()) - noise
        return noise / signal if signal > 0 else float("inf")

    def project(self, second_moment: FloatArray) -> FloatArray:
        """`Bᵀ S B − σ² I`, shape (p, p): the second moment without the sensors' noise."""
        inner = self.basis.T @ second_moment @ self.basis
        return np.asarray((inner + inner.T) / 2 - self.subtracted * np.eye(self.rank))


def reduce_to_rank(client: Client) -> Spectrum:
    """Leading `n_latent`-dimensional space of a client's features, and its noise floor.

    Parameters
    ----------
    client : Client

    Returns
    -------
    Spectrum
    """
    found = _leading(client, None)
    if found.rank + 2 > client.n_features or found.noise_floor == 0:
        return found
    others = [m for label in client.labels for m in client.interventions[label]]
    noise = sensor_noise(client.control, others, client.n_latent)
    if noise.variance is not None:
        found = _leading(client, _scale(noise))
    return replace(found, unevenness=noise.unevenness)


def _scale(noise: SensorNoise) -> FloatArray:
    """What makes all sensors as noisy as the typical one."""
    assert noise.variance is not None
    log = np.log(noise.variance)
    return np.asarray(np.exp(0.5 * (log.mean() - log)))


def _leading(client: Client, scale: FloatArray | None) -> Spectrum:
    """The spectrum of the features times `scale`."""
    exact = client.is_population
    moments = [m for label in client.labels for m in client.interventions[label]]
    # A shift of the mean may be an offset of the sensors, which no latent causes: only exact
    # moments are taken about the control's mean.
    regimes = [
        second_moment_about(m, client.control.mean) if exact else m.covariance for m in moments
    ]

    def scaled(covariance: FloatArray) -> FloatArray:
        return covariance if scale is None else scale[:, None] * covariance * scale

    own = client.control_second_moment()
    control = scaled(own)
    sizes = [m.n for m in moments]
    p, d = client.n_latent, client.n_features
    # Each regime is scaled to the control's trace, so that none dominates the average; one of fewer
    # than 2d rows is mostly noise and counts as much less.
    traces = np.array([np.trace(S) for S in regimes])
    shares = float(np.trace(own)) / np.maximum(traces, np.finfo(np.float64).tiny)
    counts = np.array([1.0 if size is None else min(size / (2.0 * d), 1.0) for size in sizes])
    shares *= counts
    average = (control + scaled(_weighted(regimes, shares))) / (1 + float(counts.sum()))
    values, vectors = np.linalg.eigh(average)
    values, vectors = values[::-1].copy(), vectors[:, ::-1]
    basis = np.ascontiguousarray(vectors[:, :p])
    weakest = float(np.linalg.eigvalsh(basis.T @ control @ basis)[0])
    weights = np.array([client.control.n or 1, *(size or 1 for size in sizes)], dtype=np.float64)
    n = float("inf") if exact else _effective_rows(np.append(1.0, shares), weights)
    floor = 0.0
    if d > p:
        beyond = vectors[:, p:]
        pooled = (weights[0] * control + scaled(_weighted(regimes, weights[1:]))) / weights.sum()
        floor = float(np.sum(beyond * (pooled @ beyond))) / (d - p)
        # The trailing directions were chosen for their low variance, which costs p of n degrees of
        # freedom.
        floor *= 1.0 if exact else n / max(n - p, 1.0)
    if scale is not None:
        basis *= scale[:, None]
    if floor <= RANK_TOLERANCE * values[0]:
        return Spectrum(basis, values, 0.0, d > p, 0.0, weakest, n, scale=scale)
    subtracted = min(floor, MOST_SUBTRACTED * weakest)
    return Spectrum(basis, values, floor, True, subtracted, weakest, n, scale=scale)


def _weighted(matrices: list[FloatArray], weights: FloatArray) -> FloatArray:
    """`Σ_j w_j S_j`."""
    total = np.zeros_like(matrices[0])
    for w, S in zip(weights.tolist(), matrices, strict=True):
        total += w * S
    return total


def _effective_rows(scales: FloatArray, rows: FloatArray) -> float:
    """Size of one sample with the sampling error of the scaled average: `(Σs)² / Σ(s²/n)`."""
    return float(scales.sum() ** 2 / np.sum(scales**2 / rows))
