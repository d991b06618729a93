"""The loops of `basis_loops` as array code: as fast with few lines, and without the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["advance", "line_errors", "off_ancestors", "spread"]

Array = npt.NDArray[Any]


def _dot(x: Array, y: Array) -> Array:
    return np.asarray((x * y).sum(axis=-1, keepdims=True))


def spread(w: Array, F: Array, h: Array, m: Array, both: Array) -> None:
    """See `basis_loops.spread`."""
    both[: len(w)] = w - h[:, None] * _dot(F, w) * m
    both[len(w) :] = w / 2


def line_errors(
    v: Array, vectors: Array, F: Array, Mm: Array, mMm: Array, m: Array, h: Array, n: Array,
    mH: Array, d: Array,
) -> None:  # fmt: skip
    """See `basis_loops.line_errors`."""
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


def advance(
    out: Array, must: BoolArray, precision: Array, square: float, direction: Array, residual: Array,
    y: Array,
) -> float:  # fmt: skip
    """See `basis_loops.advance`."""
    out[:] = np.where(must, out + out.T, np.float32(0))
    curvature = float(np.vdot(direction, out))
    if curvature <= 0:
        return 0.0
    alpha = np.float32(square / curvature)
    y += alpha * direction
    residual -= alpha * out
    out[:] = residual * precision
    new = float(np.vdot(residual, out))
    direction *= np.float32(new / square)
    direction += out
    return new


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
