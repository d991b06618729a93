"""The search for the candidate lines of `arrows`, all regimes at once.

F and G of `arrows` are climbed by fixed points of their gradients, from the
null lines, the outermost eigenvectors and the mean shift; Newton's method finishes F.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray

__all__ = ["search"]

# Steps of the fixed point and of Newton's method; a step shorter than CLOSE is the last, or shorter
# than NEAR where Newton's method follows.
ASCENTS, STEPS, CLOSE, NEAR = 200, 20, 1e-9, 1e-6
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

    def parts(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """`Dx`, `xᵀDx` and `x·d`."""
        y = x @ self.A
        return y, (x * y).sum(axis=2, keepdims=True), (x * self.d).sum(axis=2, keepdims=True)

    def height(self, x: FloatArray) -> FloatArray:
        _, lam, along = self.parts(x)
        square = (x @ self.B * x).sum(axis=2, keepdims=True)
        rest = 0.5 * (square - 0.5 * lam**2) if self.free else 0.25 * lam**2
        return np.asarray((0.5 * self.wd * along**2 + self.wD * rest)[:, :, 0])

    def gradient(self, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The gradient, `Dx` and `xᵀDx`."""
        y, lam, along = self.parts(x)
        bent = x @ self.B - lam * y if self.free else lam * y
        return self.wd * along * self.d + self.wD * bent, y, lam

    def ascended(self, x: FloatArray) -> FloatArray:
        """Where the fixed point leads from x.

        A step goes along `K x ∓ w_D λ D x + w_D λ² x`, with K the part of the gradient's matrix
        that does not depend on x. Some points need many steps, so those that have arrived are left
        behind.
        """
        r, s, k = x.shape
        K, sign = self.wd * np.swapaxes(self.d, 1, 2) * self.d, 1.0
        if self.free:
            K, sign = K + self.wD * self.B, -1.0
        close = NEAR if self.free else CLOSE
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
            moving = np.einsum("mk,mk->m", off, off) >= close**2
            x = new
            if not moving.all():
                found[live] = x
                live, x, both, w = live[moving], x[moving], both[moving], w[moving]
                if not len(live):
                    break
        found[live] = x
        return found.reshape(r, s, k)

    def finished(self, x: FloatArray) -> FloatArray:
        """Newton steps on the sphere from near a maximum of F.

        Where nothing holds a line the fixed point converges slowly, and where it stops would depend
        on where it began.
        """
        k = x.shape[2]
        moving, height = np.ones(x.shape[:2], dtype=bool), self.height(x)
        for _ in range(STEPS):
            g, y, lam = self.gradient(x)
            own = (x * g).sum(axis=2, keepdims=True)
            H = (self.wd * self.d)[..., None] * self.d[:, :, None]
            H = H + self.wD[..., None] * (
                self.B[:, None] - lam[..., None] * self.A[:, None] - 2.0 * _outer(y, y)
            )
            # On the tangent space, P H P − own P with P = I − x xᵀ.
            P = np.eye(k) - _outer(x, x)
            H, g = P @ H @ P - own[..., None] * P, g - own * x
            scale = np.abs(own[:, :, 0]) + np.linalg.norm(H, axis=(2, 3)) + 1e-300
            moving &= np.linalg.norm(g, axis=2) >= 1e-13 * scale
            # Off the tangent space the matrix is made negative definite.
            down = scale[..., None, None] * _outer(x, x) - H
            moving &= np.linalg.eigvalsh(down)[:, :, 0] > 1e-12 * scale
            if not moving.any():
                break
            down[~moving] = np.eye(k)
            new = _unit(x + np.linalg.solve(down, g[..., None])[..., 0])
            reached = self.height(new)
            moving &= reached >= height
            x = np.where(moving[:, :, None], new, x)
            height = np.where(moving, reached, height)
        return x


def _outer(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(x[..., :, None] * y[..., None, :])


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
    values: FloatArray,
    vectors: FloatArray,
    w_mean: FloatArray,
    w_cov: FloatArray,
    same: float,
    x: FloatArray,
    value: FloatArray,
) -> None:
    """Fill the best two maxima of F (slots 0, 1) and the maximum of G (slot 2) of every regime.

    `first`, `second` and `d` are D, D² and the shift in the coordinates of a span, shapes
    (r, k, k), (r, k, k) and (r, k); `values` and `vectors` are the eigenpairs of `first`, vectors
    in rows. `x` gets the lines, shape (r, 3, k), `value` the likelihoods.
    """
    given = first, second, d[:, None], w_mean[:, None, None], w_cov[:, None, None]
    high, low = vectors[:, -1], vectors[:, 0]
    shift = _unit(d) * (w_mean[:, None] > 0)
    up = np.sqrt(np.maximum(values[:, -1:], 0.0)) * high
    down = np.sqrt(np.maximum(-values[:, :1], 0.0)) * low
    rows = np.arange(len(d))

    def climbed(starts: list[FloatArray], free: bool) -> tuple[FloatArray, FloatArray]:
        hill = _Hill(*given, free)
        z = _unit(np.stack(starts, axis=1))
        there = np.linalg.norm(z, axis=2) > 0.5
        z[~there] = np.eye(z.shape[2])[0]
        z = hill.ascended(z)
        z = hill.finished(z) if free else z
        return z, np.where(there, hill.height(z), -np.inf)

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
