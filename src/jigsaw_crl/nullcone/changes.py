"""What the regimes of a client changed, and how well each fits "one latent moved".

Rows of the control have the covariance I. Copies of the moments with an error of the same size
added show the errors of what is computed from them. With d the shift of the mean, D the change of
the covariance, u a unit vector and `P = I − uuᵀ`,

    χ²(u) = w_d |P d|² + ½ w_D ‖P D P‖² ,

least over u, has m(m − 1)/2 degrees of freedom in m dimensions; (m − 1)(m − 2)/2 without the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.nulls import FALSE_ALARM
from jigsaw_crl.client.white import White
from jigsaw_crl.nullcone.search import CLOSE, climb, starts

# Copies of the moments with errors added. Densities are those of Student's t with as many degrees
# of freedom, because the covariances come from so many copies.
REPLICAS = 32
# A regime whose misfit has a larger tail probability fits.
FITTING = 0.1
# The last step of an ascent of a copy, which needs to be exact to a part of its errors only.
ROUGH = 1e-4


@dataclass(frozen=True, eq=False)
class Changes:
    """What the regimes of r labels changed, where rows of the control have the covariance I."""

    D: FloatArray  # changes of the covariance, each about its own mean, shape (r, p, p)
    d: FloatArray  # shifts of the mean, shape (r, p)
    signal: FloatArray  # covariance of the control without the sensors' noise, shape (p, p)
    n: FloatArray  # rows that the covariances count for, shape (r,)
    n_control: float
    n_mean: FloatArray  # rows that the means of the regimes count for, shape (r,)
    # Variance that the control's mean (and offsets of batches) add to each shift, shape (r,).
    control_mean: FloatArray

    @property
    def w_mean(self) -> FloatArray:
        """w_d, shape (r,)."""
        return np.asarray(1.0 / (1.0 / self.n_mean + self.control_mean))

    @property
    def w_cov(self) -> FloatArray:
        """w_D, shape (r,)."""
        return np.asarray(1.0 / (1.0 / self.n + 1.0 / self.n_control))

    def replicas(self) -> tuple[FloatArray, FloatArray]:
        """d, shape (1 + REPLICAS, r, p), and D: as they are, and with errors added once more.

        Errors are drawn for labels by the size of their shifts and in a basis of the changes, so
        that neither the order of the labels nor the coordinates matter.
        """
        rng = np.random.default_rng(0)
        r, p = self.d.shape
        at = np.argsort(np.linalg.norm(self.d, axis=1))
        images = np.einsum("rpq,rq->rp", self.D, self.d)
        Q, upper = np.linalg.qr(np.vstack([self.d[at], images[at]]).T, mode="complete")
        signs = np.ones(p)
        signs[: min(p, 2 * r)] = np.where(np.diagonal(upper) < 0, -1.0, 1.0)
        Q = Q * signs
        values, vectors = np.linalg.eigh(np.eye(p) + self.D)
        # A spread inside a regime is not zero, whatever its estimate.
        scaled = vectors * np.sqrt(np.maximum(values, 0.01))[:, None, :]
        root = scaled @ np.swapaxes(vectors, 1, 2) @ Q

        def drawn(labels: int, *shape: int) -> FloatArray:
            return rng.standard_normal((REPLICAS, labels, *shape))

        def symmetric(labels: int) -> FloatArray:
            G = drawn(labels, p, p)
            return np.asarray((G + np.swapaxes(G, -1, -2)) / np.sqrt(2.0))

        place = np.argsort(at)
        own = symmetric(r)[:, place] / np.sqrt(self.n)[:, None, None]
        N = root @ own @ np.swapaxes(root, 1, 2)
        N -= Q @ symmetric(1) @ Q.T / np.sqrt(self.n_control)
        z = drawn(r, p)[:, place] / np.sqrt(self.n_mean)[:, None]
        e = np.einsum("rpq,crq->crp", root, z)
        e -= drawn(1, p) @ Q.T * np.sqrt(self.control_mean)[:, None]
        return (
            self.d + np.concatenate([np.zeros((1, r, p)), e]),
            self.D + np.concatenate([np.zeros((1, r, p, p)), N]),
        )


def changes_of(white: White, labels: list[int]) -> tuple[Changes, FloatArray]:
    """What the regimes of some labels changed, and the whitening that was used.

    Of several strengths of one label, the covariances are averaged (a mixture of hard interventions
    is hard about its own means) and the clearest shift counts.
    """
    # Rows carry the sensors' noise: coordinates in which their covariance is I.
    rows, errors, p = white.rows, white.errors, white.dimension
    every = rows.M - np.eye(p)
    share = np.zeros((p, p)) if white.noise is None else white.noise
    signal = np.asarray(np.linalg.inv(np.eye(p) + share), dtype=np.float64)
    D, d, n, n_mean, base = [], [], [], [], []
    for label in labels:
        own = np.flatnonzero(white.owner == label)
        weight = white.n[own] / white.n[own].sum()
        length = errors.precision[own] * np.einsum("rp,rp->r", rows.d[own], rows.d[own])
        best = int(own[length.argmax()])
        D.append(np.einsum("r,rab->ab", weight, every[own]))
        d.append(rows.d[best] * float(errors.known[best]))
        n.append(float(white.n[own].sum()))
        n_mean.append(float(errors.n[best]))
        base.append(float(errors.base[best] / errors.n_control))
    changes = Changes(
        np.array(D), np.array(d), signal, np.array(n), white.n_control,
        np.array(n_mean), np.array(base),
    )  # fmt: skip
    return changes, rows.W


# -- one latent moved -----------------------------------------------------------------------------


def ascend(
    x: FloatArray, d: FloatArray, D: FloatArray, w: tuple[FloatArray, FloatArray], close: float
) -> tuple[FloatArray, FloatArray]:
    """The direction u with the least misfit of those that starts lead to, (..., m), and its χ².

    Starts have the shape (..., s, m), d (..., m), w are w_d and w_D.
    """
    x = climb(x, d, lambda z: z @ D, w, close)
    y = x @ D
    lam, along = (x * y).sum(axis=-1), (x @ d[..., None])[..., 0]
    off_mean = (d * d).sum(axis=-1)[..., None] - along**2
    off = 0.5 * ((D * D).sum(axis=(-2, -1))[..., None] - 2.0 * (y * y).sum(axis=-1) + lam**2)
    chi = w[0][..., None] * np.maximum(off_mean, 0.0) + w[1][..., None] * np.maximum(off, 0.0)
    best = chi.argmin(axis=-1)[..., None]
    sign = np.where(np.take_along_axis(along, best, -1) < 0, -1.0, 1.0)
    u = sign * np.take_along_axis(x, best[..., None], -2)[..., 0, :]
    return u, np.take_along_axis(chi, best, -1)[..., 0]


def tail_of(chi: FloatArray, free: float) -> FloatArray:
    """Probability of a misfit as large as this with so many degrees of freedom."""
    return np.asarray(np.maximum(chdtrc(free, chi), 1e-300)) if free else np.ones_like(chi)


class Fits(NamedTuple):
    """How well each regime fits "one latent moved", as in a linear system."""

    tail: FloatArray  # tail probability of its misfit, shape (r,)
    ratio: FloatArray  # misfit over its expectation, shape (r,)
    chance: float  # tail probability of the largest misfit and of the sum of all, together
    # Covariances fit, and the means of most regimes do not: offsets of batches move them all, while
    # a bent response leaves those alone that have no descendants.
    offsets: bool


def fits(changes: Changes) -> Fits:
    """How well the mean and the covariance of each regime fit "one latent moved"."""
    r, p = changes.d.shape
    tail, ratio, chance = _misfits(changes, changes.d, p * (p - 1) / 2.0)
    _, _, alone = _misfits(changes, np.zeros_like(changes.d), (p - 1) * (p - 2) / 2.0)
    # Offsets of .03, .1 or .3 sd: 263 of 282 clients have such misfits in half of the regimes and
    # fits in a quarter at most; none of 51 clients of which means alone showed a bend has.
    half = 2 * int((tail < FALSE_ALARM).sum()) >= r
    offsets = alone > FALSE_ALARM and half and 4 * int((tail > FITTING).sum()) <= r
    return Fits(tail, ratio, chance, offsets)


def _misfits(changes: Changes, d: FloatArray, free: float) -> tuple[FloatArray, FloatArray, float]:
    """Tails of the misfits of all regimes, ratios, and their chance together."""
    D = changes.D
    _, chi = ascend(
        starts(changes.d, *np.linalg.eigh(D)), d, D, (changes.w_mean, changes.w_cov), CLOSE
    )
    r, tail = len(chi), tail_of(chi, free)
    # Regimes share the control's error: their misfits have squared correlations ρ², so that the sum
    # is that of fewer degrees of freedom.
    shared = np.sqrt(changes.w_cov) / np.sqrt(changes.n_control)
    rho = np.outer(shared, shared) ** 2
    np.fill_diagonal(rho, 1.0)
    spread = float(rho.sum()) / r
    every = tail_of(chi.sum() / spread, r * free / spread)
    least = min(r * float(tail.min()), float(every))
    return tail, chi / max(free, 1.0), min(2.0 * least, 1.0)
