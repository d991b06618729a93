"""Which clients sent the same evidence?

Log Bayes factors are computed from rows, so two clients with rows of their own hardly ever have the
same number. Clients of which most numbers are equal have the same rows, or one of them copied the
other's fragment: one witness under several names. They count as one client. A copy that was changed
everywhere a little is not found. Numbers that a client took from several others make it a copy of
none: most numbers of *both* must be equal.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import FloatArray, IntArray

__all__ = ["find_copies"]

# Equal numbers that differ among themselves: fewer can be equal by chance, because fragments are
# rounded and small evidence has few values.
LEAST_EQUAL = 10
# Numbers that are compared at once: of more, those of every so many pairs, the same at all clients.
MOST_COMPARED = 5_000_000


def find_copies(panel: Panel) -> tuple[tuple[int, ...], ...]:
    """Groups of two or more clients with the same evidence, by number, in order."""
    count = sum(len(rows.members) ** 2 for rows in panel.rows if rows.bayes is not None)
    part = max(1, count // MOST_COMPARED)
    said = [_numbers(panel, k, part) for k in range(len(panel.rows))]
    sizes = [len(x) for _, x in said]
    who = np.repeat(np.arange(len(said)), sizes)
    pair, x = (np.concatenate(values) for values in zip(*said, strict=True))
    order = np.lexsort((who, x, pair))
    who, pair, x = who[order], pair[order], x[order]
    # Among the clients with one number only neighbours are compared: copies have the same numbers.
    same = (pair[1:] == pair[:-1]) & (x[1:] == x[:-1])
    equal: dict[tuple[int, int], list[float]] = defaultdict(list)
    both = np.stack([who[:-1][same], who[1:][same]], axis=1)
    for (one, other), value in zip(both.tolist(), x[1:][same].tolist(), strict=True):
        equal[one, other].append(value)
    found = [
        clients
        for clients, values in equal.items()
        if part * len(set(values)) >= LEAST_EQUAL
        and 2 * len(values) > max(sizes[k] for k in clients)
    ]
    if not found:
        return ()
    one, other = np.array(found).T
    n = len(said)
    _, group = connected_components(coo_array((np.ones(len(one)), (one, other)), shape=(n, n)))
    members = (tuple(np.flatnonzero(group == g).tolist()) for g in range(group.max() + 1))
    return tuple(m for m in members if len(m) > 1)


def _numbers(panel: Panel, k: int, part: int) -> tuple[IntArray, FloatArray]:
    """Pairs of labels, and the client's log factors of the first effect scale; no zeros."""
    rows = panel.rows[k]
    if rows.bayes is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    x = rows.bayes.ancestor[0]
    pair = rows.members[:, None] * len(panel.labels) + rows.members
    told = ~np.isnan(x) & (x != 0.0) & ~np.eye(len(x), dtype=bool) & (pair % part == 0)
    return pair[told], x[told]
