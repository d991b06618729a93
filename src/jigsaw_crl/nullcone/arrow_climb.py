"""The search for the candidate lines of `arrows`, one regime after the other, compiled."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled
from jigsaw_crl.nullcone.arrow_search import TIE

__all__ = ["climb"]


@compiled(kept=False)
def _ascend(A, B, d, wd, wD, free, x, y):  # type: ignore[no-untyped-def]
    """Climb F (free) or G from x, in place; the value reached. A = BDBᵀ, B = BD²Bᵀ."""
    k = len(x)
    for _ in range(200):
        lam, along = 0.0, 0.0
        for a in range(k):
            along += x[a] * d[a]
            y[a] = 0.0
            for b in range(k):
                y[a] += A[a, b] * x[b]
            lam += x[a] * y[a]
        norm = 0.0
        for a in range(k):
            second = 0.0
            if free:
                for b in range(k):
                    second += B[a, b] * x[b]
                step = wD * (second - lam * y[a])
            else:
                step = wD * lam * y[a]
            y[a] = wd * along * d[a] + step + (wD * lam * lam + 1e-9) * x[a]
            norm += y[a] * y[a]
        norm = np.sqrt(norm)
        change = 0.0
        for a in range(k):
            new = y[a] / norm
            change += (new - x[a]) ** 2
            x[a] = new
        if change < 1e-18:
            break
    return _height(A, B, d, wd, wD, free, x)


@compiled(kept=False)
def _height(A, B, d, wd, wD, free, x):  # type: ignore[no-untyped-def]
    """F (free) or G at x."""
    k = len(x)
    lam, along, square = 0.0, 0.0, 0.0
    for a in range(k):
        along += x[a] * d[a]
        for b in range(k):
            lam += x[a] * A[a, b] * x[b]
            square += x[a] * B[a, b] * x[b]
    rest = 0.5 * (square - 0.5 * lam * lam) if free else 0.25 * lam * lam
    return 0.5 * wd * along * along + wD * rest


@compiled(kept=False)
def _newton(A, B, d, wd, wD, free, x, height, y, g, H, new):  # type: ignore[no-untyped-def]
    """Newton steps on the sphere from near a maximum of F, in place; the value reached.

    Where nothing holds a line the fixed point converges slowly, and where it stops would depend on
    where it began. `y`, `g`, `H` and `new` are working space.
    """
    k = len(x)
    for _ in range(20):
        lam, along = 0.0, 0.0
        for a in range(k):
            y[a] = 0.0
            for b in range(k):
                y[a] += A[a, b] * x[b]
            lam += x[a] * y[a]
            along += x[a] * d[a]
        own = 0.0
        for a in range(k):
            second = 0.0
            for b in range(k):
                second += B[a, b] * x[b]
            g[a] = wd * along * d[a] + wD * (second - lam * y[a])
            own += x[a] * g[a]
        # The Hessian on the tangent space, P H P − own P with P = I − x xᵀ; `new` holds H x.
        twice = 0.0
        for a in range(k):
            new[a] = 0.0
            for b in range(k):
                H[a, b] = wd * d[a] * d[b] + wD * (B[a, b] - lam * A[a, b] - 2.0 * y[a] * y[b])
                new[a] += H[a, b] * x[b]
            twice += x[a] * new[a]
        size, steep = 0.0, 0.0
        for a in range(k):
            for b in range(k):
                H[a, b] += (twice + own) * x[a] * x[b] - new[a] * x[b] - x[a] * new[b]
                if a == b:
                    H[a, b] -= own
                size += H[a, b] ** 2
            g[a] -= own * x[a]
            steep += g[a] ** 2
        scale = abs(own) + np.sqrt(size) + 1e-300
        if np.sqrt(steep) < 1e-13 * scale:
            break
        # Off the tangent space the matrix is made negative definite.
        for a in range(k):
            for b in range(k):
                H[a, b] = scale * x[a] * x[b] - H[a, b]
        if not _solved(H, g, 1e-12 * scale):
            break
        norm = 0.0
        for a in range(k):
            new[a] = x[a] + g[a]
            norm += new[a] ** 2
        for a in range(k):
            new[a] /= np.sqrt(norm)
        reached = _height(A, B, d, wd, wD, free, new)
        if reached < height:
            break
        for a in range(k):
            x[a] = new[a]
        height = reached
    return height


@compiled(kept=False)
def _solved(H, g, least):  # type: ignore[no-untyped-def]
    """Replace g by `H⁻¹ g` by Cholesky's method; False if a pivot of H is below `least`."""
    k = len(g)
    for a in range(k):
        for b in range(a + 1):
            value = H[a, b]
            for c in range(b):
                value -= H[a, c] * H[b, c]
            if a == b:
                if value <= least:
                    return False
                H[a, a] = np.sqrt(value)
            else:
                H[a, b] = value / H[b, b]
    for a in range(k):
        for c in range(a):
            g[a] -= H[a, c] * g[c]
        g[a] /= H[a, a]
    for a in range(k - 1, -1, -1):
        for c in range(a + 1, k):
            g[a] -= H[c, a] * g[c]
        g[a] /= H[a, a]
    return True


