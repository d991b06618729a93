"""Compiled power sums of a block of rows, and their merging into running sums.

Importing this module loads numba, so `stream` imports it when the first block is full. Explicit
signatures let each function be compiled once, for read-only and other rows alike.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["add_powers", "merge_block"]

_Rows = nb.types.Array(nb.float64, 2, "C", readonly=True)
_Vector = nb.float64[::1]
_Matrix = nb.float64[:, ::1]
_Pair = nb.float64[:, :, ::1]


@compiled(nb.void(_Rows, _Vector, _Matrix, _Matrix))
def add_powers(rows, typical, shifted, sums):  # type: ignore[no-untyped-def]
    """Subtract a typical value from the rows and add up their powers, in one pass.

    Parameters
    ----------
    rows : array, shape (n, d)
        Must not share memory with `shifted`.
    typical : array, shape (d,)
    shifted : array, shape (n, d)
        Receives the rows minus the typical value.
    sums : array, shape (3, d)
        The sums of the first, third and fourth powers of the shifted rows are added to it.
    """
    n, d = rows.shape
    for i in range(n):
        for j in range(d):
            x = rows[i, j] - typical[j]
            square = x * x
            shifted[i, j] = x
            sums[0, j] += x
            sums[1, j] += square * x
            sums[2, j] += square * square


@compiled(nb.void(nb.int64, nb.int64, _Vector, _Vector, _Matrix, _Matrix, _Pair, _Pair))
def merge_block(n_before, n, typical, origin, sums, product, vectors, seconds):  # type: ignore[no-untyped-def]
    """Merge the sums of a block into the running sums, about the common mean.

    Parameters
    ----------
    n_before, n : int
        Rows before the block and in it.
    typical : array, shape (d,)
        What was subtracted from the block's rows.
    origin : array, shape (d,)
        What the running mean is relative to.
    sums : array, shape (3, d)
        From `add_powers`.
    product : array, shape (d, d)
        Sum of the outer products of the shifted rows.
    vectors : array, shape (2, 3, d)
        Updated: the running mean (relative to the origin) and the sums of third and fourth powers
        about it; then their rounding errors.
    seconds : array, shape (2, d, d)
        Updated: the sums of products about the running mean; then their rounding errors.
    """
    d = product.shape[0]
    # Means of the block's shifted rows, and of its rows less the running mean.
    mean, shift = np.empty(d), np.empty(d)
    for i in range(d):
        mean[i] = sums[0, i] / n
        shift[i] = (typical[i] - origin[i]) - (vectors[0, 0, i] + vectors[1, 0, i]) + mean[i]
    here = n_before / (n_before + n)
    there = n / (n_before + n)
    weight = here * n
    for i in range(d):
        mu = mean[i]
        s = shift[i]
        q2 = product[i, i]
        q3 = sums[1, i]
        va = seconds[0, i, i] + seconds[1, i, i]
        vb = q2 - n * (mu * mu)
        ta = vectors[0, 1, i] + vectors[1, 1, i]
        tb = q3 - 3 * mu * q2 + 2 * n * (mu * mu * mu)
        fb = sums[2, i] - 4 * mu * q3 + 6 * (mu * mu) * q2 - 3 * n * (mu * mu * mu * mu)
        for k in range(3):
            if k == 0:
                term = there * s
            elif k == 1:
                term = tb + weight * (here - there) * (s * s * s)
                term += 3 * s * (here * vb - there * va)
            else:
                term = fb + weight * (here * here - here * there + there * there) * (s * s * s * s)
                term += 6 * (s * s) * (here * here * vb + there * there * va)
                term += 4 * s * (here * tb - there * ta)
            # Knuth's two-sum gives the rounding error of an addition exactly.
            old = vectors[0, k, i]
            total = old + term
            back = total - old
            vectors[0, k, i] = total
            vectors[1, k, i] += (old - (total - back)) + (term - back)
        for j in range(d):
            # Brackets around the symmetric factors keep the matrix exactly symmetric.
            term = product[i, j] - n * (mu * mean[j]) + weight * (s * shift[j])
            old = seconds[0, i, j]
            total = old + term
            back = total - old
            seconds[0, i, j] = total
            seconds[1, i, j] += (old - (total - back)) + (term - back)
