"""The space the latents live in, when there are more features than latents.

With sensor noise, `X = G Z + ε`, `Cov(ε) = σ² I`: every regime's second moment is
`G Cov(Z) Gᵀ + σ² I`, so all of them share the leading p-dimensional space (the columns of G) and
the floor σ² on the other d − p directions. The floor is measured there, where there is nothing
else, and taken off the leading block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.client.client import RANK_TOLERANCE, Client
from jigsaw_crl.client.extremes import Regimes

__all__ = ["Spectrum", "reduce_to_rank"]

FloatArray = npt.NDArray[np.float64]

# The floor is itself an estimate: taking off more than this share of the weakest direction could
# leave a covariance that is not positive.
MOST_SUBTRACTED = 0.9


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Leading space, noise floor and spectrum of a client.

    Parameters
    ----------
    basis : array, shape (d, r)
        Orthonormal basis of the leading space; r is the client's `n_latent`.
    eigenvalues : array, shape (d,)
        Of the average second moment, largest first.
    noise_floor : float
        σ², the variance of the sensor noise in each direction; 0 when there is none, or when
        there are as many latents as features and it cannot be seen.
    visible : bool
        Could the floor be measured?
    subtracted : float
        What `project` takes off: the floor, or a little less than the weakest direction.
    weakest : float
        Variance of the control along the quietest direction of the leading space.
    n : float
        Effective rows behind the spectrum; infinite for exact moments.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.client.spectrum import reduce_to_rank
    >>> client = jc.simulate.setting("A", 0).client(0)
    >>> space = reduce_to_rank(client)
    >>> space.basis.shape == (client.n_features, client.n_latent), space.noise_floor
    (True, 0.0)
    """

    basis: FloatArray
    eigenvalues: FloatArray
    noise_floor: float
    visible: bool
    subtracted: float
    weakest: float
    n: float

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    @property
    def gap(self) -> float:
        """`λ_r / λ_{r+1}`; infinite when nothing lies beyond, or there is no r+1."""
        if self.rank == len(self.eigenvalues):
            return float("inf")
        below = float(self.eigenvalues[self.rank])
        negligible = RANK_TOLERANCE * float(self.eigenvalues[0])
        return (
            float("inf") if below <= negligible else float(self.eigenvalues[self.rank - 1]) / below
        )

    @property
    def noise_share(self) -> float:
        """Noise variance over signal variance, both summed over features."""
        noise = self.noise_floor * len(self.eigenvalues)
        signal = float(self.eigenvalues.sum()) - noise
        return noise / signal if signal > 0 else float("inf")

    def project(self, second_moment: FloatArray) -> FloatArray:
        """`Bᵀ S B − σ² I`, shape (r, r): what the latents alone contribute."""
        inner = self.basis.T @ second_moment @ self.basis
        return np.asarray((inner + inner.T) / 2 - self.subtracted * np.eye(self.rank))


def reduce_to_rank(client: Client) -> Spectrum:
    """Leading `n_latent`-dimensional space of a client's features, and the noise beside it.

    Parameters
    ----------
    client : Client

    Returns
    -------
    Spectrum
    """
    control = client.control_second_moment()
    regimes = Regimes.of(client)
    sizes = [m.n for label in client.labels for m in client.interventions[label]]
    r, d = client.n_latent, client.n_features
    exact = client.control.n is None
    # Each regime is scaled to the control's trace, so that none rules the average.
    trace = float(np.trace(control))
    scales = trace / np.maximum(regimes.traces(), np.finfo(np.float64).tiny)
    average = (control + regimes.weighted(scales)) / (1 + len(regimes))
    values, vectors = np.linalg.eigh(average)
    values, vectors = values[::-1].copy(), vectors[:, ::-1]
    basis = np.ascontiguousarray(vectors[:, :r])
    weakest = float(np.linalg.eigvalsh(basis.T @ control @ basis)[0])
    weights = np.array([client.control.n or 1, *(m or 1 for m in sizes)], dtype=np.float64)
    n = float("inf") if exact else _effective(np.append(1.0, scales), weights)
    if d == r:
        return Spectrum(basis, values, 0.0, False, 0.0, weakest, n)
    beyond = vectors[:, r:]
    pooled = (weights[0] * control + regimes.weighted(weights[1:])) / weights.sum()
    floor = float(np.sum(beyond * (pooled @ beyond))) / (d - r)
    # The trailing directions were chosen as the quietest, which costs them r of their n degrees of
    # freedom.
    floor *= 1.0 if exact else n / max(n - r, 1.0)
    if floor <= RANK_TOLERANCE * values[0]:
        return Spectrum(basis, values, 0.0, True, 0.0, weakest, n)
    taken = min(floor, MOST_SUBTRACTED * weakest)
    return Spectrum(basis, values, floor, True, taken, weakest, n)


def _effective(scales: FloatArray, rows: FloatArray) -> float:
    """Rows of one sample whose noise is as even as that of the scaled average: `(Σs)²/Σ(s²/n)`."""
    return float(scales.sum() ** 2 / np.sum(scales**2 / rows))