@compiled(kept=False)
def _combined(x, wx, y, wy, out):  # type: ignore[no-untyped-def]
    """The unit vector of `wx · x + wy · y` in `out`; False if there is none."""
    norm = 0.0
    for a in range(len(out)):
        out[a] = wx * x[a] + wy * y[a]
        norm += out[a] ** 2
    norm = np.sqrt(norm)
    if norm < 1e-12:
        return False
    for a in range(len(out)):
        out[a] /= norm
    return True


@compiled(kept=False)
def _above(one, other):  # type: ignore[no-untyped-def]
    """Is a height above another by more than rounding?"""
    return one - other > TIE * abs(one)


@compiled()
def climb(first, second, d, values, vectors, w_mean, w_cov, same, x, value):  # type: ignore[no-untyped-def]
    """Fill the best two maxima of F (slots 0, 1) and the maximum of G (slot 2) of every regime.

    `first`, `second` and `d` are D, D² and the shift in the coordinates of a span, shapes
    (r, k, k), (r, k, k) and (r, k); `values` and `vectors` are the eigenpairs of `first`, vectors
    in rows. `x` gets the lines, shape (r, 3, k), `value` the likelihoods.
    """
    r, k = d.shape
    y, g, new, H = np.empty(k), np.empty(k), np.empty(k), np.empty((k, k))
    z, found, height = np.empty(k), np.empty((3, k)), np.empty(3)
    for j in range(r):
        A, B, wd, wD = first[j], second[j], w_mean[j], w_cov[j]
        low, high = vectors[j, 0], vectors[j, k - 1]
        root_high = np.sqrt(max(values[j, k - 1], 0.0))
        root_low = np.sqrt(max(-values[j, 0], 0.0))
        # Neither a literal number nor a literal truth: numba would compile what they are passed to
        # once for each.
        n = np.int64(0)
        for free in (True, False):
            for s in range(3):
                if s == 2:
                    there = wd > 0.0 and _combined(d[j], 1.0, d[j], 0.0, z)
                elif free:
                    there = _combined(high, root_high, low, (1 - 2 * s) * root_low, z)
                else:
                    there = _combined(low if s else high, 1.0, low, 0.0, z)
                if not there:
                    continue
                top = _ascend(A, B, d[j], wd, wD, free, z, y)
                if free:
                    height[n] = _newton(A, B, d[j], wd, wD, free, z, top, y, g, H, new)
                    for a in range(k):
                        found[n, a] = z[a]
                    n += 1
                elif _above(top, value[j, 2]):
                    value[j, 2] = top
                    for a in range(k):
                        x[j, 2, a] = z[a]
        _keep_two(found, height, n, same, x[j], value[j])
        if n == 0:
            value[j, 0] = value[j, 2]
            for a in range(k):
                x[j, 0, a] = x[j, 2, a]


@compiled(kept=False)
def _keep_two(found, height, n, same, x, value):  # type: ignore[no-untyped-def]
    """The best of n lines in slot 0, and the best that differs from it in slot 1."""
    best, other = -1, -1
    for s in range(n):
        if best < 0 or _above(height[s], height[best]):
            best = s
    for s in range(n):
        cosine = 0.0
        for a in range(found.shape[1]):
            cosine += found[s, a] * found[best, a]
        if abs(cosine) < same and (other < 0 or _above(height[s], height[other])):
            other = s
    for slot in range(2):
        chosen = best if slot == 0 else other
        if chosen >= 0:
            value[slot] = height[chosen]
            for a in range(found.shape[1]):
                x[slot, a] = found[chosen, a]
