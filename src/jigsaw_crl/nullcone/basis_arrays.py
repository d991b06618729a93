"""The loops of `basis_loops` as array code: as fast with few lines, and without the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["off_ancestors", "solve"]

Array = npt.NDArray[Any]


def _dot(x: Array, y: Array) -> Array:
    return np.asarray((x * y).sum(axis=-1, keepdims=True))


def _errors(
    y: Array, flat: Array, F: Array, Mm: Array, mMm: Array, m_and_n: Array, h: Array, n: Array,
    n_eff: Array, d: Array, H: Array,
) -> Array:  # fmt: skip
    """Errors of the lines and of the whitening for multipliers y; returns `n H`."""
    lines, w = len(flat), y @ flat
    m = m_and_n[:lines]
    v = w - h[:, None] * _dot(F, w) * m
    # H = −(2/n_eff) sym(Σ m vᵀ + ½ Σ n wᵀ)
    A = m_and_n.T @ np.concatenate([v, w / 2])
    H[:] = (A + A.T) / -n_eff
    mnH = m_and_n @ H
    _line_errors(v, flat, F, Mm, mMm, m, h, n, mnH, d)
    return np.asarray(mnH[lines:])


def _line_errors(
    v: Array, vectors: Array, F: Array, Mm: Array, mMm: Array, m: Array, h: Array, n: Array,
    mH: Array, d: Array,
) -> None:  # fmt: skip
    """See `basis_loops`."""
    lines = len(d)
    # Of each line a: the first and the second line of its regime.
    one = np.arange(lines) // 2 * 2
    two = one + 1
    u, b = mMm[:, :1], mMm[:, 1:]
    f = u * _dot(v[one], vectors[one]) + b * _dot(v[two], vectors[one])
    g = u * _dot(v[one], vectors[two]) + b * _dot(v[two], vectors[two])
    moved = u * v[one] + b * v[two] + f * F[one] + g * F[two]
    moved += _dot(Mm, v[one]) * Mm[one] + _dot(Mm, v[two]) * Mm[two]
    d[:] = moved / n[:, None] - mH[:lines]
    d -= h[:, None] * _dot(m, d) * F


def solve(
    residual: Array, precision: Array, must: BoolArray, flat: Array, F: Array, Mm: Array,
    mMm: Array, m_and_n: Array, h: Array, n: Array, n_eff: Array, steps: int, stop: float,
    d: Array, H: Array,
) -> None:  # fmt: skip
    """See `basis_loops.solve`."""
    given = flat, F, Mm, mMm, m_and_n, h, n, n_eff
    y, direction = np.zeros_like(residual), residual * precision
    square = float(np.vdot(residual, direction))
    for _ in range(steps):
        if square <= stop:
            break
        nH = _errors(direction, *given, d, H)
        image = flat @ (d - nH / 2).T
        image = np.where(must, image + image.T, np.float32(0))
        curvature = float(np.vdot(direction, image))
        if curvature <= 0:
            break
        alpha = np.float32(square / curvature)
        y += alpha * direction
        residual -= alpha * image
        scaled = residual * precision
        new = float(np.vdot(residual, scaled))
        direction = np.float32(new / square) * direction + scaled
        square = new
    _errors(y, *given, d, H)


def off_ancestors(unit: FloatArray, above: BoolArray, rows: FloatArray) -> None:
    """See `basis_loops.off_ancestors`; by Gram and Schmidt's method."""
    for i in range(len(unit)):
        span: list[FloatArray] = []
        for own in unit[above[:, i]]:
            left = own.copy()
            for _ in range(2):
                for other in span:
                    left -= (left @ other) * other
            square = float(left @ left)
            if square > 1e-14:
                span.append(left / np.sqrt(square))
        for _ in range(2):
            for other in span:
                rows[i] -= (rows[i] @ other) * other
