"""Which clients sent the same evidence?

Log Bayes factors are computed from rows, so two clients with rows of their own hardly ever have the
same number. Clients whose numbers are equal for most of the pairs that both speak about have the
same rows, or one of them copied the other's fragment: one witness under several names. They count
as one client. A copy that was changed everywhere a little is not found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["find_copies", "shares", "with_copies"]

# Equal numbers that differ among themselves: fewer can be equal by chance, because fragments are
# rounded to a sixteenth and small evidence has few values.
LEAST_EQUAL = 10
# Of the numbers that two clients both have, the share that must be equal.
MOST_OF_THEM = 0.5
# Numbers that are compared at once.
MOST_COMPARED = 500_000
_ODD = np.uint64(0x9E3779B97F4A7C15)  # spreads the bits of what it multiplies

# Pairs of labels as numbers, and what a client says about each.
Numbers = tuple[IntArray, FloatArray]


def find_copies(fragments: Sequence[Fragment]) -> list[tuple[int, ...]]:
    """Groups of two or more fragments with the same evidence, by position, in order.

    Of very many numbers a part is compared first, chosen by the pair and the number, so that copies
    have the same ones.
    """
    labels, count = set[str](), 0
    for fragment in fragments:
        labels.update(fragment.labels)
        count += len(fragment.labels) ** 2 if fragment.bayes is not None else 0
    position = {label: i for i, label in enumerate(sorted(labels))}
    part = max(1, count // MOST_COMPARED)
    said = [_numbers(fragment, position, part) for fragment in fragments]
    group = list(range(len(fragments)))
    for one, other in _candidates(said, LEAST_EQUAL / part):
        if _mostly_equal(*(_numbers(fragments[k], position) for k in (one, other))):
            joined = group[one]
            group = [joined if g == group[other] else g for g in group]
    members = defaultdict(list)
    for k, g in enumerate(group):
        members[g].append(k)
    return [tuple(found) for found in members.values() if len(found) > 1]


def _candidates(said: Sequence[Numbers], least: float) -> list[tuple[int, int]]:
    """Pairs of clients with `least` equal numbers that differ among themselves.

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
    return sorted(clients for clients, values in equal.items() if len(values) >= least)


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


def _numbers(fragment: Fragment, position: dict[str, int], part: int = 1) -> Numbers:
    """Pairs of labels, ascending, and their log factors of the first effect scale; no zeros.

    With `part`, one in so many of them, the same ones for everybody who has the same number.
    """
    if fragment.bayes is None:
        return np.zeros(0, dtype=np.int64), np.zeros(0)
    x = fragment.bayes.ancestor[0]
    told = ~np.isnan(x) & (x != 0.0) & ~np.eye(len(x), dtype=bool)
    if part > 1:
        name = np.array([crc32(label.encode()) for label in fragment.labels], dtype=np.uint64)
        mixed = (name[:, None] * _ODD ^ name) * _ODD ^ np.ascontiguousarray(x).view(np.uint64)
        told &= (mixed * _ODD >> np.uint64(32)) % np.uint64(part) == 0
    own = np.array([position[label] for label in fragment.labels], dtype=np.int64)
    pair = (own[:, None] * len(position) + own[None, :])[told]
    order = np.argsort(pair)
    return pair[order], x[told][order]


def _mostly_equal(one: Numbers, other: Numbers) -> bool:
    shared, i, j = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    equal = one[1][i][one[1][i] == other[1][j]]
    return len(np.unique(equal)) >= LEAST_EQUAL and len(equal) > MOST_OF_THEM * len(shared)
