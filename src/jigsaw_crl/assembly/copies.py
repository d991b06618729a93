"""Which clients sent the same evidence?

Log Bayes factors are computed from rows, so two clients with rows of their own hardly ever have the
same number. Clients whose numbers are equal for most of the pairs that both speak about have the
same rows, or one of them copied the other's fragment: one witness under several names. They count
as one client. A copy that was changed everywhere a little is not found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
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


def find_copies(fragments: Sequence[Fragment]) -> list[tuple[int, ...]]:
    """Groups of two or more fragments with the same evidence, by position, in order.

    Of very many numbers a part is compared first, chosen by the pair and the number, so that copies
    have the same ones.
    """
    count = sum(len(f.labels) ** 2 for f in fragments if f.bayes is not None)
    part = max(1, count // MOST_COMPARED)
    holders: dict[tuple[str, str, float], list[int]] = defaultdict(list)
    for k, fragment in enumerate(fragments):
        for (a, d), x in _numbers(fragment, part).items():
            holders[a, d, x].append(k)
    equal: dict[tuple[int, int], set[float]] = defaultdict(set)
    for (_, _, x), held in holders.items():
        # Neighbours are enough: copies of one fragment hold the same numbers.
        for pair in pairwise(held):
            equal[pair].add(x)
    group = list(range(len(fragments)))
    for (one, other), values in sorted(equal.items()):
        if len(values) * part >= LEAST_EQUAL and _mostly_equal(fragments[one], fragments[other]):
            joined = group[one]
            group = [joined if g == group[other] else g for g in group]
    members = defaultdict(list)
    for k, g in enumerate(group):
        members[g].append(k)
    return [tuple(found) for found in members.values() if len(found) > 1]


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


def _numbers(fragment: Fragment, part: int = 1) -> dict[tuple[str, str], float]:
    """The log factors of the first effect scale, by pair of labels; none that are zero.

    With `part`, one in so many of them, the same ones for everybody who has the same number.
    """
    if fragment.bayes is None:
        return {}
    x = fragment.bayes.ancestor[0]
    told = ~np.isnan(x) & (x != 0.0) & ~np.eye(len(x), dtype=bool)
    if part > 1:
        name = np.array([crc32(label.encode()) for label in fragment.labels], dtype=np.uint64)
        mixed = (name[:, None] * _ODD ^ name) * _ODD ^ np.ascontiguousarray(x).view(np.uint64)
        told &= (mixed * _ODD >> np.uint64(32)) % np.uint64(part) == 0
    names = fragment.labels
    return {(names[a], names[d]): float(x[a, d]) for a, d in np.argwhere(told).tolist()}


def _mostly_equal(first: Fragment, second: Fragment) -> bool:
    one, other = _numbers(first), _numbers(second)
    shared = one.keys() & other.keys()
    equal = [one[pair] for pair in shared if one[pair] == other[pair]]
    return len(set(equal)) >= LEAST_EQUAL and len(equal) > MOST_OF_THEM * len(shared)
