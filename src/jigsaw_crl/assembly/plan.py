"""The design of the next experiment: a new site, more rows, or other interventions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.design import EVEN, Pair, Proposal, propose
from jigsaw_crl.assembly.effects import PooledEffects
from jigsaw_crl.assembly.futures import Outlook, more_rows, own_rows
from jigsaw_crl.assembly.graph import EdgeVerdict
from jigsaw_crl.assembly.verdict import NO
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.text import few, pluralise

if TYPE_CHECKING:
    import pandas as pd

    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["Design", "EffectNeed", "MoreRows", "design", "effect_needs", "rows_needed"]

# Factors on a site's rows that are tried, and on all rows, for an edge.
FACTORS = (2.0, 8.0, 64.0)
EDGE_FACTORS = tuple(float(x) for x in np.geomspace(1.1, 1000.0, 120))
# The chance that is called good.
GOOD = 0.8


@dataclass(frozen=True)
class MoreRows:
    """The rows that would settle one open pair at the site that needs the fewest more.

    Parameters
    ----------
    ancestor, descendant : str
    site : str or None
        None if more rows do not help.
    rows : int or None
        Rows per regime that the site has now.
    even, good : int or None
        Rows per regime, in total, at which the chance to settle the pair is one half and four
        fifths; None if `FACTORS` does not reach that.
    reason : str
        Why more rows do not help; empty if they do.
    joined : bool
        With the rows there are, every site that has both labels puts them in one district. Where
        `site` is given, that is not sure, and more rows may show that it is not so.
    """

    ancestor: str
    descendant: str
    site: str | None = None
    rows: int | None = None
    even: int | None = None
    good: int | None = None
    reason: str = ""
    joined: bool = False


@dataclass(frozen=True)
class EffectNeed:
    """What would narrow or decide one effect, in standard deviations.

    Parameters
    ----------
    cause, effect : str
    total, error : float or None
        The total effect as known now; None if nobody measured it.
    error_new_site : float or None
        The standard error once the proposed client is there; None if it lacks a label.
    site : str or None
        The site where more rows narrow it the most.
    error_more_rows : float or None
        The standard error with twice the rows at that site.
    edge : {"direct", "not direct", "undetermined"}
    factor : float or None
        How many times the rows, at all sites, decide the edge; None if it is decided, or if no
        number does.
    missing : str
        What is missing; empty if nothing is.
    """

    cause: str
    effect: str
    total: float | None
    error: float | None
    error_new_site: float | None
    site: str | None
    error_more_rows: float | None
    edge: EdgeVerdict
    factor: float | None
    missing: str = ""


@dataclass(frozen=True)
class Design:
    """What further data would settle: by a new site, by more rows, and for effects.

    Returned by `Result.design`.

    Parameters
    ----------
    proposal : Proposal
        The new site.
    chances : mapping of (str, str) to float
        The chance that it settles each open pair.
    more_rows : tuple of MoreRows
        One per open pair: the site and the rows that would settle it, or why none would. Empty
        from exact moments.
    effects : tuple of EffectNeed
        One per effect that the order does not exclude; empty without hard interventions.
    hard_at : tuple of str
        Sites whose evidence is withheld because the system is not linear. Hard interventions that
        shift the mean settle there, or at a new site, what no other data do.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> design = jc.recover([world.client(0), world.client(4)]).design()
    >>> sorted(design.to_frame().columns)[:3]
    ['ancestor', 'chance_new_site', 'descendant']
    """

    proposal: Proposal
    chances: Mapping[Pair, float] = field(default_factory=dict)
    more_rows: tuple[MoreRows, ...] = ()
    effects: tuple[EffectNeed, ...] = ()
    hard_at: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "chances", FrozenMapping(self.chances))

    def to_frame(self) -> pd.DataFrame:
        """One row per open pair, the likeliest to be settled by the new site first.

        Columns: ancestor, descendant, chance_new_site, site (where more rows help), rows (per
        regime, now), rows_even and rows_good (at which the chance is one half and four fifths),
        reason (why more rows do not help).
        """
        import pandas as pd  # here for start-up time

        needs = {(m.ancestor, m.descendant): m for m in self.more_rows}
        columns = ["ancestor", "descendant", "chance_new_site", "site", "rows"]
        columns += ["rows_even", "rows_good", "reason"]
        found = []
        for pair in sorted(self.chances, key=lambda pair: -self.chances[pair]):
            m = needs.get(pair, MoreRows(*pair))
            found.append((*pair, self.chances[pair], m.site, m.rows, m.even, m.good, m.reason))
        frame = pd.DataFrame(found, columns=columns)
        whole = dict.fromkeys(("rows", "rows_even", "rows_good"), "Int64")
        return frame.astype(whole)

    def effects_frame(self) -> pd.DataFrame:
        """One row per effect that the order does not exclude; columns as in `EffectNeed`."""
        import pandas as pd  # here for start-up time

        names = list(EffectNeed.__dataclass_fields__)
        frame = pd.DataFrame([[getattr(e, n) for n in names] for e in self.effects], columns=names)
        numbers = ("total", "error", "error_new_site", "error_more_rows", "factor")
        return frame.astype(dict.fromkeys(numbers, float))

    @property
    def interventions(self) -> str:
        """Which interventions to apply, in a sentence; empty if any kind helps."""
        if not self.hard_at:
            return ""
        return (
            "The system is not linear: apply hard interventions that shift the mean, and say that "
            f"they are hard, at a new site or again at {few(self.hard_at)}. Others settle nothing."
        )

    def __str__(self) -> str:
        lines = [self.interventions] if self.hard_at else []
        lines.append(str(self.proposal))
        if self.proposal.reason:
            lines.append(f"Size: {self.proposal.reason}.")
        helped = [m for m in self.more_rows if m.site is not None]
        if helped:
            lines.append(
                f"More rows at existing sites may settle {pluralise(len(helped), 'open pair')}."
            )
        missing = sum(bool(e.missing) for e in self.effects)
        if missing:
            lines.append(f"More rows are not enough for {pluralise(missing, 'effect')}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Design(new site with {pluralise(len(self.proposal.labels), 'label')}, expected to "
            f"settle {self.proposal.expected:.1f} of {self.proposal.undetermined} open pairs; "
            f"{sum(m.site is not None for m in self.more_rows)} may be settled by more rows; "
            f"{pluralise(len(self.effects), 'effect')})"
        )


def design(
    order: GlobalOrder, size: int | None = None, *, rows: int | None = None, seed: int = 0
) -> Design:
    """What further data would settle; parameters as for `next_client`."""
    proposal, chances = propose(order, size, rows, seed)
    needs = effect_needs(order, proposal.labels, rows=proposal.rows)
    withheld = tuple(sorted(order.said.use.withheld)) if order.mode == "evidence" else ()
    return Design(proposal, chances, rows_needed(order, seed=seed), needs, withheld)


# -- more rows ------------------------------------------------------------------------------------


def rows_needed(order: GlobalOrder, *, seed: int = 0) -> tuple[MoreRows, ...]:
    """For every open pair, the rows that would settle it; those that need the fewest first.

    Empty from exact moments, whose open pairs no number of rows settles, and from Algorithm 3.
    """
    if order.mode != "evidence" or not order.undetermined():
        return ()
    outlook = Outlook.of(order, seed)
    chances = {
        k: np.stack([outlook.chance(more_rows(outlook, k, factor)) for factor in FACTORS])
        for k, claims in enumerate(order.said.claims)
        if claims.bayes is not None
    }
    found = [_needed(order, chances, a, d) for a, d in np.argwhere(outlook.open).tolist()]
    return tuple(sorted(found, key=lambda m: (m.even is None, (m.even or 0) - (m.rows or 0))))


def _needed(order: GlobalOrder, chances: dict[int, FloatArray], a: int, d: int) -> MoreRows:
    """The site that needs the fewest more rows for one pair; `chances` by site and factor."""
    pair = (order.labels[a], order.labels[d])
    seen = [(k, i, j) for k, i, j in order.panel.seen_by(a, d) if k in chances]
    sent, claims = order.panel.rows, order.said.claims
    joined = bool(seen) and all(sent[k].together[i, j] for k, i, j in seen)
    helped = []
    for k, _, _ in seen:
        rows = int(own_rows(order, k))
        even, good = (_rows(chances[k][:, a, d], rows, level) for level in (EVEN, GOOD))
        if even is not None:
            helped.append(MoreRows(*pair, sent[k].client, rows, even, good, "", joined))
    if helped:
        return min(helped, key=lambda m: (m.even or 0) - (m.rows or 0))
    reading = [(k, i, j) for k, i, j in seen if claims[k].says[i, j]]
    if not seen:
        reason = "no site has both labels: only a new site can settle it"
    elif all(sent[k].client in order.said.use.withheld for k, _, _ in seen):
        reason = (
            "the system is not linear: more rows do not help, hard interventions that shift the "
            "mean do"
        )
    elif not reading:
        reason = (
            "no site reads it: an intervention on one of the two is too weak, moves the mean "
            "alone, or moves one direction alone"
        )
    elif all(sent[k].together[i, j] for k, i, j in reading):
        reason = (
            "in one district (joined by hidden causes) wherever it is seen: more rows do not help, "
            "a new site may"
        )
    else:
        reason = f"more than {FACTORS[-1]:g} times the rows at any one site"
    return MoreRows(*pair, reason=reason, joined=joined)


def _rows(chances: FloatArray, rows: int, level: float) -> int | None:
    """Rows at which a chance reaches a level, between the factors by logarithm; in two digits."""
    # Without further rows, the pair is open.
    chances = np.maximum.accumulate(np.append(0.0, chances))
    if chances[-1] < level:
        return None
    at = int(np.searchsorted(chances, level))
    factors = np.log([1.0, *FACTORS])[at - 1 : at + 1]
    needed = float(np.exp(np.interp(level, chances[at - 1 : at + 1], factors))) * rows
    step = 10 ** max(int(np.floor(np.log10(needed))) - 1, 0)
    return int(np.ceil(needed / step) * step)


# -- effects --------------------------------------------------------------------------------------


def effect_needs(
    order: GlobalOrder, labels: Iterable[str] = (), *, rows: int | None = None
) -> tuple[EffectNeed, ...]:
    """For every effect that the order does not exclude, what would narrow it.

    The variance of an effect falls as one over the rows, and sites add up by inverse variance. A
    further site is expected to measure as well as the sites so far.

    Parameters
    ----------
    order : GlobalOrder
    labels : iterable of str
        Of a further client, whose interventions are hard.
    rows : int, optional
        Its rows per regime; by default as many as the sites have.

    Returns
    -------
    tuple of EffectNeed
        Empty without hard interventions and from exact moments.
    """
    effects = order.effects
    if effects is None or not np.nansum(effects.error) > 0:
        return ()
    errors = np.where(effects.set_aside, np.nan, effects.by_site.error)
    scaled, accessed = errors, set(labels)
    if rows is not None:
        own = np.array([own_rows(order, k) for k in range(len(errors))])
        scaled = errors * np.sqrt(np.nan_to_num(own, nan=rows) / rows)[:, None, None]
    found = []
    for a, d in np.argwhere((order.verdicts != NO) & ~np.eye(len(order), dtype=bool)).tolist():
        further = None
        if {order.labels[a], order.labels[d]} <= accessed:
            measured = scaled[:, a, d]
            further = float(np.nanmedian(scaled if np.isnan(measured).all() else measured))
        found.append(_need(order, effects, a, d, further, errors[:, a, d]))
    return tuple(found)


def _need(
    order: GlobalOrder, effects: PooledEffects, a: int, d: int, new: float | None, own: FloatArray
) -> EffectNeed:
    """What would narrow one effect; `new` is the error at a further site, `own` those of sites."""
    names, direct = (order.labels[a], order.labels[d]), order.direct_effects
    assert direct is not None
    edge, missing, factor = direct.verdict(a, d), "", None
    if not effects.known[a, d]:
        missing = "no site has both labels: only a new site can measure it"
        if order.panel.seen_by(a, d):
            missing = f"needs a hard intervention on {names[1]}"
        return EffectNeed(*names, None, None, new, None, None, edge, None, missing)
    if edge == "undetermined":
        decided = (f for f in EDGE_FACTORS if direct.verdict_at(a, d, f) != edge)
        factor = next(decided, None)
        if factor is None:
            missing = f"edge: more than {EDGE_FACTORS[-1]:,.0f} times the rows"
            if between := direct.through(a, d):
                missing = f"edge: a path through {few(between)} is not excluded, whatever the rows"
    error, best = float(effects.error[a, d]), int(np.nanargmin(own))
    return EffectNeed(
        *names,
        float(effects.estimate[a, d]),
        error,
        None if new is None else _with(error, new),
        effects.by_site.clients[best],
        _with(error, float(own[best])),
        edge,
        None if factor is None else round(factor, 1),
        missing,
    )


def _with(error: float, further: float) -> float:
    """The error once a further estimate is there."""
    return float((1.0 / error**2 + 1.0 / further**2) ** -0.5) if error and further else 0.0
