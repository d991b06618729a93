"""The arithmetic of `basis`, compiled: products of many small matrices, and short solutions.

Sums over coordinates may be taken in any order (`reassoc`), which lets the processor add several
at once; they carry a sampling error anyway.
"""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["errors", "off_ancestors", "solve"]

_FREE = {"reassoc", "contract"}


@nb.njit(cache=True, nogil=True, fastmath=_FREE, error_model="numpy")
def _dot(x, y):  # type: ignore[no-untyped-def]
    total = x[0] * y[0]
    for a in range(1, len(x)):
        total += x[a] * y[a]
    return total


@nb.njit(cache=True, nogil=True, fastmath=_FREE, error_model="numpy")
def errors(y, flat, F, m_and_n, Mm, mMm, h, n, n_eff, d, H, mnH):  # type: ignore[no-untyped-def]
    """Conditional errors d of the lines and H of the whitening for multipliers y; and (m, n) H.

    Rows of `flat`, `F`, `Mm` and `d`, shape (2r, p), are the two lines of each regime; `m_and_n`,
    shape (4r, p), holds all duals and then all lines. See `basis`.
    """
    lines, p = flat.shape
    w = np.dot(y, flat)
    both = np.empty((2 * lines, p), np.float32)
    for a in range(lines):
        share = h[a // 2] * _dot(F[a], w[a])
        for x in range(p):
            both[a, x] = w[a, x] - share * m_and_n[a, x]
            both[lines + a, x] = w[a, x] / 2
    # H = −(2/n_eff) sym(Σ m vᵀ + ½ Σ n wᵀ)
    A = np.dot(m_and_n.T, both)
    for x in range(p):
        for z in range(p):
            H[x, z] = -(A[x, z] + A[z, x]) / n_eff
    np.dot(m_and_n, H, mnH)
    Mv = np.empty((2, p), np.float32)
    for i in range(lines // 2):
        # N_i m^s with N_i = (2/n_i) M_i sym(Σ v mᵀ) M_i and M_i = I + nᵀF
        for s in range(2):
            v = both[2 * i + s]
            first, second = _dot(v, flat[2 * i]), _dot(v, flat[2 * i + 1])
            for x in range(p):
                Mv[s, x] = v[x] + first * F[2 * i, x] + second * F[2 * i + 1, x]
        for s in range(2):
            a = 2 * i + s
            first, second = _dot(Mm[a], both[2 * i]), _dot(Mm[a], both[2 * i + 1])
            for x in range(p):
                moved = mMm[i, s, 0] * Mv[0, x] + mMm[i, s, 1] * Mv[1, x]
                moved += first * Mm[2 * i, x] + second * Mm[2 * i + 1, x]
                d[a, x] = moved / n[i] - mnH[a, x]
            # Rank 1: δn is fixed up to a multiple of n itself, which no orthogonality sees; the
            # error of D along n shows in its length only.
            share = h[i] * _dot(m_and_n[a], d[a])
            for x in range(p):
                d[a, x] -= share * F[a, x]


@nb.njit(cache=True, nogil=True, fastmath=_FREE, error_model="numpy")
def solve(  # type: ignore[no-untyped-def]
    T, must, precision, stop, most, flat, F, m_and_n, Mm, mMm, h, n, n_eff
):
    """Multipliers y with `𝓛 Cov 𝓛ᵀ y = T` on the products that must vanish (zero elsewhere).

    Conjugate gradients, scaled by `precision`, until the scaled residual's square falls to `stop`.
    """
    lines, p = flat.shape
    d, H = np.empty((lines, p), np.float32), np.empty((p, p), np.float32)
    mnH = np.empty((2 * lines, p), np.float32)
    y = np.zeros((lines, lines), np.float32)
    residual = T.copy()
    direction = residual * precision
    square = 0.0
    for a in range(lines):
        square += _dot(residual[a], direction[a])
    for _ in range(most):
        if square <= stop:
            break
        errors(direction, flat, F, m_and_n, Mm, mMm, h, n, n_eff, d, H, mnH)
        for a in range(lines):
            for x in range(p):
                d[a, x] -= mnH[lines + a, x] / 2
        out = np.dot(flat, d.T)
        curvature = 0.0
        for a in range(lines):
            for b in range(a + 1):
                both = out[a, b] + out[b, a] if must[a, b] else np.float32(0)
                out[a, b] = out[b, a] = both
        for a in range(lines):
            curvature += _dot(direction[a], out[a])
        if curvature <= 0:
            break
        alpha = np.float32(square / curvature)
        new = 0.0
        for a in range(lines):
            for b in range(lines):
                y[a, b] += alpha * direction[a, b]
                residual[a, b] -= alpha * out[a, b]
                out[a, b] = residual[a, b] * precision[a, b]
            new += _dot(residual[a], out[a])
        beta = np.float32(new / square)
        for a in range(lines):
            for b in range(lines):
                direction[a, b] = beta * direction[a, b] + out[a, b]
        square = new
    return y


@nb.njit(cache=True, nogil=True, fastmath=_FREE, error_model="numpy")
def off_ancestors(unit, gram, above, members, rows):  # type: ignore[no-untyped-def]
    """Fill `rows[i]` with `unit[i]` less its projection on its ancestors', at unit length.

    `above[a, i]`: a is in a block strictly above i's. Labels come in the order of `members`, those
    of a block together, so that each block's ancestors are factored once.
    """
    p, width = unit.shape
    chosen = np.empty(p, np.int64)
    L, x = np.empty((p, p)), np.empty(p)
    count = 0
    for k in range(p):
        i = members[k]
        same = k > 0
        if same:
            for a in range(p):
                same = same and above[a, i] == above[a, members[k - 1]]
        if not same:
            count = 0
            for a in range(p):
                if above[a, i]:
                    chosen[count] = a
                    count += 1
            _factor(gram, chosen, count, L)
        for z in range(width):
            rows[i, z] = unit[i, z]
        # Twice is enough: the second pass removes what rounding left of the first.
        for _ in range(2):
            for a in range(count):
                x[a] = (
                    (_dot(unit[chosen[a]], rows[i]) - _dot(L[a, :a], x[:a])) * L[a, a]
                    if a
                    else (_dot(unit[chosen[a]], rows[i]) * L[a, a])
                )
            for a in range(count - 1, -1, -1):
                x[a] *= L[a, a]
                for b in range(a):
                    x[b] -= L[a, b] * x[a]
            for a in range(count):
                for z in range(width):
                    rows[i, z] -= x[a] * unit[chosen[a], z]
        length = np.sqrt(_dot(rows[i], rows[i]))
        if length > 0:
            for z in range(width):
                rows[i, z] /= length


@nb.njit(cache=True, nogil=True, fastmath=_FREE, error_model="numpy")
def _factor(gram, chosen, count, L):  # type: ignore[no-untyped-def]
    """Cholesky factor of the chosen rows and columns; its diagonal holds the reciprocals.

    A row that depends on those before it up to rounding gets the reciprocal 0: it is left out.
    """
    for a in range(count):
        for b in range(a + 1):
            value = gram[chosen[a], chosen[b]]
            if b:
                value -= _dot(L[a, :b], L[b, :b])
            if b < a:
                L[a, b] = value * L[b, b]
            else:
                L[a, a] = 1.0 / np.sqrt(value) if value > 1e-14 else 0.0
