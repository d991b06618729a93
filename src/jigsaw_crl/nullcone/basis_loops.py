"""Compiled loops of `basis`: everything that is not a large matrix product.

Sums over coordinates may be taken in any order (`reassoc`), which lets the processor add several
at once; the rounding is far below the sampling error.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["off_ancestors", "solve"]


@compiled(fastmath={"reassoc", "contract"}, kept=False)
def _dot(x, y, stop):  # type: ignore[no-untyped-def]
    total = 0.0
    for a in range(stop):
        total += x[a] * y[a]
    return total


@compiled(kept=False)
def _spread(w, F, h, m, both):  # type: ignore[no-untyped-def]
    """`v = w − h ⟨F, w⟩ m` in the first rows of `both`, `w/2` in the others."""
    lines, p = w.shape
    for a in range(lines):
        share = h[a] * _dot(F[a], w[a], p)
        for x in range(p):
            both[a, x] = w[a, x] - share * m[a, x]
            both[lines + a, x] = w[a, x] / 2


@compiled(kept=False)
def _line_errors(v, vectors, F, Mm, mMm, m, h, n, mH, d):  # type: ignore[no-untyped-def]
    """`d`: errors of the lines for multipliers with `v` (see `_spread`) and the whitening's `mH`.

    `N_i m^s` with `N_i = (2/n_i) M_i sym(Σ v mᵀ) M_i` and `M_i = I + nᵀF`. Rank 1: the error is
    fixed up to a multiple of n itself, which no orthogonality sees; the error of D along n shows in
    its length only.
    """
    lines, p = d.shape
    for a in range(lines):
        i = a - a % 2
        u, b = mMm[a, 0], mMm[a, 1]
        # Coefficients of v, F and Mm of both lines.
        f = u * _dot(v[i], vectors[i], p) + b * _dot(v[i + 1], vectors[i], p)
        g = u * _dot(v[i], vectors[i + 1], p) + b * _dot(v[i + 1], vectors[i + 1], p)
        q = _dot(Mm[a], v[i], p)
        t = _dot(Mm[a], v[i + 1], p)
        for x in range(p):
            moved = u * v[i, x] + b * v[i + 1, x] + f * F[i, x] + g * F[i + 1, x]
            d[a, x] = (moved + q * Mm[i, x] + t * Mm[i + 1, x]) / n[a] - mH[a, x]
        share = h[a] * _dot(m[a], d[a], p)
        for x in range(p):
            d[a, x] -= share * F[a, x]


@compiled(kept=False)
def _advance(out, must, precision, square, direction, residual, y):  # type: ignore[no-untyped-def]
    """One step of conjugate gradients, given `out + outᵀ`, the operator's image of `direction`.

    Returns the new scaled square of the residual; 0 if the operator is singular in this direction.
    """
    lines = len(out)
    curvature = 0.0
    for a in range(lines):
        for b in range(a + 1):
            both = out[a, b] + out[b, a] if must[a, b] else 0 * out[a, b]
            out[a, b] = both
            out[b, a] = both
        curvature += 2 * _dot(direction[a], out[a], a) + direction[a, a] * out[a, a]
    if curvature <= 0:
        return 0.0
    alpha = np.float32(square / curvature)
    new = 0.0
    for a in range(lines):
        for b in range(lines):
            y[a, b] += alpha * direction[a, b]
            residual[a, b] -= alpha * out[a, b]
            out[a, b] = residual[a, b] * precision[a, b]
        new += _dot(residual[a], out[a], lines)
    beta = np.float32(new / square)
    for a in range(lines):
        for b in range(lines):
            direction[a, b] = beta * direction[a, b] + out[a, b]
    return new


@compiled(kept=False)
def _errors(y, flat, F, Mm, mMm, m_and_n, h, n, n_eff, w, both, H, mnH, d):  # type: ignore[no-untyped-def]
    """Fill the errors `d` of the lines and `H` of the whitening for multipliers y."""
    lines, p = flat.shape
    m = m_and_n[:lines]
    np.dot(y, flat, w)
    _spread(w, F, h, m, both)
    # H = −(2/n_eff) sym(Σ m vᵀ + ½ Σ n wᵀ)
    np.dot(m_and_n.T, both, H)
    for a in range(p):
        for b in range(a + 1):
            value = (H[a, b] + H[b, a]) / -n_eff
            H[a, b] = value
            H[b, a] = value
    np.dot(m_and_n, H, mnH)
    _line_errors(both, flat, F, Mm, mMm, m, h, n, mnH, d)


@compiled()
def solve(  # type: ignore[no-untyped-def]
    residual, precision, must, flat, F, Mm, mMm, m_and_n, h, n, n_eff, steps, stop, d, H
):
    """Fill the conditional errors `d` of the lines and `H` of the whitening: see `basis`.

    Conjugate gradients from zero, with `residual` the products that must vanish, up to `steps`
    steps or until the scaled square of the residual is at most `stop`.
    """
    lines, p = flat.shape
    w, both, mnH = np.empty_like(flat), np.empty_like(m_and_n), np.empty_like(m_and_n)
    y, out = np.zeros_like(residual), np.empty_like(residual)
    direction = residual * precision
    square = 0.0
    for a in range(lines):
        square += _dot(residual[a], direction[a], lines)
    for _ in range(steps):
        if square <= stop:
            break
        _errors(direction, flat, F, Mm, mMm, m_and_n, h, n, n_eff, w, both, H, mnH, d)
        for a in range(lines):
            for x in range(p):
                d[a, x] -= mnH[lines + a, x] / 2
        np.dot(flat, d.T, out)
        square = _advance(out, must, precision, square, direction, residual, y)
    _errors(y, flat, F, Mm, mMm, m_and_n, h, n, n_eff, w, both, H, mnH, d)


@compiled()
def off_ancestors(unit, gram, above, L, x, rows):  # type: ignore[no-untyped-def]
    """Take the projection on its ancestors' `unit` rows off each of `rows`.

    `above[a, i]`: a is in a block strictly above i's. `L` and `x` are working space. A row that
    depends on those before it up to rounding is left out of the span: its reciprocal pivot is 0.
    """
    p, width = unit.shape
    chosen = np.empty(p, np.int64)
    for i in range(p):
        count = 0
        for a in range(p):
            if above[a, i]:
                chosen[count] = a
                count += 1
        # Cholesky factor of the ancestors' Gram matrix, reciprocals on its diagonal.
        for a in range(count):
            for b in range(a + 1):
                value = gram[chosen[a], chosen[b]] - _dot(L[a], L[b], b)
                if b < a:
                    L[a, b] = value * L[b, b]
                else:
                    L[a, a] = 1.0 / np.sqrt(value) if value > 1e-14 else 0.0
        # Twice is enough: the second pass removes what rounding left of the first.
        for _ in range(2):
            for a in range(count):
                x[a] = (_dot(unit[chosen[a]], rows[i], width) - _dot(L[a], x, a)) * L[a, a]
            for a in range(count - 1, -1, -1):
                x[a] *= L[a, a]
                for b in range(a):
                    x[b] -= L[a, b] * x[a]
            for a in range(count):
                for z in range(width):
                    rows[i, z] -= x[a] * unit[chosen[a], z]
