"""Metropolis moves on strict partial orders, compiled.

An order on p labels is two arrays of 64-bit words, `up` and `down`, shape (p, words): bit d of
`up[a]` and bit a of `down[d]` are set when a is an ancestor of d. The score of an order R is

    Σ_{(a, d) ∈ R} implied[a, d] + Σ_{covers (a, d)} cover[a, d] + Σ_{d with ancestors} ancestry[d]

There are two moves. The *bridge* of a pair (a, d) adds or deletes most of A × D, where A is a with
its ancestors and D is d with its descendants: in orders with many certain pairs, (a, d) can
often not change alone. Deleting the bridge keeps those pairs of A × D that have a label outside A
and D between them, and those implied by a pair worth more than a threshold. Adding it is proposed
only if the order holds exactly the pairs that deletion would keep. Neither direction changes A, D
or the kept pairs, so each is the inverse of the other and both are proposed with the same
probability. With a threshold of minus infinity the pair changes alone: a *flip*.

A label v is *moved* by taking it out of the order and placing it anew: right below another label
w, right above or beside it, below it without descendants, above it without ancestors, or beside
nothing. The places depend on the order of the others alone, and one of them is drawn in proportion
to what the order is worth with it. The same place may be that of several w, which the acceptance
allows for; from any other place a label cannot be moved.

A sweep proposes a bridge for every active pair, then flips, and then moves of labels. Flips are
cheap and reach every order: a quarter of them try any pair, the others one that costs little. Most
pairs are improbable, but there are many of them, and they change by flips alone. Labels that stand
on the wrong side of several others come to the right one by moves alone.

Importing this module loads numba (about half a second), so callers import it inside the functions
that use it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numba as nb
import numpy as np

from jigsaw_crl.assembly.posterior.walk import FACT

# The lowest bit of a word.
ONE = np.uint64(1)
# Larger bridges are not proposed: a flip costs a few operations, a bridge one per pair. A set of
# rows or columns fits one word.
LARGEST_BRIDGE, LONGEST_SIDE = 1024, 64
# Kinds of places by a label, of which a label has the first by itself: without others.
BESIDE, BELOW, ABOVE, BELOW_ALL, ABOVE_ALL, KINDS = range(6)
# Deleting a bridge keeps the pairs worth more than one of these, drawn at random.
THRESHOLDS = (np.inf, 8.0, 3.0, 1.0)
# As numpy does, and without the lock of the interpreter.
jit: Any = partial(nb.njit, nogil=True, error_model="numpy")
# Moves are inlined, because passing an array to a compiled function counts a reference, which is
# slow here. Grouped in a named tuple, the arrays took twice as long. Only compiled functions call
# them, so that Python needs no way to.
inlined = jit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def compiled(function: Callable[..., Any]) -> Any:
    """The function compiled, and cached on disk.

    Without a writable cache folder every process compiles for itself.
    """
    try:
        return jit(cache=True)(function)
    except RuntimeError:
        return jit()(function)


@inlined
def bit(label):  # type: ignore[no-untyped-def]
    """The bit of a label within its word, which is word `label >> 6`."""
    return ONE << np.uint64(label & 63)


@inlined
def contains(words, row, label):  # type: ignore[no-untyped-def]
    """Is `label` in the set `words[row]`?"""
    return (words[row, label >> 6] >> np.uint64(label & 63)) & ONE != 0


@inlined
def members(words, row, first, out):  # type: ignore[no-untyped-def]
    """Write `first`, then the set `words[row]`, ascending, to `out` till it is full; how many."""
    out[0] = first
    n = 1
    for w in range(words.shape[1]):
        rest = words[row, w]
        while rest != 0 and n < len(out):
            low = rest & (~rest + ONE)
            out[n] = (w << 6) + math.frexp(np.float64(low))[1] - 1
            n += 1
            rest ^= low
    return n


@inlined
def _outside_between(up, down, x, y, a, d):  # type: ignore[no-untyped-def]
    """Is there a label between x and y that is neither in A nor in D? Between a and d all are."""
    for w in range(up.shape[1]):
        between = up[x, w] & down[y, w] & ~down[a, w] & ~up[d, w]
        if a >> 6 == w:
            between &= ~bit(a)
        if d >> 6 == w:
            between &= ~bit(d)
        if between != 0:
            return True
    return False


@inlined
def _may_flip(up, down, a, d):  # type: ignore[no-untyped-def]
    """Is the order still transitive after the pair (a, d) is added, or deleted if present?"""
    if contains(up, a, d):
        return not _outside_between(up, down, a, d, a, d)
    # If d is an ancestor of a, the first set holds d and the test fails.
    for w in range(up.shape[1]):  # noqa: SIM110 (numba does not compile generators)
        if (down[a, w] & ~down[d, w]) | (up[d, w] & ~up[a, w]) != 0:
            return False
    return True


@inlined
def _mark_kept(up, down, implied, threshold, a, d, sides, n_above, n_below, masks):  # type: ignore[no-untyped-def]
    """Fill `masks[0, i]`, bits over D: the pairs of row i of A that stay without the bridge.

    Also fills, for each label of D, bits over D: `masks[1]` (itself and its descendants) and
    `masks[2]` (its ancestors).
    """
    for j in range(n_below):
        masks[1, j] = bit(j)
        masks[2, j] = 0
        for k in range(n_below):
            if contains(up, sides[1, j], sides[1, k]):
                masks[1, j] |= bit(k)
            elif contains(up, sides[1, k], sides[1, j]):
                masks[2, j] |= bit(k)
    for i in range(n_above):
        x = sides[0, i]
        masks[0, i] = 0
        for j in range(n_below):
            y = sides[1, j]
            has_evidence = implied[x, y] > threshold and i + j > 0
            if has_evidence or _outside_between(up, down, x, y, a, d):
                masks[0, i] |= masks[1, j]
    for i in range(n_above):
        for k in range(n_above):
            if contains(up, sides[0, i], sides[0, k]):
                masks[0, i] |= masks[0, k]


@inlined
def _bridge(up, down, implied, cover, ancestry, changed, a, d, threshold, sides, masks):  # type: ignore[no-untyped-def]
    """The pairs that the bridge changes, written to `changed`: their number, and the gain.

    The number is 0 if the bridge is impossible or too large. `sides` and `masks` are working space.
    """
    present = contains(up, a, d)
    if contains(up, d, a) or (present and _outside_between(up, down, a, d, a, d)):
        return 0, 0.0
    n_above, n_below = members(down, a, a, sides[0]), members(up, d, d, sides[1])
    too_long = n_above > LONGEST_SIDE or n_below > LONGEST_SIDE
    if too_long or n_above * n_below > LARGEST_BRIDGE:
        return 0, 0.0
    _mark_kept(up, down, implied, threshold, a, d, sides, n_above, n_below, masks)
    n, gain = 0, cover[a, d]
    orphan = True  # d has no ancestor without the bridge
    for i in range(n_above):
        x = sides[0, i]
        for j in range(n_below):
            y = sides[1, j]
            stays = (masks[0, i] >> np.uint64(j)) & ONE != 0
            if not present and stays != contains(up, x, y):
                return 0, 0.0
            if not stays:
                gain += implied[x, y]
                changed[n] = x * up.shape[0] + y
                n += 1
                continue
            if j == 0:
                orphan = False
            if masks[0, i] & masks[2, j] == 0:
                # A cover without the bridge, unless a label of A or an outside one is between.
                between = _outside_between(up, down, x, y, a, d)
                for k in range(n_above):
                    if contains(up, x, sides[0, k]) and (masks[0, k] >> np.uint64(j)) & ONE != 0:
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


@inlined
def _random_bits(random):  # type: ignore[no-untyped-def]
    """The next 64 random bits (SplitMix64); chains in threads each have their own generator."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def _apply(up, down, changed, n):  # type: ignore[no-untyped-def]
    """Change the first n pairs of `changed`."""
    p = up.shape[0]
    for k in range(n):
        a = changed[k] // p
        d = changed[k] - a * p
        up[a, d >> 6] ^= bit(d)
        down[d, a >> 6] ^= bit(a)


