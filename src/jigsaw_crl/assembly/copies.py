"""Which clients sent the same evidence?

Log Bayes factors are computed from rows, so two clients with rows of their own hardly ever have the
same number. Clients whose numbers are equal for most of the pairs that both speak about have the
same rows, or one of them copied the other's fragment: one witness under several names. They count
as one client. A copy that was changed everywhere a little is not found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["find_copies", "shares", "with_copies"]

# Equal numbers that differ among themselves: fewer can be equal by chance, because fragments are
# rounded to a sixteenth and small evidence has few values.
LEAST_EQUAL = 10
# Of the numbers that two clients both have, the share that must be equal.
MOST_OF_THEM = 0.5

# Pairs of labels as numbers, and what a client says about each.
_Numbers = tuple[IntArray, FloatArray]


def find_copies(fragments: Sequence[Fragment]) -> list[tuple[int, ...]]:
    """Groups of two or more fragments with the same evidence, by position, in order."""
    labels = sorted({x for fragment in fragments for x in fragment.labels})
    position = {label: i for i, label in enumerate(labels)}
    said = [_numbers(fragment, position) for fragment in fragments]
    group = list(range(len(said)))
    for one, other in _candidates(said):
        if _mostly_equal(said[one], said[other]):
            joined = group[one]
            group = [joined if g == group[other] else g for g in group]
    members = defaultdict(list)
    for k, g in enumerate(group):
        members[g].append(k)
    return [tuple(found) for found in members.values() if len(found) > 1]


def _candidates(said: Sequence[_Numbers]) -> list[tuple[int, int]]:
    """Pairs of clients with `LEAST_EQUAL` equal numbers that differ among themselves.

    Of the clients with one number, only neighbours are compared: copies of one fragment hold the
    same numbers.
    """
    if not said:
        return []
    who = np.repeat(np.arange(len(said)), [len(x) for _, x in said])
    pair, x = (np.concatenate(part) for part in zip(*said, strict=True))
    order = np.lexsort((who, x, pair))
    who, pair, x = who[order], pair[order], x[order]
    same = (pair[1:] == pair[:-1]) & (x[1:] == x[:-1])
    equal: dict[tuple[int, int], set[float]] = defaultdict(set)
    both = np.stack([who[:-1][same], who[1:][same]], axis=1)
    for (one, other), value in zip(both.tolist(), x[1:][same].tolist(), strict=True):
        equal[one, other].add(value)
    return sorted(clients for clients, values in equal.items() if len(values) >= LEAST_EQUAL)


def shares(n: int, copies: Sequence[tuple[int, ...]]) -> FloatArray:
    """How much each of n clients counts: copies share the weight of one, shape (n,)."""
    out = np.ones(n)
    for found in copies:
        out[list(found)] = 1.0 / len(found)
    return out


def with_copies(clients: IntArray, copies: Sequence[tuple[int, ...]]) -> IntArray:
    """The clients and everyone who sent the same evidence as one of them."""
    given = set(clients.tolist())
    more = [k for found in copies if given & set(found) for k in found if k not in given]
    return np.concatenate([clients, np.array(more, dtype=clients.dtype)])


def _numbers(fragment: Fragment, position: dict[str, int]) -> _Numbers:
    """Pairs of labels, ascending, and their log factors of the first effect scale; no zeros."""
    if fragment.bayes is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    x = fragment.bayes.ancestor[0]
    told = ~np.isnan(x) & (x != 0.0) & ~np.eye(len(x), dtype=bool)
    own = np.array([position[label] for label in fragment.labels], dtype=np.int64)
    pair = (own[:, None] * len(position) + own[None, :])[told]
    order = np.argsort(pair)
    return pair[order], x[told][order]


def _mostly_equal(one: _Numbers, other: _Numbers) -> bool:
    shared, i, j = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    return int((one[1][i] == other[1][j]).sum()) > MOST_OF_THEM * len(shared)
