"""The design of the next experiment: a new site, more rows, or other interventions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.design import NO_COST, Pair, Proposal, propose
from jigsaw_crl.assembly.effects import PooledEffects
from jigsaw_crl.assembly.futures import own_rows
from jigsaw_crl.assembly.graph import EdgeVerdict
from jigsaw_crl.assembly.verdict import NO
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.text import few, pluralise

if TYPE_CHECKING:
    import pandas as pd

    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["Design", "EffectNeed", "MoreRows", "design", "effect_needs", "where_rows_help"]

# Factors on all rows that are tried for an edge.
EDGE_FACTORS = tuple(float(x) for x in np.geomspace(1.1, 1000.0, 120))


@dataclass(frozen=True)
class MoreRows:
    """Where more rows may settle one open pair, or why they do not.

    How many rows it takes is not said: in simulations, numbers of rows for an even chance settled a
    fifth of the pairs.

    Parameters
    ----------
    ancestor, descendant : str
    sites : tuple of str
        Clients at which more rows may help; empty if nowhere.
    reason : str
        Why more rows do not help; empty if they may.
    """

    ancestor: str
    descendant: str
    sites: tuple[str, ...] = ()
    reason: str = ""


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
        One per open pair: where more rows may settle it, or why they do not. Empty from exact
        moments.
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

        Columns: ancestor, descendant, chance_new_site, sites (where more rows may help), reason
        (why they do not).
        """
        import pandas as pd  # here for start-up time

        needs = {(m.ancestor, m.descendant): m for m in self.more_rows}
        columns = ["ancestor", "descendant", "chance_new_site", "sites", "reason"]
        found = []
        for pair in sorted(self.chances, key=lambda pair: -self.chances[pair]):
            m = needs.get(pair, MoreRows(*pair))
            found.append((*pair, self.chances[pair], ", ".join(m.sites), m.reason))
        return pd.DataFrame(found, columns=columns)

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
            return self.proposal.kinds
        return (
            "The system is not linear: apply hard interventions that shift the mean, and say that "
            f"they are hard, at a new site or again at {few(self.hard_at)}. Others settle nothing."
        )

    def __str__(self) -> str:
        lines = [self.interventions] if self.hard_at else []
        lines.append(str(self.proposal))
        if self.proposal.reason:
            lines.append(f"Size: {self.proposal.reason}.")
        helped = sum(bool(m.sites) for m in self.more_rows)
        if helped:
            lines.append(
                f"More rows at clients of the study may settle {pluralise(helped, 'open pair')}."
            )
        missing = sum(bool(e.missing) for e in self.effects)
        if missing:
            lines.append(f"More rows are not enough for {pluralise(missing, 'effect')}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"Design(new site with {pluralise(len(self.proposal.labels), 'label')}, expected to "
            f"settle {self.proposal.expected:.1f} of {self.proposal.undetermined} open pairs; "
            f"{sum(bool(m.sites) for m in self.more_rows)} may be settled by more rows; "
            f"{pluralise(len(self.effects), 'effect')})"
        )


def design(
    order: GlobalOrder,
    size: int | None = None,
    *,
    rows: int | None = None,
    seed: int = 0,
    cost: Mapping[str, float] = NO_COST,
    cannot: Collection[str] = (),
) -> Design:
    """What further data would settle; parameters as for `next_client`."""
    proposal, chances = propose(order, size, rows, seed, cost=cost, cannot=cannot)
    needs = effect_needs(order, proposal.labels, rows=proposal.rows)
    withheld = tuple(sorted(order.said.use.withheld)) if order.mode == "evidence" else ()
    return Design(proposal, chances, where_rows_help(order), needs, withheld)


# -- more rows ------------------------------------------------------------------------------------


def where_rows_help(order: GlobalOrder) -> tuple[MoreRows, ...]:
    """For every open pair, the clients at which more rows may settle it, or why none do.

    Empty from exact moments, whose open pairs no number of rows settles, and from Algorithm 3.
    """
    if order.mode != "evidence":
        return ()
    return tuple(_rows_help(order, *pair) for pair in sorted(order.undetermined()))


def _rows_help(order: GlobalOrder, ancestor: str, descendant: str) -> MoreRows:
    sent, claims = order.panel.rows, order.said.claims
    seen = order.panel.seen_by(*order.indices(ancestor, descendant))
    reading = [(k, i, j) for k, i, j in seen if claims[k].says[i, j] or claims[k].says[j, i]]
    apart = tuple(sent[k].client for k, i, j in reading if not sent[k].together[i, j])
    if not seen:
        reason = "no client has both labels: only a new client can settle it"
    elif all(sent[k].client in order.said.use.withheld for k, _, _ in seen):
        reason = (
            "the system is not linear: more rows do not help, hard interventions that shift the "
            "mean do"
        )
    elif not reading:
        reason = (
            "no client reads it: an intervention on one of the two is too weak, moves the mean "
            "alone, or moves one direction alone"
        )
    elif not apart:
        reason = (
            "hidden causes join the two wherever they are seen, as far as the rows tell: a new "
            "client may settle it"
        )
    else:
        reason = ""
    return MoreRows(ancestor, descendant, () if reason else apart, reason)


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
