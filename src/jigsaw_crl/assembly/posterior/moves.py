"""Metropolis moves on strict partial orders, compiled.

Orders are bit sets (see `base.bitsets`). The score of an order R is

    Σ_{(a, d) ∈ R} implied[a, d] + Σ_{covers (a, d)} cover[a, d] + Σ_{d with ancestors} ancestry[d]

There is one move, the *bridge* of a pair (a, d). It adds or deletes most of A × D, where A is a
with its ancestors and D is d with its descendants: in orders with many certain pairs, (a, d) can
often not change alone. Deleting the bridge keeps those pairs of A × D that have a label outside A
and D between them, and those implied by a pair worth more than a threshold. Adding it is proposed
only if the order holds exactly the pairs that deletion would keep. Neither direction changes A, D
or the kept pairs, so each is the inverse of the other and both are proposed with the same
probability. With a threshold of minus infinity the pair changes alone: a *flip*.

A sweep proposes a bridge for every active pair, three in four together with that of another active
pair, and then flips of any pair. Flips are cheap and reach every order: most pairs are improbable,
but there are many of them, and they change by flips alone.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.assembly.posterior.walk import FACT
from jigsaw_crl.base.bitsets import bit, compiled, contains, members

__all__ = ["metropolis"]

# The lowest bit of a word.
ONE = np.uint64(1)
# Larger bridges are not proposed: a flip costs a few operations, a bridge one per pair. A set of
# rows or columns fits one word. Of more active pairs two have seldom to do with each other.
LARGEST_BRIDGE, LONGEST_SIDE, PAIRED = 1024, 64, 500
# Deleting a bridge keeps the pairs worth more than one of these, drawn at random.
THRESHOLDS = (np.inf, 8.0, 3.0, 1.0)
# Moves are inlined, because passing an array to a compiled function counts a reference, which is
# slow here. Grouped in a named tuple, the arrays took twice as long.
inlined = compiled(kept=False, forceinline=True)


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


@compiled()
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
    flips,
    beta,
    counts,
    kept,
    trace,
):
    """Run one sweep per entry of `trace`, filled with the score, and return the score at the end.

    `up`, `down` and `random` (the state of the generator, one word) change in place. `active` holds
    the pairs `a * p + d` whose bridges are proposed, `named` and `targets` the candidates of each
    statement "one of these is an ancestor of d", as bit sets, and d. `counts` grows by one at the
    pairs of the order after each sweep; `up` is copied to the next of the n rows of `kept` after
    every (sweeps // n)-th one. `beta` is the inverse temperature.
    """
    p = up.shape[0]
    sides = np.empty((2, LONGEST_SIDE + 1), np.int64)
    masks = np.empty((3, LONGEST_SIDE), np.uint64)
    changed = np.empty((2, LARGEST_BRIDGE), np.int64)
    every = trace.shape[0] // max(kept.shape[0], 1)
    n_pairs, n_active = np.uint64(p * p), active.shape[0]
    for sweep in range(trace.shape[0]):
        for step in range(n_active + flips):
            broken, gain, n = _broken(down, named, targets), 0.0, 0
            for part in range(2 if step < n_active <= PAIRED and step & 3 else 1):
                z = _random_bits(random)
                pair, threshold = np.int64((z >> np.uint64(20)) % n_pairs), -np.inf
                if step < n_active:
                    pair = active[np.int64((z >> np.uint64(20)) % np.uint64(n_active))]
                    threshold = THRESHOLDS[np.int64(z & np.uint64(3))]
                a, d = pair // p, pair % p
                first, n, more = n, 0, 0.0
                if a != d and (step < n_active or _may_flip(up, down, a, d)):
                    mine = changed[part]
                    n, more = _bridge(
                        up, down, implied, cover, ancestry, mine, a, d, threshold, sides, masks
                    )
                if n == 0:
                    break
                gain += more
                _apply(up, down, mine, n)
            if n > 0:
                gain += FACT * (broken - _broken(down, named, targets))
                u = np.float64(_random_bits(random) >> np.uint64(11)) * 2.0**-53
                if gain >= 0.0 or (u > 0.0 and np.log(u) < beta * gain):
                    score += gain
                    continue
            # Each bridge is its own inverse, so two are undone by both in the other order.
            _apply(up, down, changed[part], n)
            _apply(up, down, changed[0], first)
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
