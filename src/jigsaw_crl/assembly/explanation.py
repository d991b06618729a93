"""Why does a pair have its verdict? A proof, a path of direct evidence, or a reason for doubt."""

from __future__ import annotations

import heapq
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.bounds import says_nothing, size_in_words
from jigsaw_crl.assembly.certificate import Certificate, Fact, Step, TotalEffect, say
from jigsaw_crl.assembly.decision import LEAST_AGAINST, LEAST_FOR, Why
from jigsaw_crl.assembly.exact import Prover
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.posterior.walk import KNOWN
from jigsaw_crl.assembly.verdict import CERTAIN_NO, NO, OPEN, YES
from jigsaw_crl.base.arrays import FloatArray

__all__ = ["explain"]


def explain(order: GlobalOrder, a: int, d: int, *, most_steps: int | None = None) -> Certificate:
    """The certificate of one ordered pair of positions.

    With `most_steps`, a longer proof from exact statements raises `TooLong`.
    """
    said = int(order.verdicts[a, d])
    steps: tuple[Step, ...] = ()
    reason = ""
    probability: float | None = None
    if order.mode == "evidence":
        probability = float(order.probabilities[a, d])
    elif said != OPEN and order.mode == "exact":
        # Algorithm 3 gives no probabilities.
        probability = float(said == YES)
    if said == OPEN:
        reason = _why_undetermined(order, a, d)
    elif order.mode == "exact":
        prover = Prover(order.facts, most_steps)
        prover.ancestor(a, d, said == YES)
        steps = tuple(prover.steps)
    elif order.mode == "paper":
        steps = (Step(Fact(order.labels[a], order.labels[d], True), "algorithm-3"),)
    else:
        steps = _from_evidence(order, a, d, said == YES)
    return Certificate(
        ancestor=order.labels[a],
        descendant=order.labels[d],
        verdict=order.verdict(order.labels[a], order.labels[d]),
        probability=probability,
        steps=steps,
        reason=reason,
        mode=order.mode,
        seed=order.seed,
        smallest_effect=order.smallest_effect,
        effect=None if said == NO else _effect(order, a, d),
        rests_on=order.table.resting(a, d),
        contested=bool(order.table.contested[a, d]),
        **_bound(order, a, d, said),
    )


def _bound(order: GlobalOrder, a: int, d: int, said: int) -> dict[str, Any]:
    """The size of effect that the data exclude, for pairs that are not stated as ancestors."""
    bounds = order.table.bounds
    value = float(bounds.value[a, d]) if said != YES and order.mode == "evidence" else np.nan
    return {} if np.isnan(value) else {"bound": value, "bound_unit": bounds.unit(a, d)}


def _effect(order: GlobalOrder, a: int, d: int) -> TotalEffect | None:
    effects = order.effects
    if effects is None or not effects.known[a, d]:
        return None
    aside = np.flatnonzero(effects.set_aside[:, a, d])
    return TotalEffect(
        total=float(effects.estimate[a, d]),
        standard_error=float(effects.error[a, d]),
        low=float(effects.low[a, d]),
        high=float(effects.high[a, d]),
        sites=int(effects.sites[a, d]),
        set_aside=tuple(effects.by_site.clients[k] for k in aside),
    )


# -- evidence ---------------------------------------------------------------------------------


def _from_evidence(order: GlobalOrder, a: int, d: int, holds: bool) -> tuple[Step, ...]:
    """Yes: the widest path of direct evidence. No: the strongest denial that implies it."""
    if order.table.why[a, d] == Why.SMALL:
        return (replace(_weighed(order, a, d, False), rule="small"),)
    if holds:
        width, following = _paths(order, d, up=True)
        if not np.isfinite(width[a]):
            return (_posterior(order, a, d, holds),)
        return tuple(_row(order, _trail(following, a, d)))
    up, following_up = _paths(order, a, up=True)
    down, following_down = _paths(order, d, up=False)
    # A direct denial of the pair itself is the simplest answer, if there is one.
    u, v, which = a, d, 0
    if order.table.why[a, d] not in (Why.EVIDENCE, Why.KNOWN):
        found = _denial(order, a, d, up, down)
        if found is None:
            return (_posterior(order, a, d, holds),)
        u, v, which = found
    steps: list[Step] = []
    heads: list[int] = []
    for trail in (_trail(following_up, u, a), _trail(following_down, v, d)[::-1]):
        if len(trail) > 1:
            heads.append(_append(steps, _row(order, trail)))
    if which == 0:
        heads.append(_append(steps, [_weighed(order, u, v, False)]))
    elif which == 1:
        heads.append(_append(steps, [_weighed(order, v, u, True)]))
    if (u, v) == (a, d) and which == 0:
        return tuple(steps)
    fact = Fact(order.labels[a], order.labels[d], False)
    return (*steps, Step(fact, "excluded", tuple(heads)))


