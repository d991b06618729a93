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
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.sensors import sensor_noise
from jigsaw_crl.moments.checks import RANK_TOLERANCE

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
    weakest : float
        Smallest variance of the control along any direction of the leading space.
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
    weakest: float
    unevenness: float = 0.0
    scale: FloatArray | None = None

    @property
    def visible(self) -> bool:
        """Whether the floor could be estimated."""
        return self.rank < len(self.eigenvalues)

    @property
    def subtracted(self) -> float:
        """The variance that `project` subtracts: the floor, or a little less than `weakest`."""
        return min(self.noise_floor, MOST_SUBTRACTED * self.weakest)

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
    """Leading `n_latent`-dimensional space of a client's features, and its noise floor."""
    found = _leading(client, None)
    if found.rank + 2 > client.n_features or found.noise_floor == 0:
        return found
    noise = sensor_noise(client.control, client.regimes, client.n_latent)
    if noise.variance is not None:
        # All sensors become as noisy as the typical one.
        log = np.log(noise.variance)
        found = _leading(client, np.exp(0.5 * (log.mean() - log)))
    return replace(found, unevenness=noise.unevenness)


def _leading(client: Client, scale: FloatArray | None) -> Spectrum:
    """The spectrum of the features times `scale`."""
    exact, p, d = client.is_population, client.n_latent, client.n_features
    control = client.control_second_moment()
    # A shift of the mean may be an offset of the sensors, which no latent causes: only exact
    # moments are taken about the control's mean.
    regimes = [m.covariance for m in client.regimes]
    if exact:
        regimes = [S for label in client.labels for S in client.second_moments(label)]

    def summed(weights: FloatArray) -> FloatArray:
        total = weights[0] * control
        for w, S in zip(weights[1:].tolist(), regimes, strict=True):
            total += w * S
        return np.asarray(total if scale is None else scale[:, None] * total * scale)

    # Each regime is scaled to the control's trace, so that none dominates the average; one of fewer
    # than 2d rows is mostly noise and counts as much less.
    traces = np.array([np.trace(S) for S in (control, *regimes)])
    counts = np.array([1.0, *(min((m.n or 2 * d) / (2 * d), 1.0) for m in client.regimes)])
    shares = counts * traces[0] / np.maximum(traces, np.finfo(np.float64).tiny)
    values, vectors = np.linalg.eigh(summed(shares) / counts.sum())
    values, vectors = values[::-1].copy(), vectors[:, ::-1]
    basis = np.ascontiguousarray(vectors[:, :p])
    if scale is not None:
        basis *= scale[:, None]
    weakest = float(np.linalg.eigvalsh(basis.T @ control @ basis)[0])
    floor = 0.0
    if d > p:
        rows = np.array([m.n or 1 for m in (client.control, *client.regimes)], dtype=np.float64)
        beyond = vectors[:, p:]
        floor = float(np.sum(beyond * (summed(rows) @ beyond))) / (rows.sum() * (d - p))
        if not exact:
            # The trailing directions were chosen for their low variance, which costs p degrees of
            # freedom of one sample with the sampling error of the average, `(Σs)² / Σ(s²/n)` rows.
            n = float(shares.sum() ** 2 / np.sum(shares**2 / rows))
            floor *= n / max(n - p, 1.0)
        if floor <= RANK_TOLERANCE * values[0]:
            floor = 0.0
    return Spectrum(basis, values, floor, weakest, scale=scale)
