"""Strict partial orders as bit sets in machine words, and compiled functions of them.

An order on p labels is two arrays of 64-bit words, `up` and `down`, shape (p, words): bit d of
`up[a]` and bit a of `down[d]` are set when a is an ancestor of d.

Importing this module loads numba (about half a second), so callers import it inside the functions
that use it. numba renews a cached function only when its own file changes: after editing a
function here that compiled functions elsewhere call, delete the `__pycache__` folders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray

Words = npt.NDArray[np.uint64]

_ONE = np.uint64(1)


def compiled(*, kept: bool = True, **options: Any) -> Any:
    """Decorator: `numba.njit` that releases the GIL and divides by zero as numpy does.

    Functions are cached on disk unless `kept` is False: those that only compiled functions call
    become part of their callers and cannot be called from Python, and two processes that cache
    several signatures of one function at once can corrupt its index. Without a writable cache
    folder every process compiles for itself.
    """
    settings = {"nogil": True, "error_model": "numpy", **options}
    if not kept:
        settings |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

    def decorate(function: Callable[..., Any]) -> Any:
        jit: Any = nb.njit
        try:
            return jit(cache=kept, **settings)(function)
        except RuntimeError:
            return jit(**settings)(function)

    return decorate


def pack(matrix: BoolArray) -> Words:
    """Rows of a boolean matrix as 64-bit words; bit j of word w stands for column 64 w + j."""
    p, m = matrix.shape
    words = (m + 63) // 64
    padded = np.zeros((p, words * 64), dtype=bool)
    padded[:, :m] = matrix
    packed = np.packbits(padded, axis=1, bitorder="little")
    return packed.view(np.dtype("<u8")).astype(np.uint64)


def unpack(words: Words, m: int) -> BoolArray:
    """The boolean matrix with `m` columns that was given to `pack`."""
    raw = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(raw, axis=1, count=m, bitorder="little").astype(bool)


@compiled(kept=False)
def n_bits(word):  # type: ignore[no-untyped-def]
    """Number of set bits."""
    w = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    w = (w & np.uint64(0x3333333333333333)) + ((w >> np.uint64(2)) & np.uint64(0x3333333333333333))
    w = (w + (w >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((w * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled(kept=False)
def bit(label):  # type: ignore[no-untyped-def]
    """The bit of a label within its word, which is word `label >> 6`."""
    return _ONE << np.uint64(label & 63)


@compiled(kept=False)
def contains(words, row, label):  # type: ignore[no-untyped-def]
    """Is `label` in the set `words[row]`?"""
    return (words[row, label >> 6] >> np.uint64(label & 63)) & _ONE != 0


@compiled(kept=False)
def members(words, row, first, out):  # type: ignore[no-untyped-def]
    """Write `first`, then the set `words[row]`, ascending, to `out` till it is full; how many."""
    out[0] = first
    n = 1
    for w in range(words.shape[1]):
        rest = words[row, w]
        while rest != 0 and n < len(out):
            low = rest & (~rest + _ONE)
            out[n] = (w << 6) + n_bits(low - _ONE)
            n += 1
            rest ^= low
    return n
