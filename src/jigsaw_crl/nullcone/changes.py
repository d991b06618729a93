"""What the regimes of a client changed, where rows of the control have the covariance I.

Also copies of these moments with an error of the same size added, which show the errors of what is
computed from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.client.white import White

__all__ = ["REPLICAS", "Changes", "changes_of"]

# Copies of the moments with errors added. Densities are those of Student's t with as many degrees
# of freedom, because the covariances come from so many copies.
REPLICAS = 32


@dataclass(frozen=True, eq=False)
class Changes:
    """What the regimes of r labels changed, where rows of the control have the covariance I.

    Parameters
    ----------
    D : array, shape (r, p, p)
        Changes of the covariance, each about its own mean.
    d : array, shape (r, p)
        Shifts of the mean.
    signal : array, shape (p, p)
        Covariance of the control without the sensors' noise.
    n, n_control : array, shape (r,), and float
        Rows that the covariances count for.
    n_mean : array, shape (r,)
        Rows that the means of the regimes count for.
    control_mean : array, shape (r,)
        Variance that the control's mean (and offsets of batches) add to each shift.
    """

    D: FloatArray
    d: FloatArray
    signal: FloatArray
    n: FloatArray
    n_control: float
    n_mean: FloatArray
    control_mean: FloatArray

    def of(self, some: BoolArray) -> Changes:
        """Those of some labels."""
        n, n_mean, control = (x[some] for x in (self.n, self.n_mean, self.control_mean))
        return Changes(self.D[some], self.d[some], self.signal, n, self.n_control, n_mean, control)

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
