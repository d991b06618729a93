"""The search for the candidate lines of `readings`, all regimes at once.

F and G of `readings` are climbed by fixed points of their gradients, from the null lines, the
outermost eigenvectors and the mean shift. Every maximum lies in the span of the outermost
eigenvectors of D and of d, Dd, D²d, …: of the outermost eigenvectors alone without a mean, and with
one because u solves `(D² − λD − μ) u = −(w_d/w_D)(u·d) d`, where the rest of D's spectrum is
narrow. So the search works with small matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.client.white import White

# Powers of D applied to the mean shift; with two eigenvectors the span has two dimensions more.
POWERS = 4
# Steps of the fixed point, and the length of the last one.
ASCENTS, CLOSE = 200, 1e-9
# Log likelihoods this close, relatively, are equal up to rounding: the earlier start counts as the
# higher, and no other reading is an improvement. Without a mean the two null lines are equally
# likely.
TIE = 1e-12
# Lines closer than a degree are one candidate (two null lines can be close: where λ is large, their
# angle is about 2‖c‖/λ).
SAME_LINE = 0.9999


@dataclass(frozen=True, eq=False)
class Span:
    """Regimes restricted to a few directions.

    Rows `B` span the outermost eigenvectors and powers of D on d, `DB` are their images; `first`,
    `second` and `d` are `B D Bᵀ`, `B D² Bᵀ` and `B d`.
    """

    B: FloatArray
    DB: FloatArray
    first: FloatArray
    second: FloatArray
    d: FloatArray


def span_of(white: White) -> Span:
    """The directions in which the lines of every regime lie."""
    M, d = white.M, white.d
    r, p = d.shape
    if p <= POWERS + 2:
        B = np.broadcast_to(np.eye(p), (r, p, p))
    else:
        block = [white.eigen.low, white.eigen.high, d]
        for _ in range(POWERS - 1):
            last = block[-1]
            size = np.sqrt(np.einsum("rp,rp->r", last, last))[:, None]
            last = last / np.where(size > 0, size, 1.0)
            block.append((M @ last[:, :, None])[:, :, 0] - last if size.any() else last)
        B = np.ascontiguousarray(np.linalg.qr(np.stack(block, axis=2))[0].mT)
    DB = B @ M - B
    first = B @ DB.mT
    return Span(B, DB, (first + first.mT) / 2, DB @ DB.mT, np.einsum("rkp,rp->rk", B, d))


def search(span: Span, w_mean: FloatArray, w_cov: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The best two maxima of F (slots 0, 1) and the maximum of G (slot 2) of every regime.

    Unit lines in the coordinates of the span, shape (r, 3, k), and F and G there, shape (r, 3):
    −inf where there is none.
    """
    shift = span.d * (w_mean[:, None] > 0)
    ends = np.linalg.eigh(span.first)[1][:, :, [-1, 0]].mT
    rows, (r, k) = np.arange(len(shift)), shift.shape
    x, value = np.zeros((r, 3, k)), np.full((r, 3), -np.inf)
    for slot, free, z in (
        (2, False, unit(np.concatenate([ends, shift[:, None]], axis=1))),
        (0, True, starts(shift, span.first)),
    ):
        found = climb(z, shift, span.first, span.second, (w_mean, w_cov), CLOSE, free=free)
        lam = (found @ span.first * found).sum(axis=2)
        square = (found @ span.second * found).sum(axis=2)
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


def starts(d: FloatArray, D: FloatArray) -> FloatArray:
    """The shift and the two lines of the null cone of D, shape (..., 3, m)."""
    values, vectors = np.linalg.eigh(D)
    a = np.sqrt(np.maximum(values[..., -1:], 0.0)) * vectors[..., -1]
    b = np.sqrt(np.maximum(-values[..., :1], 0.0)) * vectors[..., 0]
    return unit(np.stack([d, a + b, a - b], axis=-2))


def unit(x: FloatArray) -> FloatArray:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-300))


def climb(
    x: FloatArray,
    d: FloatArray,
    D: FloatArray,
    square: FloatArray,
    w: tuple[FloatArray, FloatArray],
    close: float,
    *,
    free: bool = True,
) -> FloatArray:
    """The maximum of F (free) or G to which each of some unit vectors leads, shape (..., s, k).

    A step goes along `w_d (x·d) d + w_D (D²x − λDx + λ²x)` for F and
    `w_d (x·d) d + w_D (λDx + λ²x)` for G, `λ = xᵀDx`.

    Parameters
    ----------
    x : array, shape (..., s, k)
    d : array, shape (..., k)
    D, square : array, shape (..., k, k)
        D and D².
    w : tuple of two arrays, shape (...)
        w_d and w_D.
    close : float
        A shorter step is the last.
    """
    wd, wD = (y[..., None, None] for y in w)
    K, sign = wd * d[..., :, None] * d[..., None, :], 1.0
    if free:
        K, sign = K + wD * square, -1.0
    for _ in range(ASCENTS):
        y = x @ D
        lam = (x * y).sum(axis=-1, keepdims=True)
        new = unit(x @ K + wD * lam * (sign * y + lam * x) + 1e-9 * x)
        moved = float(np.abs(new - x).max())
        x = new
        if moved < close:
            break
    return x
