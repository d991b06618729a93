"""Metropolis steps with the moves of `moves`, compiled.

A sweep proposes `BRIDGES` bridges for every active pair, three in four of them two at a time, and
then flips of any pair. Bridges move what evidence holds together. Flips are cheap and reach every
order: most pairs are improbable, but there are many of them, and they change by flips alone.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.assembly.posterior.moves import (
    LARGEST_BRIDGE,
    LONGEST_SIDE,
    ONE,
    bridge,
    empty_but,
    flip,
    inlined,
    may_flip,
    n_between,
)
from jigsaw_crl.assembly.posterior.walk import BRIDGES, FACT
from jigsaw_crl.base.bitsets import bit, compiled, n_bits

__all__ = ["metropolis", "take_over"]


@inlined
def _random_bits(random):  # type: ignore[no-untyped-def]
    """The next 64 random bits (SplitMix64); chains in threads each have their own generator."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    z = random[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def _accepts(random, beta, gain):  # type: ignore[no-untyped-def]
    """Metropolis: with probability min(1, e^{beta · gain})."""
    if gain < 0.0:
        u = np.float64(_random_bits(random) >> np.uint64(11)) * 2.0**-53
        return u > 0.0 and np.log(u) < beta * gain
    return True


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
def _count(up, counts):  # type: ignore[no-untyped-def]
    """Add one to `counts` at every pair of the order."""
    for a in range(up.shape[0]):
        for w in range(up.shape[1]):
            rest = up[a, w]
            while rest != 0:
                low = rest & (~rest + ONE)
                counts[a, (w << 6) + n_bits(low - ONE)] += 1
                rest ^= low


@inlined
def _threshold(kind):  # type: ignore[no-untyped-def]
    """Deleting a bridge keeps the pairs worth more than one of these."""
    if kind == 0:
        return np.inf
    if kind == 1:
        return 8.0
    return 3.0 if kind == 2 else 1.0


@inlined
def _second(random, starts, touching, pair, p):  # type: ignore[no-untyped-def]
    """An active pair that has a label in common with `pair`, drawn at random; -1 if it is the same.

    One of the two labels is drawn, then one of its pairs. With the roles of the two pairs
    exchanged, the probability is the same.
    """
    z = _random_bits(random)
    label = pair // p if z & ONE == 0 else pair % p
    first, n = starts[label], starts[label + 1] - starts[label]
    found = touching[first + np.int64((z >> np.uint64(20)) % np.uint64(n))]
    return -1 if found == pair else found


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
    starts,
    touching,
    flips,
    beta,
    counts,
    kept,
    trace,
):
    """Run one sweep per entry of `trace`; `up`, `down` and `random` change in place.

    `walk.Chain` calls it by keyword.

    Parameters
    ----------
    up, down : array of uint64, shape (p, words)
    implied, cover : array of float, shape (p, p)
    ancestry : array of float, shape (p,)
    named, targets, active, starts, touching
        As in `walk.Chain`.
    random : array of uint64, shape (1,)
        State of the random generator.
    score : float
        The score at the start.
    flips : int
        Flips in a sweep.
    beta : float
        Inverse temperature.
    counts : array of int32, shape (p, p)
        Incremented at the order's pairs after each sweep; not used if its shape is (0, 0).
    kept : array of uint64, shape (n, p, words)
        Filled with `up` after every (sweeps // n)-th sweep; n may be 0.
    trace : array of float, shape (sweeps,)
        Filled with the score after each sweep.

    Returns
    -------
    float
        The score at the end.
    """
    p = up.shape[0]
    sides = np.empty((2, LONGEST_SIDE + 1), np.int64)
    masks = np.empty((3, LONGEST_SIDE), np.uint64)
    changed = np.empty((2, LARGEST_BRIDGE), np.int64)
    every = trace.shape[0] // max(kept.shape[0], 1)
    n_pairs, n_active = np.uint64(p * p), np.uint64(active.shape[0])
    for sweep in range(trace.shape[0]):
        for step in range(BRIDGES * active.shape[0]):
            z = _random_bits(random)
            pair = active[np.int64((z >> np.uint64(20)) % n_active)]
            second = -1 if step & 3 == 0 else _second(random, starts, touching, pair, p)
            broken = _broken(down, named, targets)
            # Each bridge is its own inverse, so two are undone by both in the other order.
            gain, first, n = 0.0, 0, 0
            for part in range(2 if second >= 0 else 1):
                if part == 1:
                    first, pair = n, second
                threshold = _threshold((z >> np.uint64(2 * part)) & np.uint64(3))
                n, more = bridge(
                    up,
                    down,
                    implied,
                    cover,
                    ancestry,
                    changed[part],
                    pair // p,
                    pair % p,
                    threshold,
                    sides,
                    masks,
                )
                if n == 0:
                    gain = -np.inf
                    break
                gain += more
                _apply(up, down, changed[part], n)
            if n > 0:
                gain += FACT * (broken - _broken(down, named, targets))
            if _accepts(random, beta, gain):
                score += gain
            else:
                _apply(up, down, changed[1 if first > 0 else 0], n)
                _apply(up, down, changed[0], first)
        for _ in range(flips):
            pair = np.int64((_random_bits(random) >> np.uint64(20)) % n_pairs)
            a = pair // p
            d = pair - a * p
            if a == d or not may_flip(up, down, a, d):
                continue
            gain = flip(up, down, implied, cover, ancestry, a, d)
            broken = _broken(down, named, targets)
            changed[0, 0] = pair
            _apply(up, down, changed[0], 1)
            gain += FACT * (broken - _broken(down, named, targets))
            if _accepts(random, beta, gain):
                score += gain
            else:
                _apply(up, down, changed[0], 1)
        trace[sweep] = score
        if counts.shape[0] == p:
            _count(up, counts)
        if kept.shape[0] > 0 and (sweep + 1) % every == 0 and sweep // every < kept.shape[0]:
            kept[sweep // every] = up
    return score


@inlined
def _score(up, down, implied, cover, ancestry):  # type: ignore[no-untyped-def]
    """Worth of an order."""
    p, words = up.shape
    total = 0.0
    for a in range(p):
        if not empty_but(down, a, -1):
            total += ancestry[a]
        for w in range(words):
            rest = up[a, w]
            while rest != 0:
                low = rest & (~rest + ONE)
                d = (w << 6) + n_bits(low - ONE)
                rest ^= low
                total += implied[a, d]
                if n_between(up, down, a, d, 1) == 0:
                    total += cover[a, d]
    return total


@compiled()
def take_over(up, down, implied, cover, ancestry, pairs, ends, least):  # type: ignore[no-untyped-def]
    """Change each part of `pairs` if that gains more than `least`; in place.

    Part k is `pairs[ends[k - 1] : ends[k]]`, from `starts.parts`.
    """
    score = _score(up, down, implied, cover, ancestry)
    first = 0
    for k in range(ends.shape[0]):
        part = pairs[first : ends[k]]
        first = ends[k]
        _apply(up, down, part, len(part))
        changed = _score(up, down, implied, cover, ancestry)
        if changed > score + least:
            score = changed
        else:
            _apply(up, down, part, len(part))
