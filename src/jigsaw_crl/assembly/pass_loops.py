"""The arithmetic of `hearing` and `pairwise`, one pair after the other, compiled.

Importing this module loads the compiler, so callers import it inside the functions that use it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types as nb

from jigsaw_crl.base.compiled import compiled

__all__ = ["add", "share_an_ancestor"]


def _read(kind: Any, dimensions: int = 1) -> Any:
    """Any array that is only read. Arrays that came from another process are read-only."""
    return nb.Array(kind, dimensions, "A", readonly=True)


# One signature each: several processes that compile them at once then write the same to the cache.
_ADD = nb.void(
    nb.float32[:, ::1],
    nb.int32[:, ::1],
    _read(nb.int32),
    _read(nb.float32, 2),
    _read(nb.float32),
    _read(nb.uint8),
    _read(nb.int64),
    _read(nb.float64),
    nb.int64,
)
_SHARE = nb.void(_read(nb.uint64, 2), nb.boolean[:, ::1])


@compiled(_ADD)
def add(sums, counts, at, x, lean, doubt, starts, weights, sign):  # type: ignore[no-untyped-def]
    """Add what clients say, in their order, to the rows `at` of a `Table`; in place.

    Entries `starts[c]` to `starts[c + 1]` belong to client c. One whose weight is 0 is skipped.
    """
    n_scales = x.shape[0]
    none = np.float32(0)
    for c in range(len(weights)):
        w = np.float32(sign * weights[c])
        if w == none:
            continue
        for e in range(starts[c], starts[c + 1]):
            row = sums[at[e]]
            code = doubt[e] if len(doubt) > 0 else np.uint8(0)
            if code & 1:
                own = lean[e]
                for s in range(n_scales):
                    row[s] += w * x[s, e]
                    row[n_scales + s] += w * max(x[s, e], own)
                row[2 * n_scales] += w * max(none, own)
                row[2 * n_scales + 1] += w * own
                counts[at[e], 0] += sign
                if code & 2:
                    counts[at[e], 1] += sign
            else:
                for s in range(n_scales):
                    row[s] += w * x[s, e]
                    row[n_scales + s] += w * x[s, e]


@compiled(_SHARE)
def share_an_ancestor(above, out):  # type: ignore[no-untyped-def]
    """Set `out[i, j]` where rows i and j of the bit sets `above` have a bit in common."""
    for i in range(len(above)):
        for j in range(i + 1):
            for w in range(above.shape[1]):
                if above[i, w] & above[j, w] != 0:
                    out[i, j] = out[j, i] = True
                    break
