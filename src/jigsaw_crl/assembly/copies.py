"""Which clients sent the same evidence?

Log Bayes factors are computed from rows, so two clients with rows of their own hardly ever have the
same number. Clients of which most numbers are equal have the same rows, or one of them copied the
other's fragment: one witness under several names. They count as one client. So do clients whose
shares (`Fragment.shares`) are nearer to each other than their errors allow: corrected data under a
second name, or rows of which a few were changed. Numbers that a client took from several others
make it a copy of none: most numbers of *both* must be equal, and every two clients of a group.
Which of a group counts is decided by the other clients (`weigh_clients`).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np

from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import FloatArray, IntArray

__all__ = ["find_copies"]

# Equal numbers that differ among themselves: fewer can be equal by chance, because fragments are
# rounded and small evidence has few values.
LEAST_EQUAL = 10
# Pairs of labels, and the mean of (s − s')² / 2e² over them, with e the smaller error of the two,
# below which the shares s of two clients come from nearly the same rows. The errors are cautious:
# the least of 59 pairs of independent samples of one site was .12, of 100 pairs of sites .17; of
# copies with 1 to 5 in 100 rows changed or added, three in four were below.
LEAST_PAIRS, NEAR = 20, 0.08
# Numbers that are compared at once: of more, those of every so many pairs, the same at all clients.
MOST_COMPARED = 5_000_000


def find_copies(panel: Panel) -> tuple[tuple[int, ...], ...]:
    """Groups of two or more clients with the same evidence, by number, in order."""
    count = sum(len(rows.members) ** 2 for rows in panel.rows if rows.bayes is not None)
    part = max(1, count // MOST_COMPARED)
    said = [_numbers(panel, k, part) for k in range(len(panel.rows))]
    who = np.repeat(np.arange(len(said)), [len(x) for _, x in said])
    pair, x = (np.concatenate(values) for values in zip(*said, strict=True))
    order = np.lexsort((who, x, pair))
    who, pair, x = who[order], pair[order], x[order]
    # Among the clients with one number only neighbours are compared: copies have the same numbers.
    same = (pair[1:] == pair[:-1]) & (x[1:] == x[:-1])
    near = set(_near(panel))
    linked = near | set(zip(who[:-1][same].tolist(), who[1:][same].tolist(), strict=True))
    groups: list[list[int]] = []
    for k in sorted({k for clients in linked for k in clients}):
        # With every member, not with one of them: nobody can join two that are none.
        for group in groups:
            if all((j, k) in near or _equal(said[j], said[k], part) for j in group):
                group.append(k)
                break
        else:
            groups.append([k])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _equal(one: tuple[IntArray, FloatArray], other: tuple[IntArray, FloatArray], part: int) -> bool:
    """Are most numbers of both clients equal, and enough of them different from each other?"""
    _, i, j = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    values = one[1][i][one[1][i] == other[1][j]]
    most = max(len(one[0]), len(other[0]))
    return 2 * len(values) > most and part * len(set(values.tolist())) >= LEAST_EQUAL


def _near(panel: Panel) -> list[tuple[int, int]]:
    """Pairs of clients with the same labels and nearly the same shares."""
    alike: dict[bytes, list[tuple[int, FloatArray, FloatArray]]] = defaultdict(list)
    for k, rows in enumerate(panel.rows):
        if rows.shares is not None:
            alike[rows.members.tobytes()].append((k, *rows.shares))
    found = []
    for (one, s, e), (other, t, f) in (
        both for group in alike.values() for both in combinations(group, 2)
    ):
        with np.errstate(invalid="ignore", divide="ignore"):
            z = (s - t) ** 2 / (2 * np.minimum(e, f) ** 2)
        z = z[np.isfinite(z) & ~np.eye(len(z), dtype=bool)]
        if len(z) >= LEAST_PAIRS and z.mean() < NEAR:
            found.append((one, other))
    return found


def _numbers(panel: Panel, k: int, part: int) -> tuple[IntArray, FloatArray]:
    """Pairs of labels, and the client's log factors of the first effect scale; no zeros."""
    rows = panel.rows[k]
    if rows.bayes is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    x, pair = rows.bayes.ancestor[0], rows.members[:, None] * len(panel.labels) + rows.members
    told = ~np.isnan(x) & (x != 0.0) & ~np.eye(len(x), dtype=bool) & (pair % part == 0)
    return pair[told], x[told]
