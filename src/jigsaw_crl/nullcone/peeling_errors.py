"""Errors of the readers of `peeling`, to first order.

`Changes` are the data of a client; `Removed` are the directions that were taken out of the space
before; `ReaderErrors` propagates the errors of both to what a reader sees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray

__all__ = ["Changes", "ReaderErrors", "Removed"]


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


@dataclass(frozen=True, eq=False)
class Removed:
    """Directions that were removed: orthonormal rows, shape (k, p), and their information."""

    u: FloatArray
    alpha: FloatArray


@dataclass(frozen=True, eq=False)
class ReaderErrors:
    """First-order errors of `x · h_i` for fixed x.

    With `h̃ = (K + D)⁻¹u = size · h`, `g = (K + D)⁻¹ x'` and `x' = (x − Kh (h·x))/size`, because h
    has unit variance,

        δ(x·h) = g·δu − gᵀ N h̃ ,      δu = P (w_d m e + w_D N c)/α ,

    e and N the errors of d and D. A removed direction k whose own error is δ_k (variance 1/α_k per
    direction) turns the space: `e −= δ_k (u_k·d)`, `N −= δ_k bᵀ + b δ_kᵀ` with `b = D u_k` in the
    space, and x·h itself changes by `−(h·δ_k)(u_k·x)`.
    """

    changes: Changes
    B: FloatArray
    left: IntArray
    removed: Removed
    d: FloatArray
    D: FloatArray
    K: FloatArray
    u: FloatArray
    c: FloatArray
    shift: FloatArray
    raw: FloatArray
    h: FloatArray
    size: FloatArray
    inverse: FloatArray
    alpha: FloatArray

    def of_reader(self, i: int, x: FloatArray) -> FloatArray:
        """Covariance of `x[j, 0]·h_i` and `x[j, 1]·h_i`; x has shape (l, 2, m)."""
        changes, at = self.changes, int(self.left[i])
        h, raw, u, c = self.h[i], self.raw[i], self.u[i], self.c[i]
        off = (x - (x @ h)[:, :, None] * (self.K @ h)) / self.size[i]
        g = off @ self.inverse[i]
        Pg = g - (g @ u)[:, :, None] * u
        of_mean = float(changes.w_mean[at] * self.shift[i] / self.alpha[i])
        of_cov = float(changes.w_cov[at] / self.alpha[i])
        S = np.eye(len(u)) + self.D[i]

        total = np.zeros((len(x), 2, 2))
        for metric, n in ((S, changes.n[at]), (np.eye(len(u)), changes.n_control)):
            total += _forms(of_cov * Pg, c, -g, raw, metric) / n
        turn = of_mean * Pg
        total += turn @ S @ np.swapaxes(turn, 1, 2) / changes.n_mean[at]
        total += turn @ np.swapaxes(turn, 1, 2) * changes.control_mean[at]
        for u_k, alpha_k in zip(self.removed.u, self.removed.alpha, strict=True):
            b = self.B.T @ (changes.D[at] @ u_k)
            y = -(of_mean * float(u_k @ changes.d[at]) + of_cov * float(b @ c)) * Pg
            y += -of_cov * (Pg @ b)[:, :, None] * c
            y += float(b @ raw) * g + (g @ b)[:, :, None] * raw
            y -= self._along(u_k, i)[:, :, None] * h
            total += y @ np.swapaxes(y, 1, 2) / alpha_k
        return total

    def _along(self, u_k: FloatArray, i: int) -> FloatArray:
        """`u_k · x` for the shifts and for `2 D_j h_i`, shape (l, 2)."""
        shifts = self.changes.d[self.left] @ u_k
        images = (self.changes.D[self.left] @ u_k) @ (self.B @ self.h[i])
        return np.stack([shifts, 2.0 * images], axis=1)


def _forms(a: FloatArray, b: FloatArray, g: FloatArray, r: FloatArray, S: FloatArray) -> FloatArray:
    """Covariances of `aᵀNb + gᵀNr` for N with `Cov(xᵀNy, x'ᵀNy') = xSx' ySy' + xSy' ySx'`.

    a and g have shape (l, 2, m), the result (l, 2, 2).
    """
    aS, gS = a @ S, g @ S
    bb, rr, br = float(b @ S @ b), float(r @ S @ r), float(b @ S @ r)
    aa, gg = aS @ np.swapaxes(a, 1, 2), gS @ np.swapaxes(g, 1, 2)
    ag = aS @ np.swapaxes(g, 1, 2)
    ab, ar, gb, gr = aS @ b, aS @ r, gS @ b, gS @ r

    def outer(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(x[:, :, None] * y[:, None, :])

    cross = ag * br + outer(ar, gb)
    return np.asarray(
        aa * bb + outer(ab, ab) + gg * rr + outer(gr, gr) + cross + np.swapaxes(cross, 1, 2)
    )
