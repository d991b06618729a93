"""Growing a closed order pair by pair, compiled."""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.compiled import compiled

__all__ = ["grow"]


@compiled()
def grow(worth, above_first, below_first, order):  # type: ignore[no-untyped-def]
    """Add the pairs (above_first[k], below_first[k]) in turn, each with all that it entails.

    `order` is filled; a pair is left out when it, or its reverse, already follows, or when the
    worth of all that is new does not sum to more than zero.
    """
    p = len(worth)
    above, below = np.empty(p, np.int64), np.empty(p, np.int64)
    for k in range(len(above_first)):
        a, d = above_first[k], below_first[k]
        # The order is closed, so a cycle could only arise through its reverse.
        if order[a, d] or order[d, a]:
            continue
        # Only the rows above a and the columns below d can change.
        n_above, n_below = 1, 1
        above[0], below[0] = a, d
        for x in range(p):
            if order[x, a]:
                above[n_above] = x
                n_above += 1
            if order[d, x]:
                below[n_below] = x
                n_below += 1
        gained = 0.0
        for i in range(n_above):
            for j in range(n_below):
                if not order[above[i], below[j]]:
                    gained += worth[above[i], below[j]]
        if gained <= 0:
            continue
        for i in range(n_above):
            for j in range(n_below):
                order[above[i], below[j]] = True