def _denial(
    order: GlobalOrder, a: int, d: int, up: FloatArray, down: FloatArray
) -> tuple[int, int, int] | None:
    """The strongest refutation of a → d, as (u, v, kind); None if there is none.

    u is a or above it, v is d or below it. Kind 0: u → v is denied; 1: v → u is known; 2: u is v.
    """
    up, down = up.copy(), down.copy()
    up[a], down[d] = np.inf, np.inf
    above, below = np.flatnonzero(up > -np.inf)[:, None], np.flatnonzero(down > -np.inf)
    known, denied = _direct(order)
    same = np.where(above == below, np.inf, -np.inf)
    tables = np.stack((denied[above, below], known.T[above, below], same))
    tables = np.minimum(tables, np.minimum(up[above], down[below]))
    which, row, column = np.unravel_index(int(tables.argmax()), tables.shape)
    if not tables[which, row, column] > -np.inf:
        return None
    return int(above[row, 0]), int(below[column]), int(which)


def _direct(order: GlobalOrder) -> tuple[FloatArray, FloatArray]:
    """Direct evidence for what is stated, and against what is denied; -inf elsewhere. Kept."""
    kept = order.__dict__.setdefault("_direct_evidence", [])
    if not kept:
        E, said = order.evidence, order.verdicts
        known = order.table.why == Why.KNOWN
        own = (order.table.why == Why.EVIDENCE) | known
        E = np.where(known, np.where(said == YES, KNOWN, -KNOWN), E)
        denied = np.where((said == NO) & own, -E, -np.inf)
        np.fill_diagonal(denied, -np.inf)
        kept += [np.where((said == YES) & own, E, -np.inf), denied]
    return kept[0], kept[1]


def _paths(order: GlobalOrder, start: int, *, up: bool) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Widest paths of direct evidence from `start`, cached with the order."""
    kept = order.__dict__.setdefault("_widest_paths", {})
    if (start, up) not in kept:
        strong, _ = _direct(order)
        kept[start, up] = _widest(strong.T if up else strong, start)
    found: tuple[FloatArray, npt.NDArray[np.int64]] = kept[start, up]
    return found


def _append(steps: list[Step], more: list[Step]) -> int:
    """Append steps whose references count from their own first; returns the last one's number."""
    shift = len(steps)
    for step in more:
        steps.append(replace(step, because=tuple(i + shift for i in step.because)))
    return len(steps) - 1


def _row(order: GlobalOrder, trail: list[int]) -> list[Step]:
    """The direct steps along a trail, and the step from its first label to its last."""
    steps = [_weighed(order, u, v, True) for u, v in pairwise(trail)]
    if len(steps) > 1:
        fact = Fact(order.labels[trail[0]], order.labels[trail[-1]], True)
        steps.append(Step(fact, "chain", tuple(range(len(steps)))))
    return steps


def _weighed(order: GlobalOrder, a: int, d: int, holds: bool) -> Step:
    yes, no = order.said.sides(a, d)
    supporting, contradicting = (yes, no) if holds else (no, yes)
    return Step(
        Fact(order.labels[a], order.labels[d], holds),
        "known" if order.panel.known[a, d] == holds else "weighed",
        supporting=supporting,
        contradicting=contradicting,
        log_bayes_factor=round(float(order.evidence[a, d]), 6),
    )


