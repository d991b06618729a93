"""All regimes of a client in coordinates in which its control is white.

With `S_j` the second moment of regime j (about its own mean; exact moments: about the control's),
Ψ the noise of the sensors and `W (S₀ − Ψ) Wᵀ = I`,

    M_j = W (S_j − Ψ) Wᵀ ,       d_j = W (μ_j − μ₀) .

The checks and the recovery read the same `White`. Rows carry the sensors' noise, so that what is
compared with the null of two samples are the eigenvalues of `M_j + noise` against `I + noise`, with
`noise = W Ψ Wᵀ`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jigsaw_crl.base.algebra import inverse_square_root
from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.client.batches import MeanErrors, batch_means
from jigsaw_crl.client.noise import NoiseModel, noise_model

if TYPE_CHECKING:
    from jigsaw_crl.client.client import Client

# Rounding in few dimensions is that of so many: every step of the computation rounds. Of 87,000
# products of lines that vanish, of 3,000 exact clients with 2 to 14 latents, the largest had an
# error of 0.08 eps·κ in units of its bound. It is a quarter of what passes for zero
# (`exact.IS_ZERO`); with p itself, in 2 dimensions, it was more.
LEAST_DIMENSION = 30


class Eigen(NamedTuple):
    """Eigenpairs of every regime, lowest value first."""

    values: FloatArray  # shape (r, p)
    vectors: FloatArray  # unit columns, shape (r, p, p)


@dataclass(frozen=True, eq=False)
class White:
    """Regimes in coordinates in which the control is white; r regimes in p dimensions."""

    dimension: int  # p
    space: NoiseModel  # the space of the latents and the noise of the sensors
    W: FloatArray  # shape (p, n_features)
    M: FloatArray  # shape (r, p, p)
    d: FloatArray  # shape (r, p)
    noise: FloatArray | None  # of the sensors in these coordinates, shape (p, p); None without any
    n: FloatArray  # rows of the regimes, shape (r,); of exact moments, so many that rounding errs
    n_control: float
    # Y, the error of the whitening, shape (p, p): a form tr(S H) of its relative error H has the
    # variance 2 tr(S Y S). See `nullcone.judge`; I/n_control before regimes are pooled.
    whitening: FloatArray
    # Rows behind the whitening where each regime moved it, shape (r,): the least of its plane.
    n_eff: FloatArray
    owner: IntArray  # label of each regime, shape (r,); a label has several for several strengths
    errors: MeanErrors  # of the shifts d
    exact: bool
    carried: FloatArray  # `(S₀ − Ψ) Wᵀ`: how far the features move when these coordinates do

    @cached_property
    def n_pooled(self) -> float:
        """Rows behind the whitening, along a typical direction."""
        return float(1.0 / np.median(np.linalg.eigvalsh(self.whitening)))

    @property
    def size(self) -> FloatArray:
        """Size of one sample as uncertain as a regime against the whitening, shape (r,)."""
        return np.asarray(1.0 / (1.0 / self.n + 1.0 / self.n_eff))

    @cached_property
    def metrics(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of the control's rows with the sensors' noise, and Y with it."""
        I, noise = np.eye(self.dimension), 0.0 if self.noise is None else self.noise
        return I + noise, self.whitening + noise * (np.trace(self.whitening) / self.dimension)

    @cached_property
    def eigen(self) -> Eigen:
        return Eigen(*np.linalg.eigh(self.M))

    @cached_property
    def rows(self) -> White:
        """The same with the sensors' noise, which the rows have, whitened with it."""
        if self.noise is None:
            return self
        root = inverse_square_root(np.eye(self.dimension) + self.noise)
        return replace(self, M=self.M + self.noise, noise=None).moved(root)

    def moved(self, step: FloatArray) -> White:
        """In the coordinates `step x`."""
        M = step @ self.M @ step.T
        noise = None if self.noise is None else step @ self.noise @ step.T
        M = (M + np.swapaxes(M, 1, 2)) / 2
        carried = self.carried @ np.linalg.inv(step)
        return replace(self, W=step @ self.W, M=M, d=self.d @ step.T, noise=noise, carried=carried)

    def counting(self, factor: float) -> White:
        """The same with the errors of so many times fewer rows, and without shifts of the means."""
        rows = {name: getattr(self, name) / factor for name in ("n", "n_control", "n_eff")}
        Y, d = self.whitening * factor, np.zeros_like(self.d)
        return replace(self, **rows, whitening=Y, d=d)


def whiten(client: Client) -> White:
    """A client's regimes, whitened by its control; `Client.white` keeps it.

    Sensors that bend are not read: W is zero there. The space is that of the others.
    """
    if client.bent:
        own = np.array([x not in client.bent for x in client.features])
        white, W = client.linear.white, np.zeros((client.n_latent, len(own)))
        W[:, own], carried = white.W, client.control_second_moment[:, own] @ white.W.T
        carried[own] = white.carried
        return replace(white, W=W, carried=carried)
    space, control = noise_model(client), client.control_second_moment
    base = space.basis.T @ (control - np.diag(space.sensors)) @ space.basis
    W = inverse_square_root(base) @ space.basis.T
    noise = (W * space.sensors) @ W.T if space.sensors.any() else None
    of_rows = W if noise is None else inverse_square_root(np.eye(len(W)) + noise) @ W
    shifts, errors = batch_means(client, of_rows)
    d = shifts @ W.T
    M = np.array([W @ m.covariance @ W.T for m in client.regimes])
    n, n0 = np.array([m.n or 0.0 for m in client.regimes]), float(client.control.n or 0)
    if client.is_population:
        M += d[:, :, None] * d[:, None, :]
        # Second moments given to machine precision, whitened by a matrix of condition number κ,
        # carry relative errors of about eps·κ; an estimate from n rows carries 1/√n.
        size, eps = np.linalg.eigvalsh(base), float(np.finfo(np.float64).eps)
        n0 = 1.0 / (max(len(W), LEAST_DIMENSION) * eps * max(float(size[-1] / size[0]), 1.0)) ** 2
        n = np.full(len(M), n0)
    if noise is not None:
        M -= noise
    owner = np.repeat(np.arange(len(client.labels)), [*map(len, client.interventions.values())])
    return White(
        dimension=len(W),
        space=space,
        W=W,
        M=(M + np.swapaxes(M, 1, 2)) / 2,
        d=d,
        noise=noise,
        n=n,
        n_control=n0,
        whitening=np.eye(len(W)) / n0,
        n_eff=np.full(len(M), n0),
        owner=owner,
        errors=errors,
        exact=client.is_population,
        carried=control @ W.T - (W * space.sensors).T,
    )