@inlined
def _broken(down, named, targets):  # type: ignore[no-untyped-def]
    """Number of statements "one of these is an ancestor of d" that the order contradicts."""
    total = 0
    for k in range(targets.shape[0]):
        held = False
        for w in range(named.shape[1]):
            if named[k, w] & down[targets[k], w] != 0:
                held = True
        if not held:
            total += 1
    return total


@inlined
def _place(up, down, w, kind, k):  # type: ignore[no-untyped-def]
    """Word k of the ancestors, and of the descendants, that a label has at a place by w."""
    above = down[w, k] if kind != ABOVE_ALL else np.uint64(0)
    below = up[w, k] if kind != BELOW_ALL else np.uint64(0)
    if k == w >> 6 and kind in (BELOW, BELOW_ALL):
        above |= bit(w)
    if k == w >> 6 and kind in (ABOVE, ABOVE_ALL):
        below |= bit(w)
    return above, below


@inlined
def _places(up, down, v, place):  # type: ignore[no-untyped-def]
    """How many of the places of v are `place`, and one of them."""
    n, one = 0, 0
    for w in range(up.shape[0]):
        for kind in range(KINDS if w != v else 1):
            same = True
            for k in range(up.shape[1]):
                above, below = _place(up, down, w, kind, k)
                if place[0, k] != above or place[1, k] != below:
                    same = False
                    break
            if same:
                n, one = n + 1, w * KINDS + kind
    return n, one


