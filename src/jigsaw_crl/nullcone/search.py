"""The search for the candidate lines of `readings`, all regimes at once.

F and G of `readings` are climbed by fixed points of their gradients, from the null lines, the
outermost eigenvectors and the mean shift. In the basis of a regime's eigenvectors D is diagonal, so
that a step is a few products of numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.client.white import White

# Steps of the fixed point, and the length of the last one.
ASCENTS, CLOSE = 200, 1e-9
# Log likelihoods this close, relatively, are equal up to rounding: the earlier start counts as the
# higher, and no other reading is an improvement. Without a mean the two null lines are equally
# likely.
TIE = 1e-12
# Lines closer than a degree are one candidate (two null lines can be close: where λ is large, their
# angle is about 2‖c‖/λ).
SAME_LINE = 0.9999


def search(white: White, w_mean: FloatArray, w_cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The best two maxima of F (slots 0, 1) and the maximum of G (slot 2) of every regime.

    Unit lines in the basis of its eigenvectors, shape (r, 3, p), and F and G there, shape (r, 3):
    −inf where there is none.
    """
    change, vectors = white.eigen.values - 1.0, white.eigen.vectors
    (r, p), rows = change.shape, np.arange(len(change))
    shift = (white.d[:, None] @ vectors)[:, 0] * (w_mean[:, None] > 0)
    D, basis = change[:, None], np.broadcast_to(np.eye(p), (r, p, p))
    x, value = np.zeros((r, 3, p)), np.full((r, 3), -np.inf)
    for slot, free, z in (
        (2, False, unit(np.stack([basis[:, -1], basis[:, 0], shift], axis=1))),
        (0, True, starts(shift, change, basis)),
    ):
        found = climb(z, shift, lambda y: y * D, (w_mean, w_cov), CLOSE, free=free)
        lam, square = (found**2 * D).sum(axis=2), (found**2 * D**2).sum(axis=2)
        rest = 0.5 * (square - 0.5 * lam**2) if free else 0.25 * lam**2
        along = (found @ shift[:, :, None])[:, :, 0]
        height = 0.5 * w_mean[:, None] * along**2 + w_cov[:, None] * rest
        height[~z.any(axis=2)] = -np.inf
        best = _highest(height)
        x[:, slot], value[:, slot] = found[rows, best], height[rows, best]
    none = ~np.isfinite(value[:, 0])
    x[none, 0], value[none, 0] = x[none, 2], value[none, 2]
    height[np.abs((found * x[:, :1]).sum(axis=2)) >= SAME_LINE] = -np.inf
    best = _highest(height)
    known = np.isfinite(height[rows, best])
    x[known, 1], value[known, 1] = found[known, best[known]], height[known, best[known]]
    return x, value


def _highest(height: FloatArray) -> IntArray:
    """The first of the highest in each row, up to rounding."""
    most = height.max(axis=1, keepdims=True)
    least = np.where(np.isfinite(most), most - TIE * np.abs(most), most)
    return np.asarray((height >= least).argmax(axis=1))


def starts(d: FloatArray, values: FloatArray, vectors: FloatArray) -> FloatArray:
    """The shift and the two lines of the null cone of D, by its eigenpairs, shape (..., 3, m)."""
    a = np.sqrt(np.maximum(values[..., -1:], 0.0)) * vectors[..., -1]
    b = np.sqrt(np.maximum(-values[..., :1], 0.0)) * vectors[..., 0]
    return unit(np.stack([d, a + b, a - b], axis=-2))


def unit(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300))


def climb(
    x: FloatArray,
    d: FloatArray,
    times: Callable[[FloatArray], FloatArray],
    w: tuple[FloatArray, FloatArray],
    close: float,
    *,
    free: bool = True,
) -> FloatArray:
    """The maximum of F (free) or G to which each of some unit vectors leads, shape (..., s, m).

    A step goes along `w_d (x·d) d + w_D (D²x − λDx + λ²x)` for F and
    `w_d (x·d) d + w_D (λDx + λ²x)` for G, `λ = xᵀDx`.

    Parameters
    ----------
    x : array, shape (..., s, m)
    d : array, shape (..., m)
    times : callable
        D times vectors, shape (..., s, m).
    w : tuple of two arrays, shape (...)
        w_d and w_D.
    close : float
        A shorter step is the last.
    """
    (wd, wD), d = (y[..., None, None] for y in w), d[..., None, :]
    for _ in range(ASCENTS):
        y = times(x)
        lam = (x * y).sum(axis=-1, keepdims=True)
        along = wd * (x * d).sum(axis=-1, keepdims=True) * d
        rest = times(y) - lam * y if free else lam * y
        new = unit(along + wD * (rest + lam**2 * x) + 1e-9 * x)
        moved = float(np.abs(new - x).max())
        x = new
        if moved < close:
            break
    return x
