"""The search for the candidate lines of `readings`, all regimes at once.

F and G of `readings` are climbed by fixed points of their gradients, from the null lines, the
outermost eigenvectors and the mean shift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray

__all__ = ["search"]

# Steps of the fixed point; a step shorter than CLOSE is the last.
ASCENTS, CLOSE = 200, 1e-9
# A shorter vector has no direction.
SHORT = 1e-12
# Heights this close, relatively, are equal up to rounding: the earlier start counts as the higher.
# Without a mean the two null lines are equally likely.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class _Hill:
    """F (free) or G of every regime; points have shape (r, s, k)."""

    A: FloatArray
    B: FloatArray
    d: FloatArray
    wd: FloatArray
    wD: FloatArray
    free: bool

    def height(self, x: FloatArray) -> FloatArray:
        lam = (x @ self.A * x).sum(axis=2)
        along = (x * self.d).sum(axis=2)
        square = (x @ self.B * x).sum(axis=2)
        rest = 0.5 * (square - 0.5 * lam**2) if self.free else 0.25 * lam**2
        return np.asarray(0.5 * self.wd[:, 0] * along**2 + self.wD[:, 0] * rest)

    def climbed(self, x: FloatArray) -> FloatArray:
        """Where the fixed point leads from x.

        A step goes along `K x ∓ w_D λ D x + w_D λ² x`, with K the part of the gradient's matrix
        that does not depend on x. Some points need many steps, so those that have arrived are left
        behind.
        """
        r, s, k = x.shape
        K, sign = self.wd * np.swapaxes(self.d, 1, 2) * self.d, 1.0
        if self.free:
            K, sign = K + self.wD * self.B, -1.0
        regime = np.repeat(np.arange(r), s)
        both, w = np.concatenate([K, self.A], axis=2)[regime], self.wD[regime, 0, 0]
        x = x.reshape(r * s, k)
        found = x.copy()
        live = np.arange(r * s)
        for _ in range(ASCENTS):
            images = (x[:, None] @ both)[:, 0]
            y = images[:, k:]
            lam = np.einsum("mk,mk->m", x, y)
            bent = w * lam
            new = images[:, :k] + (sign * bent)[:, None] * y + (bent * lam + 1e-9)[:, None] * x
            norm = np.sqrt(np.einsum("mk,mk->m", new, new))
            new /= np.maximum(norm, SHORT)[:, None]
            off = new - x
            moving = np.einsum("mk,mk->m", off, off) >= CLOSE**2
            x = new
            if not moving.all():
                found[live] = x
                live, x, both, w = live[moving], x[moving], both[moving], w[moving]
                if not len(live):
                    break
        found[live] = x
        return found.reshape(r, s, k)


def _unit(x: FloatArray) -> FloatArray:
    """Unit vectors; those of no length stay."""
    norm = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.asarray(np.divide(x, norm, out=x.copy(), where=norm >= SHORT))


def _highest(height: FloatArray) -> IntArray:
    """The first of the highest in each row, up to rounding."""
    most = height.max(axis=1, keepdims=True)
    least = np.where(np.isfinite(most), most - TIE * np.abs(most), most)
    return np.asarray((height >= least).argmax(axis=1))


def search(
    first: FloatArray,
    second: FloatArray,
    d: FloatArray,
    w_mean: FloatArray,
    w_cov: FloatArray,
    same: float,
) -> tuple[FloatArray, FloatArray]:
    """The best two maxima of F (slots 0, 1) and the maximum of G (slot 2) of every regime.

    Parameters
    ----------
    first, second, d : array, shapes (r, k, k), (r, k, k) and (r, k)
        D, D² and the shift in the coordinates of a span.
    w_mean, w_cov : array, shape (r,)
    same : float
        Lines whose cosine is larger are one.

    Returns
    -------
    x : array, shape (r, 3, k)
        Unit lines.
    height : array, shape (r, 3)
        F and G there; −inf where there is none.
    """
    values, vectors = np.linalg.eigh(first)
    high, low = vectors[:, :, -1], vectors[:, :, 0]
    shift = _unit(d) * (w_mean[:, None] > 0)
    up = np.sqrt(np.maximum(values[:, -1:], 0.0)) * high
    down = np.sqrt(np.maximum(-values[:, :1], 0.0)) * low
    rows = np.arange(len(d))
    given = first, second, d[:, None], w_mean[:, None, None], w_cov[:, None, None]

    def climbed(starts: list[FloatArray], free: bool) -> tuple[FloatArray, FloatArray]:
        hill = _Hill(*given, free)
        z = _unit(np.stack(starts, axis=1))
        there = np.linalg.norm(z, axis=2) > 0.5
        z[~there] = np.eye(z.shape[2])[0]
        z = hill.climbed(z)
        return z, np.where(there, hill.height(z), -np.inf)

    x, value = np.zeros((len(d), 3, d.shape[1])), np.full((len(d), 3), -np.inf)
    found, height = climbed([high, low, shift], free=False)
    best = _highest(height)
    x[:, 2], value[:, 2] = found[rows, best], height[rows, best]
    found, height = climbed([up + down, up - down, shift], free=True)
    none = ~np.isfinite(height).any(axis=1)
    best = _highest(height)
    x[:, 0], value[:, 0] = found[rows, best], height[rows, best]
    x[none, 0], value[none, 0] = x[none, 2], value[none, 2]
    cosine = np.abs((found * x[:, :1]).sum(axis=2))
    height[cosine >= same] = -np.inf
    other = _highest(height)
    known = np.isfinite(height[rows, other])
    x[known, 1], value[known, 1] = found[known, other[known]], height[known, other[known]]
    return x, value