@inlined
def _covers(up, down, a, d):  # type: ignore[no-untyped-def]
    """Is no label between an ancestor a and d?"""
    for k in range(up.shape[1]):  # noqa: SIM110 (numba does not compile generators)
        if up[a, k] & down[d, k] != 0:
            return False
    return True


@inlined
def _worths(up, down, implied, cover, ancestry, v, labels, worth):  # type: ignore[no-untyped-def]
    """Fill `worth`: what the order gains if v, which is taken out, is put at each of its places.

    Of the labels above or below v, those next to it are w, or those next to w.
    """
    for w in range(up.shape[0]):
        n_above, n_below = members(down, w, w, labels[0]), members(up, w, w, labels[1])
        above, right_above, cut_above = 0.0, 0.0, 0.0
        for i in range(1, n_above):
            u = labels[0, i]
            above += implied[u, v]
            if _covers(up, down, u, w):
                right_above += cover[u, v]
                cut_above += cover[u, w]
        below, right_below, cut_below = 0.0, 0.0, 0.0
        for i in range(1, n_below):
            x = labels[1, i]
            below += implied[v, x]
            if _covers(up, down, w, x):
                right_below += cover[v, x]
                cut_below += cover[w, x]
        over, under = implied[w, v] + cover[w, v], implied[v, w] + cover[v, w]
        has = ancestry[v] if n_above > 1 else 0.0
        # w has ancestors by v alone.
        gets = ancestry[w] if n_above == 1 else 0.0
        first = w * KINDS
        worth[first + BESIDE] = above + right_above + below + right_below + has
        worth[first + BELOW] = above + over + below + right_below - cut_below + ancestry[v]
        worth[first + ABOVE] = above + right_above - cut_above + under + below + has + gets
        worth[first + BELOW_ALL] = above + over + ancestry[v]
        worth[first + ABOVE_ALL] = under + below + gets
    for kind in range(1, KINDS):
        worth[v * KINDS + kind] = -np.inf


@inlined
def _drawn(random, worth, upto):  # type: ignore[no-untyped-def]
    """One of the places, drawn in proportion to exp(worth); `upto` is working space."""
    most, total = worth.max(), 0.0
    for i in range(worth.shape[0]):
        total += np.exp(worth[i] - most)
        upto[i] = total
    u = np.float64(_random_bits(random) >> np.uint64(11)) * 2.0**-53
    return min(np.searchsorted(upto, u * total, side="right"), worth.shape[0] - 1)


@inlined
def _put(up, down, v, place):  # type: ignore[no-untyped-def]
    """Put v, wherever it is, in a place."""
    for x in range(up.shape[0]):
        word, own = v >> 6, bit(v)
        up[x, word] &= ~own
        down[x, word] &= ~own
        if contains(place, 0, x):
            up[x, word] |= own
        if contains(place, 1, x):
            down[x, word] |= own
    for k in range(up.shape[1]):
        down[v, k] = place[0, k]
        up[v, k] = place[1, k]