def _posterior(order: GlobalOrder, a: int, d: int, holds: bool) -> Step:
    return replace(_weighed(order, a, d, holds), rule="posterior")


def _widest(strength: FloatArray, start: int) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Width of the widest path from `start` to every label, and each label's predecessor.

    The width of a path is the smallest strength along it.
    """
    p = len(strength)
    width = np.full(p, -np.inf)
    previous = np.full(p, -1, dtype=np.int64)
    width[start] = np.inf
    done = np.zeros(p, dtype=bool)
    queue = [(-np.inf, start)]
    while queue:
        _, u = heapq.heappop(queue)
        if done[u]:
            continue
        done[u] = True
        offer = np.minimum(width[u], strength[u])
        for v in np.flatnonzero((offer > width) & ~done).tolist():
            width[v], previous[v] = offer[v], u
            heapq.heappush(queue, (-float(offer[v]), v))
    width[start] = -np.inf
    return width, previous


def _trail(previous: npt.NDArray[np.int64], end: int, start: int) -> list[int]:
    """The labels of the path from `end` back to `start`."""
    trail = [end]
    while trail[-1] != start:
        trail.append(int(previous[trail[-1]]))
    return trail


# -- doubt ------------------------------------------------------------------------------------


def _why_undetermined(order: GlobalOrder, a: int, d: int) -> str:
    rule = _why_no_verdict(order, a, d)
    told = _who_says_what(order, a, d, weakly=not rule)
    return f"{told}; {rule}" if rule else told


def _who_says_what(order: GlobalOrder, a: int, d: int, *, weakly: bool) -> str:
    if order.mode == "paper":
        return "Algorithm 3 does not state this relation, and it never denies one"
    seen = order.panel.seen_by(a, d)
    if not seen:
        return "no client saw both"
    yes, no = order.said.sides(a, d)
    if yes and no:
        return f"{say(yes, 'yes')}, {say(no, 'no')}"
    names = ", ".join(order.panel.rows[k].client for k, _, _ in seen)
    if all(order.panel.rows[k].together[i, j] for k, i, j in seen) and not yes and not no:
        return f"both always in one district, joined by hidden causes: {names}"
    if not yes and not no:
        return f"the clients that saw both cannot say: {names}"
    doubt = ""
    if order.mode == "evidence" and weakly:
        net = order.evidence[a, d]
        doubt = f", but not strongly enough for a verdict (log Bayes factor {_signed(net)})"
    return f"{say(yes, 'yes') if yes else say(no, 'no')}{doubt}"


def _why_no_verdict(order: GlobalOrder, a: int, d: int) -> str:
    """Why chains that disagree, or a probability beyond a threshold, give no verdict; or empty."""
    if order.mode != "evidence":
        return ""
    why, net = order.table.why[a, d], float(order.evidence[a, d])
    if why == Why.DISPUTED:
        return (
            "the chains that sample orders disagree on this pair: one alone would decide it, "
            "another would not"
        )
    if why == Why.LARGE:
        bounds = order.table.bounds
        bound, unit = float(bounds.value[a, d]), bounds.unit(a, d)
        size = f"up to {size_in_words(bound, unit, order.labels[d])}"
        possible = "of any size" if says_nothing(bound, unit) else size
        matters = order.smallest_effect
        return f"effects {possible} are possible, and effects above {matters:g} matter"
    if why != Why.PRIOR:
        return ""
    if order.probabilities[a, d] < CERTAIN_NO:
        return (
            "the probability is low because few pairs are related at all, or because other pairs "
            f'are likely; "not ancestor" needs a log Bayes factor of -{LEAST_AGAINST:.1f} or less '
            f"(here {_signed(net)}), or decided pairs that imply it"
        )
    return (
        'the probability is high because other pairs are likely; "ancestor" needs a log Bayes '
        f"factor of {LEAST_FOR:.1f} or more (here {_signed(net)}), or decided pairs that imply it"
    )


def _signed(number: float) -> str:
    """With a sign and one decimal; zero is never negative."""
    return f"{round(float(number), 1) + 0.0:+.1f}"
