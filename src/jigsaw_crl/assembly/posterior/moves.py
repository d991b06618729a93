"""Metropolis moves on strict partial orders, compiled.

Orders are bit sets (see `base.bitsets`). The score of an order R is

    Σ_{(a, d) ∈ R} implied[a, d] + Σ_{covers (a, d)} cover[a, d] + Σ_{d with ancestors} ancestry[d]

There are two moves, each proposed for a random pair (a, d):

`flip`    adds or deletes the single pair. It may be added when the result is transitive: the
          reverse is absent, every ancestor of a is one of d, and every descendant of d is one of
          a. It may be deleted when no label lies between.
`bridge`  adds or deletes most of A × D, where A is a with its ancestors and D is d with its
          descendants. In orders with many certain pairs, (a, d) can often not change alone.
          Deleting the bridge keeps those pairs of A × D that have a label outside A and D
          between them, and those implied by a pair worth more than a threshold. Adding it
          is proposed only if the order holds exactly the pairs that deletion would keep. Neither
          direction changes A, D or the kept pairs, so each is the inverse of the other and both
          are proposed with the same probability.

Most flips are impossible: ask `may_flip` first. `bridge` writes the pairs it would change to
`changed` and returns their number (0 if it is impossible or too large) and the gain.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.bitsets import bit, compiled, contains, members, n_bits

__all__ = [
    "LARGEST_BRIDGE",
    "LONGEST_SIDE",
    "ONE",
    "bridge",
    "empty_but",
    "flip",
    "inlined",
    "may_flip",
    "n_between",
]

# The lowest bit of a word.
ONE = np.uint64(1)
# Larger bridges are not proposed: a flip costs a few operations, a bridge one per pair.
LARGEST_BRIDGE = 1024
# Rows and columns of a bridge, so that a set of them fits one word.
LONGEST_SIDE = 64
# Moves are inlined, because passing an array to a compiled function counts a reference, which is
# slow here. Grouped in a named tuple, the arrays of `walk.Chain` took twice as long.
inlined = compiled(kept=False, forceinline=True)


# -- sets -------------------------------------------------------------------------------------


@inlined
def n_between(up, down, a, d, most):  # type: ignore[no-untyped-def]
    """Number of labels between a and d; counting stops at `most`."""
    total = 0
    for w in range(up.shape[1]):
        both = up[a, w] & down[d, w]
        if both != 0:
            total += n_bits(both)
            if total >= most:
                return total
    return total


@inlined
def _covers_with(up, down, cover, a, d, n):  # type: ignore[no-untyped-def]
    """Sum of `cover` over (x, d), x above a, and (a, y), y below d, with exactly n between."""
    found = 0.0
    for w in range(up.shape[1]):
        rest = down[a, w]
        while rest != 0:
            low = rest & (~rest + ONE)
            x = (w << 6) + n_bits(low - ONE)
            if n_between(up, down, x, d, n + 1) == n:
                found += cover[x, d]
            rest ^= low
        rest = up[d, w]
        while rest != 0:
            low = rest & (~rest + ONE)
            y = (w << 6) + n_bits(low - ONE)
            if n_between(up, down, a, y, n + 1) == n:
                found += cover[a, y]
            rest ^= low
    return found


@inlined
def empty_but(words, row, one):  # type: ignore[no-untyped-def]
    """Has the row no member except `one` (-1: no member at all)?"""
    for w in range(words.shape[1]):
        rest = words[row, w]
        if one >= 0 and one >> 6 == w:
            rest &= ~bit(one)
        if rest != 0:
            return False
    return True


@inlined
def _outside_between(up, down, x, y, a, d):  # type: ignore[no-untyped-def]
    """Is there a label between x and y that is neither in A nor in D?"""
    for w in range(up.shape[1]):
        between = up[x, w] & down[y, w] & ~down[a, w] & ~up[d, w]
        if a >> 6 == w:
            between &= ~bit(a)
        if d >> 6 == w:
            between &= ~bit(d)
        if between != 0:
            return True
    return False


# -- moves ------------------------------------------------------------------------------------


@inlined
def may_flip(up, down, a, d):  # type: ignore[no-untyped-def]
    """Is the order still transitive after the pair (a, d) is added, or deleted if present?"""
    if contains(up, a, d):
        return n_between(up, down, a, d, 1) == 0
    # If d is an ancestor of a, the first set holds d and the test fails.
    for w in range(up.shape[1]):  # noqa: SIM110 (numba does not compile generators)
        if (down[a, w] & ~down[d, w]) | (up[d, w] & ~up[a, w]) != 0:
            return False
    return True


@inlined
def flip(up, down, implied, cover, ancestry, a, d):  # type: ignore[no-untyped-def]
    """Gain of adding the pair (a, d) if it is absent, deleting it if it is present."""
    if contains(up, a, d):
        gain = _covers_with(up, down, cover, a, d, 1) - implied[a, d] - cover[a, d]
        if ancestry[d] != 0.0 and empty_but(down, d, a):
            gain -= ancestry[d]
    else:
        gain = implied[a, d] + cover[a, d] - _covers_with(up, down, cover, a, d, 0)
        if ancestry[d] != 0.0 and empty_but(down, d, -1):
            gain += ancestry[d]
    return gain


@inlined
def _mark_kept(up, down, implied, threshold, a, d, above, below, kept, after, before):  # type: ignore[no-untyped-def]
    """Fill `kept[i]`, bits over D: the pairs of row above[i] that stay without the bridge.

    Also fills, for each label of D, bits over D: `after` (itself and its descendants) and `before`
    (its ancestors).
    """
    for j in range(len(below)):
        after[j] = bit(j)
        before[j] = 0
        for k in range(len(below)):
            if contains(up, below[j], below[k]):
                after[j] |= bit(k)
            elif contains(up, below[k], below[j]):
                before[j] |= bit(k)
    for i in range(len(above)):
        x = above[i]
        kept[i] = 0
        for j in range(len(below)):
            y = below[j]
            has_evidence = implied[x, y] > threshold and i + j > 0
            if has_evidence or _outside_between(up, down, x, y, a, d):
                kept[i] |= after[j]
    for i in range(len(above)):
        for k in range(len(above)):
            if contains(up, above[i], above[k]):
                kept[i] |= kept[k]


@inlined
def bridge(  # type: ignore[no-untyped-def]
    up, down, implied, cover, ancestry, changed, a, d, threshold, sides, masks
):
    """Add the bridge from a to d if the pair is absent, delete it if the pair is a cover.

    `sides` and `masks` are working space.
    """
    p = up.shape[0]
    present = contains(up, a, d)
    if contains(up, d, a) or (present and n_between(up, down, a, d, 1) > 0):
        return 0, 0.0
    above, below, kept, after, before = sides[0], sides[1], masks[0], masks[1], masks[2]
    n_above, n_below = members(down, a, a, above), members(up, d, d, below)
    too_long = n_above > LONGEST_SIDE or n_below > LONGEST_SIDE
    if too_long or n_above * n_below > len(changed):
        return 0, 0.0
    _mark_kept(
        up, down, implied, threshold, a, d, above[:n_above], below[:n_below], kept, after, before
    )
    n, gain = 0, cover[a, d]
    orphan = True  # d has no ancestor without the bridge
    for i in range(n_above):
        x = above[i]
        for j in range(n_below):
            y = below[j]
            stays = (kept[i] >> np.uint64(j)) & ONE != 0
            if not present and stays != contains(up, x, y):
                return 0, 0.0
            if not stays:
                gain += implied[x, y]
                changed[n] = x * p + y
                n += 1
                continue
            if j == 0:
                orphan = False
            if kept[i] & before[j] == 0:
                # A cover without the bridge, unless a label of A or an outside one is between.
                between = _outside_between(up, down, x, y, a, d)
                for k in range(n_above):
                    if contains(up, x, above[k]) and (kept[k] >> np.uint64(j)) & ONE != 0:
                        between = True
                if not between:
                    gain -= cover[x, y]
    if ancestry[d] != 0.0 and orphan:
        for w in range(up.shape[1]):
            rest = down[d, w] & ~down[a, w]
            if a >> 6 == w:
                rest &= ~bit(a)
            if rest != 0:
                orphan = False
        if orphan:
            gain += ancestry[d]
    return n, -gain if present else gain