@compiled
def metropolis(  # type: ignore[no-untyped-def]
    up,
    down,
    implied,
    cover,
    ancestry,
    named,
    targets,
    random,
    score,
    active,
    likely,
    flips,
    moved,
    counts,
    kept,
    trace,
):
    """Run one sweep per entry of `trace`, filled with the score, and return the score at the end.

    `up`, `down` and `random` (the state of the generator, one word) change in place. `active` holds
    the pairs `a * p + d` whose bridges are proposed, `likely` those that most flips try, `named`
    and `targets` the candidates of each statement "one of these is an ancestor of d", as bit sets,
    and d. `counts` grows by one at the pairs of the order after each sweep; `up` is copied to the
    next of the n rows of `kept` after every (sweeps // n)-th one.
    """
    p = up.shape[0]
    sides = np.empty((2, LONGEST_SIDE + 1), np.int64)
    masks = np.empty((3, LONGEST_SIDE), np.uint64)
    changed = np.empty(LARGEST_BRIDGE, np.int64)
    old, new = np.empty((2, 2, up.shape[1]), np.uint64)
    nowhere = np.zeros((2, up.shape[1]), np.uint64)
    labels = np.empty((2, p + 1), np.int64)
    worth, upto = np.empty((2, KINDS * p))
    every = trace.shape[0] // max(kept.shape[0], 1)
    n_pairs, n_active, n_likely = np.uint64(p * p), active.shape[0], np.uint64(likely.shape[0])
    for sweep in range(trace.shape[0]):
        for step in range(n_active + flips):
            z = _random_bits(random)
            pair, threshold = np.int64((z >> np.uint64(20)) % n_pairs), -np.inf
            if step >= n_active and n_likely > 0 and z & np.uint64(3) != 0:
                pair = likely[np.int64((z >> np.uint64(20)) % n_likely)]
            if step < n_active:
                pair = active[np.int64((z >> np.uint64(20)) % np.uint64(n_active))]
                threshold = THRESHOLDS[np.int64(z & np.uint64(3))]
            a, d = pair // p, pair % p
            if a == d or (step >= n_active and not _may_flip(up, down, a, d)):
                continue
            n, gain = _bridge(
                up, down, implied, cover, ancestry, changed, a, d, threshold, sides, masks
            )
            if n == 0:
                continue
            broken = _broken(down, named, targets)
            _apply(up, down, changed, n)
            gain += FACT * (broken - _broken(down, named, targets))
            u = np.float64(_random_bits(random) >> np.uint64(11)) * 2.0**-53
            if gain >= 0.0 or (u > 0.0 and np.log(u) < gain):
                score += gain
            else:
                # A bridge is its own inverse.
                _apply(up, down, changed, n)
        for _ in range(moved if p > 1 else 0):
            v = np.int64((_random_bits(random) >> np.uint64(20)) % np.uint64(p))
            broken = _broken(down, named, targets)
            for k in range(up.shape[1]):
                old[0, k], old[1, k] = down[v, k], up[v, k]
            _put(up, down, v, nowhere)
            back, was = _places(up, down, v, old)
            if back > 0:
                _worths(up, down, implied, cover, ancestry, v, labels, worth)
                place = _drawn(random, worth, upto)
                for k in range(up.shape[1]):
                    new[0, k], new[1, k] = _place(up, down, place // KINDS, place % KINDS, k)
                forth, _ = _places(up, down, v, new)
                _put(up, down, v, new)
                u = np.float64(_random_bits(random) >> np.uint64(11)) * 2.0**-53
                certain = FACT * (broken - _broken(down, named, targets))
                if u > 0.0 and np.log(u) < certain + np.log(back / forth):
                    score += worth[place] - worth[was] + certain
                    continue
            _put(up, down, v, old)
        trace[sweep] = score
        row = sweep // every
        keep = kept.shape[0] > row and (sweep + 1) % every == 0
        for a in range(p):
            # Not by assignment of the array: its error message takes longest to compile.
            for w in range(up.shape[1] if keep else 0):
                kept[row, a, w] = up[a, w]
            for d in range(counts.shape[0]):
                counts[a, d] += contains(up, a, d)
    return score
