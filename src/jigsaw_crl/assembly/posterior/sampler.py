"""Strict partial orders in machine words: greedy insertion and Metropolis moves, compiled.

An order on p labels is two arrays of 64-bit words, `up` and `down`, shape (p, words): bit d of
`up[a]` and bit a of `down[d]` are set when a is an ancestor of d. The score of an order R is

    Σ_{(a, d) ∈ R} weight[a, d]  −  cover_cost · (number of covers of R).

A single pair may be added to a transitive relation when the result is transitive again: the
reverse is absent, every ancestor of a is one of d, every descendant of d is one of a. It may be
deleted when nothing lies between. Both are a few word operations.

Where much is settled, a pair often cannot come or go alone: most of `A × D` must, A being a with
its ancestors and D being d with its descendants. Taking a cover a → d away leaves of `A × D` the
pairs between which there is a label outside A and D, and those that follow from a pair whose weight
exceeds a threshold. A bridge is the reverse: it adds a → d and all of `A × D` to an order that has
of it exactly what such a removal would leave. Neither changes A, D or what would be left, so each
undoes the other, and both are proposed equally often.

Exchanging two labels is its own reverse; it crosses from an order to one with a relation reversed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.compiled import compiled

__all__ = ["insert_greedily", "metropolis", "pack", "unpack"]

BoolMatrix = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

_ONE = np.uint64(1)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Bridges of more pairs than this are not proposed: a flip costs a few operations, they one a pair.
_LARGEST_BRIDGE = 256


def pack(matrix: BoolMatrix) -> Words:
    """Rows of a boolean matrix as 64-bit words, bit j of word w standing for column 64 w + j."""
    p, m = matrix.shape
    words = (m + 63) // 64
    padded = np.zeros((p, words * 64), dtype=bool)
    padded[:, :m] = matrix
    packed = np.packbits(padded, axis=1, bitorder="little")
    return packed.view(np.dtype("<u8")).astype(np.uint64)


def unpack(words: Words, m: int) -> BoolMatrix:
    """The boolean matrix with `m` columns that `pack` packed."""
    raw = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(raw, axis=1, count=m, bitorder="little").astype(bool)


@compiled(kept=False)
def _count(w):  # type: ignore[no-untyped-def]
    """Number of set bits."""
    w = w - ((w >> np.uint64(1)) & np.uint64(0x5555555555555555))
    w = (w & np.uint64(0x3333333333333333)) + ((w >> np.uint64(2)) & np.uint64(0x3333333333333333))
    w = (w + (w >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((w * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled(kept=False)
def _has(words, row, bit):  # type: ignore[no-untyped-def]
    return (words[row, bit >> 6] >> np.uint64(bit & 63)) & _ONE != 0


@compiled(kept=False)
def _within(one, i, other, j):  # type: ignore[no-untyped-def]
    """Is the set one[i] a subset of other[j]?"""
    for w in range(one.shape[1]):  # noqa: SIM110 (the compiler takes no generators)
        if one[i, w] & ~other[j, w] != 0:
            return False
    return True


@compiled(kept=False)
def _shared(one, i, other, j, most):  # type: ignore[no-untyped-def]
    """Size of the intersection of one[i] and other[j], counted up to `most`."""
    total = 0
    for w in range(one.shape[1]):
        both = one[i, w] & other[j, w]
        if both != 0:
            total += _count(both)
            if total >= most:
                return total
    return total


@compiled(kept=False)
def _random(state):  # type: ignore[no-untyped-def]
    """Next 64 random bits (SplitMix64); a state of our own keeps chains apart in threads."""
    state[0] += _GOLDEN
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled(kept=False)
def _covers_met(up, down, a, d, size):  # type: ignore[no-untyped-def]
    """Pairs (x, d), x above a, and (a, y), y below d, with exactly `size` labels between."""
    met = 0
    for w in range(up.shape[1]):
        rest = down[a, w]
        while rest != 0:
            low = rest & (~rest + _ONE)
            x = (w << 6) + _count(low - _ONE)
            if _shared(up, x, down, d, size + 1) == size:
                met += 1
            rest ^= low
        rest = up[d, w]
        while rest != 0:
            low = rest & (~rest + _ONE)
            y = (w << 6) + _count(low - _ONE)
            if _shared(up, a, down, y, size + 1) == size:
                met += 1
            rest ^= low
    return met


@compiled(kept=False)
def _members(words, row, first, out):  # type: ignore[no-untyped-def]
    """Write `first` and the members of a row to `out`; how many there are, at most 65."""
    out[0] = first
    n = 1
    for w in range(words.shape[1]):
        rest = words[row, w]
        while rest != 0 and n <= 64:
            low = rest & (~rest + _ONE)
            out[n] = (w << 6) + _count(low - _ONE)
            n += 1
            rest ^= low
    return n


@compiled(kept=False)
def _outside(up, down, x, y, a, d):  # type: ignore[no-untyped-def]
    """Is there a label between x and y that is neither a or above it, nor d or below it?"""
    for w in range(up.shape[1]):
        between = up[x, w] & down[y, w] & ~down[a, w] & ~up[d, w]
        if a >> 6 == w:
            between &= ~(_ONE << np.uint64(a & 63))
        if d >> 6 == w:
            between &= ~(_ONE << np.uint64(d & 63))
        if between != 0:
            return True
    return False


@compiled(kept=False)
def _bridge(up, down, a, d, weight, threshold, cover_cost, room, masks, changed):  # type: ignore[no-untyped-def]
    """What the bridge a → d would add, or its removal take away: (number of pairs, gain).

    The pairs `x * p + y` are written to `changed`; no pairs: there is no such move, or it is too
    large to be worth its time. `room` and `masks` are working space.
    """
    p = up.shape[0]
    above, below = room[0], room[1]
    n_above, n_below = _members(down, a, a, above), _members(up, d, d, below)
    if n_above > 64 or n_below > 64 or n_above * n_below > len(changed):
        return 0, 0.0
    left, after, from_here = masks[0], masks[1], masks[2]
    # For each y in D, as bits over D: it and what is below it; what is above it.
    for j in range(n_below):
        after[j] = _ONE << np.uint64(j)
        from_here[j] = 0
        for k in range(n_below):
            if _has(up, below[j], below[k]):
                after[j] |= _ONE << np.uint64(k)
            elif _has(up, below[k], below[j]):
                from_here[j] |= _ONE << np.uint64(k)
    # For each x in A, what would be left of it.
    for i in range(n_above):
        x = above[i]
        left[i] = 0
        for j in range(n_below):
            y = below[j]
            by_itself = weight[x, y] > threshold and i + j > 0
            if by_itself or _outside(up, down, x, y, a, d):
                left[i] |= after[j]
    for i in range(n_above):
        for k in range(n_above):
            if _has(up, above[i], above[k]):
                left[i] |= left[k]
    there = _has(up, a, d)
    n, gain, covers = 0, 0.0, 0
    for i in range(n_above):
        x = above[i]
        for j in range(n_below):
            y = below[j]
            stays = (left[i] >> np.uint64(j)) & _ONE != 0
            if not there and stays != _has(up, x, y):
                return 0, 0.0
            if not stays:
                gain += weight[x, y]
                changed[n] = x * p + y
                n += 1
            elif cover_cost != 0.0 and left[i] & from_here[j] == 0:
                # A cover of the order without the bridge, if nothing outside, or in A, is between.
                between = _outside(up, down, x, y, a, d)
                for k in range(n_above):
                    if _has(up, x, above[k]) and (left[k] >> np.uint64(j)) & _ONE != 0:
                        between = True
                covers += not between
    gain -= cover_cost * (1 - covers)
    return n, -gain if there else gain


@compiled(kept=False)
def _exchange(up, down, a, d, weight, changed):  # type: ignore[no-untyped-def]
    """What changes when a and d change places: (number of pairs, gain), as for a bridge."""
    p, words = up.shape
    n, gain = 0, 0.0
    for w in range(words):
        own = np.uint64(0)
        if a >> 6 == w:
            own |= _ONE << np.uint64(a & 63)
        if d >> 6 == w:
            own |= _ONE << np.uint64(d & 63)
        for lower in range(2):
            one = down if lower else up
            rest = (one[a, w] ^ one[d, w]) & ~own
            while rest != 0:
                if n + 4 > len(changed):
                    return 0, 0.0
                low = rest & (~rest + _ONE)
                z = (w << 6) + _count(low - _ONE)
                rest ^= low
                first, second = (z * p + a, z * p + d) if lower else (a * p + z, d * p + z)
                change = weight[z, d] - weight[z, a] if lower else weight[d, z] - weight[a, z]
                gain += change if one[a, w] & low != 0 else -change
                changed[n] = first
                changed[n + 1] = second
                n += 2
    if _has(up, a, d) or _has(up, d, a):
        change = weight[d, a] - weight[a, d]
        gain += change if _has(up, a, d) else -change
        changed[n] = a * p + d
        changed[n + 1] = d * p + a
        n += 2
    return n, gain


@compiled()
def metropolis(  # type: ignore[no-untyped-def]
    up, down, weight, cover_cost, beta, active, proposals, sweeps, state, counts, trace, score
):
    """Run `sweeps` sweeps of `proposals` flips, bridges and exchanges; the order changes in place.

    Parameters
    ----------
    up, down : array of uint64, shape (p, words)
    weight : array of float, shape (p, p)
    cover_cost, beta : float
        Price of a cover; inverse temperature.
    active : array of int, shape (n,)
        Pairs `a * p + d` worth proposing often: every other proposal is drawn from them.
    state : array of uint64, shape (1,)
        Random state.
    counts : array of int32, shape (p, p)
        Raised by one where a is an ancestor of d, after each sweep. Shape (0, 0): not counted.
    trace : array of float, shape (sweeps,)
        The score after each sweep.
    score : float
        The score at the start.

    Returns
    -------
    float
        The score at the end.
    """
    p = up.shape[0]
    everything = np.uint64(p * p)
    n_active = np.uint64(active.shape[0])
    room, masks = np.empty((2, 66), np.int64), np.empty((3, 64), np.uint64)
    changed = np.empty(_LARGEST_BRIDGE, np.int64)
    # Up to 64 labels a bridge costs little more than a flip, and there is one for every flip; with
    # more words its cost grows faster than a flip's, and it is proposed so much more rarely.
    flips = 1 if up.shape[1] == 1 else 4 * up.shape[1] ** 2
    # Which pairs hold without the bridge: none of themselves, or those with some evidence.
    thresholds = np.array([np.inf, 8.0, 3.0, 1.0])
    for sweep in range(sweeps):
        for step in range(proposals):
            z = _random(state)
            if n_active > 0 and step & 1 == 0:
                pair = active[np.int64((z >> np.uint64(20)) % n_active)]
            else:
                pair = np.int64((z >> np.uint64(20)) % everything)
            a = pair // p
            d = pair - a * p
            if a == d:
                continue
            n_changed = 1
            changed[0] = pair
            turn = step >> 1
            large = turn % (flips + 1) == flips
            if large and (turn // (flips + 1)) & 3 == 3:
                n_changed, gain = _exchange(up, down, a, d, weight, changed)
                if n_changed == 0:
                    continue
            elif large:
                if _has(up, d, a) or (_has(up, a, d) and _shared(up, a, down, d, 1) > 0):
                    continue
                threshold = thresholds[np.int64(z & np.uint64(3))]
                n_changed, gain = _bridge(
                    up, down, a, d, weight, threshold, cover_cost, room, masks, changed
                )
                if n_changed == 0:
                    continue
            elif _has(up, a, d):
                if _shared(up, a, down, d, 1) > 0:
                    continue
                gain = -weight[a, d]
                if cover_cost != 0.0:
                    gain += cover_cost * (1 - _covers_met(up, down, a, d, 1))
            else:
                if _has(up, d, a):
                    continue
                if not (_within(down, a, down, d) and _within(up, d, up, a)):
                    continue
                gain = weight[a, d]
                if cover_cost != 0.0:
                    gain += cover_cost * (_covers_met(up, down, a, d, 0) - 1)
            if gain < 0.0:
                u = np.float64(_random(state) >> np.uint64(11)) * 1.1102230246251565e-16
                if u <= 0.0 or np.log(u) >= beta * gain:
                    continue
            for k in range(n_changed):
                a = changed[k] // p
                d = changed[k] - a * p
                up[a, d >> 6] ^= _ONE << np.uint64(d & 63)
                down[d, a >> 6] ^= _ONE << np.uint64(a & 63)
            score += gain
        trace[sweep] = score
        if counts.shape[0] == p:
            for a in range(p):
                for w in range(up.shape[1]):
                    rest = up[a, w]
                    while rest != 0:
                        low = rest & (~rest + _ONE)
                        counts[a, (w << 6) + _count(low - _ONE)] += 1
                        rest ^= low
    return score


@compiled()
def insert_greedily(up, down, weight, candidates):  # type: ignore[no-untyped-def]
    """Insert candidate pairs, best first, each with all it implies, when the sum gains.

    Inserting (a, d) adds every missing pair from {a} ∪ ancestors(a) to {d} ∪ descendants(d); it
    is done when these weigh more than zero together. The order changes in place.
    """
    p = up.shape[0]
    above = np.empty(p, dtype=np.int64)
    below = np.empty(p, dtype=np.int64)
    for c in range(candidates.shape[0]):
        a = candidates[c] // p
        d = candidates[c] - a * p
        if a == d or _has(up, a, d) or _has(up, d, a):
            continue
        n_above, n_below = 1, 1
        above[0], below[0] = a, d
        for w in range(up.shape[1]):
            rest = down[a, w]
            while rest != 0:
                low = rest & (~rest + _ONE)
                above[n_above] = (w << 6) + _count(low - _ONE)
                n_above += 1
                rest ^= low
            rest = up[d, w]
            while rest != 0:
                low = rest & (~rest + _ONE)
                below[n_below] = (w << 6) + _count(low - _ONE)
                n_below += 1
                rest ^= low
        gain = 0.0
        for i in range(n_above):
            for j in range(n_below):
                if not _has(up, above[i], below[j]):
                    gain += weight[above[i], below[j]]
        if gain <= 0.0:
            continue
        for i in range(n_above):
            up[above[i], d >> 6] |= _ONE << np.uint64(d & 63)
            for w in range(up.shape[1]):
                up[above[i], w] |= up[d, w]
        for j in range(n_below):
            down[below[j], a >> 6] |= _ONE << np.uint64(a & 63)
            for w in range(up.shape[1]):
                down[below[j], w] |= down[a, w]
