"""Moments of samples, in memory that does not grow with their number.

A regime is `X = G Z_k` with `Z_k = B E`: E the independent noises of all latents, B the client's
rows of `(I − A)⁻¹`. Where an intervention acts in a share of the rows only, a regime is a mixture
of two such laws. If the system is not linear, Z is computed latent by latent, causes first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Literal

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.truth.simulate.sem import SEM
from jigsaw_crl.truth.simulate.systems import System

Noise = Literal["gaussian", "laplace"]
NOISES: dict[str, Noise] = {"gaussian": "gaussian", "laplace": "laplace"}

# Laplace noise is drawn this many rows at a time: 64 latents then take 16 MB.
CHUNK = 32_768


@dataclass(frozen=True, eq=False)
class Regime:
    """One regime of one client: G, B, and the variances and means of the noises.

    With `otherwise`, this is the law of a share of the rows, those in which the intervention acts,
    and the others follow that one. If the system is not linear, `latents` gives Z_k from the
    noises, and there are no exact moments.
    """

    mixing: FloatArray
    effects: FloatArray
    variances: FloatArray
    means: FloatArray
    otherwise: Regime | None = None
    penetrance: float = 1.0
    latents: Callable[[FloatArray], FloatArray] | None = None

    @classmethod
    def of(
        cls, sem: SEM, nodes: IntArray, mixing: FloatArray, system: System | None = None
    ) -> Regime:
        """The law of the client that accesses `nodes`; the system is linear if it is None."""
        effects = sem.total_effects()[nodes]
        latents = None if system is None else lambda E: system.latents(sem.A, E)[:, nodes]
        return cls(mixing, effects, sem.variances, sem.means, latents=latents)

    def latent_moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of Z_k."""
        B = self.effects
        mean, covariance = B @ self.means, (B * self.variances) @ B.T
        if self.otherwise is None:
            return mean, covariance
        share, rest = self.penetrance, 1 - self.penetrance
        mean_0, covariance_0 = self.otherwise.latent_moments()
        between = share * rest * np.outer(mean - mean_0, mean - mean_0)
        return share * mean + rest * mean_0, share * covariance + rest * covariance_0 + between


def population(regime: Regime) -> Moments:
    """The exact moments of X."""
    mean, covariance = regime.latent_moments()
    return _mixed(None, mean, covariance, regime.mixing)


def sample_moments(regime: Regime, n: int, noise: Noise, rng: np.random.Generator) -> Moments:
    """Mean and covariance (divisor n) of n rows of X."""
    if regime.otherwise is not None:
        acting = int(rng.binomial(n, regime.penetrance))
        shares = ((replace(regime, otherwise=None), acting), (regime.otherwise, n - acting))
        parts = [sample_moments(law, size, noise, rng) for law, size in shares if size]
        return reduce(Moments.merge, parts)
    draw = _gaussian if noise == "gaussian" else _laplace
    mean, covariance = draw(regime, n, rng)
    return _mixed(n, mean, covariance, regime.mixing)


def rows_from_noise(regime: Regime, E: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Rows of X whose noises, divided by their standard deviations, are the rows of E."""
    if regime.otherwise is not None:
        acts = rng.random(len(E)) < regime.penetrance
        rows = rows_from_noise(regime.otherwise, E, rng)
        rows[acts] = rows_from_noise(replace(regime, otherwise=None), E[acts], rng)
        return rows
    E = regime.means + E * np.sqrt(regime.variances)
    if regime.latents is not None:
        return np.asarray(regime.latents(E) @ regime.mixing.T, dtype=np.float64)
    return np.asarray(E @ (regime.mixing @ regime.effects).T, dtype=np.float64)


def _mixed(n: int | None, mean: FloatArray, covariance: FloatArray, G: FloatArray) -> Moments:
    mixed = G @ covariance @ G.T
    return Moments(n, G @ mean, (mixed + mixed.T) / 2)


def _gaussian(regime: Regime, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Drawn from their laws: the mean is N(μ, C/n), n times the covariance Wishart(C, n − 1).

    Bartlett: with `C = L Lᵀ` the Wishart matrix is `L T Tᵀ Lᵀ`, T lower triangular with independent
    N(0, 1) below the diagonal and `T_ii² ~ χ²(n − 1 − i)`. The cost does not depend on n.
    """
    mean, C = regime.latent_moments()
    p = len(mean)
    L = np.linalg.cholesky(C)
    if n <= p:  # the rows of a small share: too few for a Wishart density
        rows = rng.standard_normal((n, p)) @ L.T
        centre = rows.mean(axis=0)
        return mean + centre, (rows - centre).T @ (rows - centre) / n
    T = np.tril(rng.standard_normal((p, p)), -1)
    T[np.diag_indices(p)] = np.sqrt(rng.chisquare(n - 1 - np.arange(p)))
    factor = L @ T
    return mean + L @ rng.standard_normal(p) / np.sqrt(n), factor @ factor.T / n


def _laplace(regime: Regime, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Computed from rows that are drawn chunk by chunk."""
    # Noise that does not reach this client is not drawn.
    used = np.flatnonzero(np.any(regime.effects != 0, axis=0))
    total: Moments | None = None
    for start in range(0, n, CHUNK):
        rows = standard_noise(min(CHUNK, n - start), len(used), "laplace", rng)
        mean = rows.mean(axis=0)
        rows -= mean
        part = Moments(len(rows), mean, rows.T @ rows / len(rows))
        total = part if total is None else total.merge(part)
    assert total is not None  # n >= 1
    B = regime.effects[:, used] * np.sqrt(regime.variances[used])
    return regime.effects @ regime.means + B @ total.mean, B @ total.covariance @ B.T


def standard_noise(n: int, p: int, noise: Noise, rng: np.random.Generator) -> FloatArray:
    """Independent noise of variance 1, shape (n, p)."""
    if noise == "gaussian":
        return rng.standard_normal((n, p))
    # The difference of two unit exponentials is Laplace with scale 1, whose variance is 2.
    E = rng.standard_exponential((n, p))
    E -= rng.standard_exponential((n, p))
    E *= np.sqrt(0.5)
    return E
