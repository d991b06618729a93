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

__all__ = ["Span", "search", "span_of"]

# Powers of D applied to the mean shift; with two eigenvectors the span has two dimensions more.
POWERS = 4
# Steps of the fixed point; a step shorter than CLOSE is the last.
ASCENTS, CLOSE = 200, 1e-9
# A shorter vector has no direction. Heights this close, relatively, are equal up to rounding: the
# earlier start counts as the higher. Without a mean the two null lines are equally likely.
SHORT = TIE = 1e-12
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
    values, vectors = np.linalg.eigh(span.first)
    high, low = vectors[:, :, -1], vectors[:, :, 0]
    shift = span.d * (w_mean[:, None] > 0)
    up = np.sqrt(np.maximum(values[:, -1:], 0.0)) * high
    down = np.sqrt(np.maximum(-values[:, :1], 0.0)) * low
    rows, (r, k) = np.arange(len(shift)), shift.shape
    x, value = np.zeros((r, 3, k)), np.full((r, 3), -np.inf)
    found, height = _climbed(span, [high, low, shift], w_mean, w_cov, free=False)
    best = _highest(height)
    x[:, 2], value[:, 2] = found[rows, best], height[rows, best]
    found, height = _climbed(span, [up + down, up - down, shift], w_mean, w_cov, free=True)
    best = _highest(height)
    x[:, 0], value[:, 0] = found[rows, best], height[rows, best]
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


def _climbed(
    span: Span, starts: list[FloatArray], w_mean: FloatArray, w_cov: FloatArray, *, free: bool
) -> tuple[FloatArray, FloatArray]:
    """Where the fixed point of F (free) or G leads from each start, and the height there.

    A step goes along `K x ∓ w_D λ D x + w_D λ² x`, with K the part of the gradient's matrix that
    does not depend on x. Some points need many steps, so those that have arrived are left behind.
    """
    z = np.stack(starts, axis=1)
    norm = np.linalg.norm(z, axis=2, keepdims=True)
    there = norm[:, :, 0] >= SHORT
    z = np.where(there[:, :, None], z / np.maximum(norm, SHORT), np.eye(z.shape[2])[0])
    r, s, k = z.shape
    d, wd, wD = span.d[:, None], w_mean[:, None, None], w_cov[:, None, None]
    K, sign = wd * d.mT * d, 1.0
    if free:
        K, sign = K + wD * span.second, -1.0
    regime = np.repeat(np.arange(r), s)
    both, w = np.concatenate([K, span.first], axis=2)[regime], w_cov[regime]
    x = z.reshape(r * s, k)
    found, live = x.copy(), np.arange(r * s)
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
    z = found.reshape(r, s, k)
    lam = (z @ span.first * z).sum(axis=2)
    square = (z @ span.second * z).sum(axis=2)
    rest = 0.5 * (square - 0.5 * lam**2) if free else 0.25 * lam**2
    height = 0.5 * wd[:, 0] * (z * d).sum(axis=2) ** 2 + wD[:, 0] * rest
    return z, np.where(there, height, -np.inf)
