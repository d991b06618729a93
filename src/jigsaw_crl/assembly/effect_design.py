"""Which data would narrow which effect? For studies with hard interventions.

The variance of an effect falls as one over the rows, and sites add up by inverse variance: with
error e now and e_new at a further site, the error becomes `(1/e² + 1/e_new²)^(−½)`. A further site
is expected to measure as well as the sites so far: the median of their errors, at its rows. An edge
is decided when its log-odds pass 19 to 1 (`graph`); the factor on the rows of all sites is the
smallest at which they would, if the edge is as large as it looks. What paths through pairs that
nobody measured can carry does not fall with the rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.effects import PooledEffects
from jigsaw_crl.assembly.graph import EdgeVerdict
from jigsaw_crl.assembly.verdict import NO
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.text import few

if TYPE_CHECKING:
    from jigsaw_crl.assembly import GlobalOrder

__all__ = ["EffectNeed", "effect_needs"]

# Factors on all rows that are tried for an edge.
FACTORS = tuple(float(x) for x in np.geomspace(1.1, 1000.0, 120))


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


def effect_needs(
    order: GlobalOrder, labels: Iterable[str] = (), *, rows: int | None = None
) -> tuple[EffectNeed, ...]:
    """For every effect that the order does not exclude, what would narrow it.

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
    accessed = np.isin(np.array(order.labels, dtype=object), list(labels))
    at_new = _new_errors(order, effects, rows)
    possible = (order.verdicts != NO) & ~np.eye(len(order.labels), dtype=bool)
    return tuple(
        _need(order, effects, int(a), int(d), accessed, at_new) for a, d in np.argwhere(possible)
    )


def _new_errors(order: GlobalOrder, effects: PooledEffects, rows: int | None) -> FloatArray:
    """Standard error of every effect at a further site with these rows, shape (p, p).

    The median over the sites that measured the pair, else over the effects on the same label, else
    over all.
    """
    error = np.where(effects.set_aside, np.nan, effects.by_site.error)
    if rows is not None:
        own = [np.median(list((f.n_samples or {"": rows}).values())) for f in order.fragments]
        error = error * np.sqrt(np.array(own) / rows)[:, None, None]
    known = ~np.isnan(error)
    everywhere = float(np.median(error[known]))
    column = np.array(
        [
            np.median(error[:, :, d][known[:, :, d]]) if known[:, :, d].any() else everywhere
            for d in range(error.shape[2])
        ]
    )
    out = np.broadcast_to(column, error.shape[1:]).copy()
    seen = known.any(axis=0)
    out[seen] = np.nanmedian(error[:, seen], axis=0)
    return out


def _need(
    order: GlobalOrder,
    effects: PooledEffects,
    a: int,
    d: int,
    accessed: BoolArray,
    at_new: FloatArray,
) -> EffectNeed:
    names = order.labels[a], order.labels[d]
    new = float(at_new[a, d]) if accessed[a] and accessed[d] else None
    direct = order.direct_effects
    assert direct is not None
    edge, missing = direct.verdict(a, d), ""
    if not effects.known[a, d]:
        missing = "no site has both labels: only a new site can measure it"
        if order.panel.seen_by(a, d):
            missing = f"needs a hard intervention on {names[1]}"
        return EffectNeed(*names, None, None, new, None, None, edge, None, missing)
    error = float(effects.error[a, d])
    own = np.where(effects.set_aside[:, a, d], np.nan, effects.by_site.error[:, a, d])
    best = int(np.nanargmin(own))
    factor = None
    if edge == "undetermined":
        decided = (f for f in FACTORS if direct.verdict_at(a, d, f) != edge)
        factor = next(decided, None)
        if factor is None:
            missing = f"edge: more than {FACTORS[-1]:,.0f} times the rows"
            if between := direct.through(a, d):
                missing = f"edge: a path through {few(between)} is not excluded, whatever the rows"
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
