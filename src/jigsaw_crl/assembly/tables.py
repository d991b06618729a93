"""Orders and effects as tables and as graphs, for people and for other programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.agreement import agreement
from jigsaw_crl.assembly.bounds import SD, SHARE, WHOLE
from jigsaw_crl.assembly.effects import PooledEffects
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import NO, VERDICTS, YES
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import cover_matrix, transitive_closure
from jigsaw_crl.base.text import few
from jigsaw_crl.evidence.effects import INTERVAL

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = [
    "direct_graph",
    "effects_frame",
    "effects_of",
    "hasse_graph",
    "order_frame",
    "shift_frame",
    "site_effects_frame",
]


_NUMBERS = ("total", "standard_error", "low", "high", "sites", "heterogeneity_p")
COLUMNS = ("cause", "effect", *_NUMBERS, "verdict")


def order_frame(order: GlobalOrder) -> pd.DataFrame:
    """One row per ordered pair: see `GlobalOrder.to_frame`."""
    import pandas as pd  # here for start-up time

    p = len(order.labels)
    a, d = np.nonzero(~np.eye(p, dtype=bool))
    names = np.array(order.labels, dtype=object)
    yes, no = order.panel.counts
    # An ancestor pair has an effect; what is excluded is of use for the others,
    # unless it is a share of all that changed.
    bounds, in_sd = order.bounds.value[a, d], order.bounds.in_sd[a, d]
    bounds = np.where((order.verdicts[a, d] == YES) | (~in_sd & (bounds > WHOLE)), np.nan, bounds)
    units = np.where(in_sd, SD, SHARE)
    contested = np.zeros((p, p), dtype=bool)
    for pair in order.contested:
        contested[order.indices(*pair)] = True
    return pd.DataFrame(
        {
            "ancestor": names[a],
            "descendant": names[d],
            "verdict": [str(VERDICTS[int(code)]) for code in order.verdicts[a, d]],
            "probability": order.probabilities[a, d],
            "supporting": yes[a, d],
            "contradicting": no[a, d],
            "excludes_above": bounds,
            "excludes_unit": np.where(np.isnan(bounds), "", units),
            "agreement": agreement(order.panel)[a, d],
            "contested": contested[a, d],
        }
    )


def hasse_graph(order: GlobalOrder) -> nx.DiGraph[str]:
    """The decided pairs that no others imply: see `GlobalOrder.hasse`."""
    import networkx as nx  # here for start-up time

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(order.labels)
    decided = order.verdicts == YES
    closed = transitive_closure(decided)
    # A cycle (Algorithm 3 only) has no Hasse diagram; every pair is shown then.
    cover = decided if np.diagonal(closed).any() else cover_matrix(closed)
    for a, d in zip(*np.nonzero(cover), strict=True):
        chance = float(order.probabilities[int(a), int(d)])
        graph.add_edge(order.labels[a], order.labels[d], probability=chance)
    return graph


def effects_frame(order: GlobalOrder, effects: PooledEffects | None) -> pd.DataFrame:
    """One row per ordered pair with an effect.

    Columns: cause, effect, total (0 where the verdict is "not ancestor", otherwise the estimate),
    standard_error, low and high (95 % interval of the estimate, whatever the verdict), sites,
    heterogeneity_p, verdict.
    """
    import pandas as pd  # here for start-up time

    if effects is None:
        return pd.DataFrame({name: [] for name in COLUMNS})
    a, d = np.nonzero(effects.known & ~np.eye(len(order.labels), dtype=bool))
    names = np.array(order.labels, dtype=object)
    codes = order.verdicts[a, d]
    return pd.DataFrame(
        {
            "cause": names[a],
            "effect": names[d],
            "total": np.where(codes == NO, 0.0, effects.estimate[a, d]),
            "standard_error": effects.error[a, d],
            "low": effects.low[a, d],
            "high": effects.high[a, d],
            "sites": effects.sites[a, d],
            "heterogeneity_p": effects.heterogeneity[a, d],
            "verdict": [str(VERDICTS[int(code)]) for code in codes],
        }
    )


def site_effects_frame(order: GlobalOrder, cause: str, effect: str) -> pd.DataFrame:
    """What every site says about one effect, for a forest plot.

    Columns: site, total, standard_error, low, high, set_aside.
    """
    import pandas as pd  # here for start-up time

    effects = effects_of(order)
    a, d = order.indices(cause, effect)
    value, error = effects.by_site.value[:, a, d], effects.by_site.error[:, a, d]
    has = ~np.isnan(value)
    return pd.DataFrame(
        {
            "site": np.array(effects.by_site.clients, dtype=object)[has],
            "total": value[has],
            "standard_error": error[has],
            "low": (value - INTERVAL * error)[has],
            "high": (value + INTERVAL * error)[has],
            "set_aside": effects.set_aside[has, a, d],
        }
    )


def direct_graph(order: GlobalOrder) -> nx.DiGraph[str]:
    """Direct effects as a graph, edges from cause to effect.

    Edge data: weight, standard_error, low, high, and verdict, "direct" or "undetermined". Pairs
    that are no edge have none.
    """
    import networkx as nx  # here for start-up time

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(order.labels)
    direct = order.direct_effects
    if direct is None:
        return graph
    for a, d in np.argwhere(np.isfinite(direct.log_odds) | (direct.log_odds > 0)).tolist():
        verdict = direct.verdict(a, d)
        if a == d or verdict == "not direct":
            continue
        weight, error = float(direct.weight[a, d]), float(direct.error[a, d])
        graph.add_edge(
            order.labels[a],
            order.labels[d],
            weight=weight,
            standard_error=error,
            low=weight - INTERVAL * error,
            high=weight + INTERVAL * error,
            verdict=verdict,
        )
    return graph


def shift_frame(order: GlobalOrder, shifts: Mapping[str, float]) -> pd.DataFrame:
    """Expected change of every label when some are pushed by given amounts.

    Each named label is moved by its amount, in its own standard deviations, while everything else
    goes on as in the control; changes of several labels add up. It needs total effects only.

    Parameters
    ----------
    order : GlobalOrder
    shifts : mapping of str to float

    Returns
    -------
    DataFrame
        Columns label, change, low, high, in standard deviations of each label in the control; NaN
        where an effect is undetermined.

    Raises
    ------
    InputError
        No hard interventions, an unknown label, or no effect of a label is known.
    """
    import pandas as pd  # here for start-up time

    effects = effects_of(order)
    if not shifts:
        raise InputError("no label is pushed", 'Pass amounts by label, such as {"pump": 1.0}.')
    p = len(order.labels)
    change, variance, offset = np.zeros(p), np.zeros(p), np.zeros(p)
    for label, amount in shifts.items():
        j = order.index(label)
        size = float(amount)
        if not np.isfinite(size):
            raise InputError(f"the amount for {label!r} is {amount!r}", "Pass a finite number.")
        others = np.arange(p) != j
        if not effects.known[j, others].any():
            raise InputError(
                f"no effect of {label!r} is known",
                "An effect needs a hard intervention on the cause and on the affected label at one "
                "site.",
            )
        no = order.verdicts[j] == NO
        estimate = effects.estimate[j]
        # A pair that is not measured and not excluded is undetermined: NaN stays NaN.
        value = np.where(no, 0.0, estimate)
        spread = np.where(no & ~effects.known[j], 0.0, effects.error[j])
        change[others] += size * value[others]
        offset[others] += size * np.where(no, np.nan_to_num(estimate), 0.0)[others]
        variance[others] += size**2 * spread[others] ** 2
        change[j] += size
    half = INTERVAL * np.sqrt(variance)
    return pd.DataFrame(
        {
            "label": list(order.labels),
            "change": change,
            "low": np.minimum(change + offset - half, change),
            "high": np.maximum(change + offset + half, change),
        }
    )


def effects_of(order: GlobalOrder) -> PooledEffects:
    """The effects of an order; refused without hard interventions."""
    if order.effects is None:
        raise InputError(
            "there are no effects: no intervention is said to be hard",
            'If the interventions are, pass interventions="hard"; the labels are '
            f"{few(order.labels)}.",
        )
    return order.effects
