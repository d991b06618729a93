"""Orders and effects as tables and as graphs, for people and for other programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from jigsaw_crl.assembly.effects import COLUMNS, PooledEffects
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import NO, VERDICTS, YES
from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.evidence.effects import INTERVAL

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

__all__ = [
    "all_effects_frame",
    "direct_graph",
    "effects_frame",
    "effects_of",
    "shift_frame",
    "site_effects_frame",
]

# A push may differ from the dose of an intervention by this share of it.
SAME_DOSE = 0.1


def all_effects_frame(order: GlobalOrder) -> pd.DataFrame:
    """Total effects; where the system is not linear, what interventions did at their doses."""
    import pandas as pd  # here for start-up time

    tables = [effects_frame(order, *about) for about in order.known_effects]
    return pd.concat(tables, ignore_index=True) if tables else effects_frame(order)


def effects_frame(
    order: GlobalOrder,
    kind: str = "",
    effects: PooledEffects | None = None,
    some: BoolArray | None = None,
) -> pd.DataFrame:
    """One row for each of some ordered pairs: see `Result.effects`."""
    import pandas as pd  # here for start-up time

    off = ~np.eye(len(order), dtype=bool)
    a, d = np.nonzero(some & off if some is not None else ~off & off)
    names, codes = np.array(order.labels, dtype=object), order.verdicts[a, d]
    known = dict.fromkeys(COLUMNS, np.empty(0)) if effects is None else effects.at(a, d)
    total = np.where(codes == NO, 0.0, known["total"])
    outside = {"low": np.minimum(known["low"], total), "high": np.maximum(known["high"], total)}
    return pd.DataFrame(
        {
            "cause": names[a],
            "effect": names[d],
            **known,
            "total": total,
            **outside,
            "verdict": [str(VERDICTS[int(code)]) for code in codes],
            "kind": kind,
        }
    )


def site_effects_frame(order: GlobalOrder, cause: str, effect: str) -> pd.DataFrame:
    """What every site says about one effect, for a forest plot: see `Result.site_effects`."""
    import pandas as pd  # here for start-up time

    effects = effects_of(order)
    a, d = order.indices(cause, effect)
    value, error = effects.by_site[:, a, d], effects.site_error[:, a, d]
    frame = pd.DataFrame(
        {
            "site": effects.clients,
            "total": value,
            "standard_error": error,
            "low": value - INTERVAL * error,
            "high": value + INTERVAL * error,
            "set_aside": effects.set_aside[:, a, d],
        }
    )
    return frame[frame["total"].notna()].reset_index(drop=True)


def direct_graph(order: GlobalOrder) -> nx.DiGraph[str]:
    """Direct effects as a graph, edges from cause to effect: see `Result.graph`."""
    import networkx as nx  # here for start-up time

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(order.labels)
    direct = order.direct_effects
    if direct is None:
        return graph
    for a, d in np.argwhere(np.isfinite(direct.log_odds) | (direct.log_odds > 0)).tolist():
        verdict = direct.verdict(a, d)
        if a == d or verdict == "not direct" or direct.open_pairs[a, d]:
            continue
        weight, half = float(direct.weight[a, d]), float(direct.half[a, d])
        graph.add_edge(
            order.labels[a],
            order.labels[d],
            weight=weight,
            standard_error=half / INTERVAL,
            low=weight - half,
            high=weight + half,
            verdict=verdict,
            through=", ".join(direct.through(a, d)),
        )
    return graph


def shift_frame(order: GlobalOrder, shifts: Mapping[str, float]) -> pd.DataFrame:
    """Expected change of every label when some are pushed: see `Result.predict_shift`."""
    import pandas as pd  # here for start-up time

    if not shifts:
        raise InputError("no label is pushed", 'Pass amounts by label, such as {"pump": 1.0}.')
    at_dose = order.is_bent
    if at_dose and len(shifts) > 1:
        raise InputError(
            "the system is not linear, so changes of several labels do not add up",
            "Push one label at a time.",
        )
    effects = order.applied_effects if at_dose else effects_of(order)
    p = len(order.labels)
    change, middle, variance = np.zeros((3, p))
    for label, amount in shifts.items():
        j, size = order.index(label), float(amount)
        if not np.isfinite(size):
            raise InputError(f"the amount for {label!r} is {amount!r}", "Pass a finite number.")
        others = np.arange(p) != j
        if size == 0.0:
            continue  # nothing is pushed, and nothing is held either
        dose = float(effects.estimate[j, j]) if at_dose and effects is not None else size
        if effects is None or np.isnan(dose) or not effects.known[j, others].any():
            raise InputError(
                f"no effect of {label!r} is known",
                "An effect needs a hard intervention on the cause and on the affected label at one "
                "client; where the system is not linear, it must shift the mean.",
            )
        if abs(size - dose) > SAME_DOSE * abs(dose):
            raise InputError(
                f"the system is not linear, and {label!r} was seen at {dose:+.2f} standard "
                "deviations",
                f"Pass {label}={dose:+.2f}; what another amount does is not known.",
            )
        # What an intervention did at its dose is not scaled. A pair that is not measured and not
        # excluded is undetermined: NaN stays NaN.
        scale, no = 1.0 if at_dose else size, order.verdicts[j] == NO
        # A "no" about a pair that is not measured has no bound, unless nothing at all is possible:
        # the other way round is an ancestor, you said so, or moments are exact.
        none = no & ((order.verdicts[:, j] == YES) | (order.panel.known[j] == NO))
        none |= no & (order.mode == "exact")
        both = effects.estimate[j], effects.error[j]
        total, error = (np.where(none, np.nan_to_num(x), x) for x in both)
        change[others] += scale * np.where(no, 0.0, total)[others]
        middle[others] += scale * total[others]
        variance[others] += (scale * error[others]) ** 2
        change[j] += size
        middle[j] += size
    half = INTERVAL * np.sqrt(variance)
    return pd.DataFrame(
        {
            "label": list(order.labels),
            "change": change,
            "low": np.minimum(middle - half, change),
            "high": np.maximum(middle + half, change),
        }
    )


def effects_of(order: GlobalOrder) -> PooledEffects:
    """The effects of an order; refused without hard interventions."""
    if order.effects is None:
        raise InputError(
            "there are no total effects: no client measured one by interventions that are said to "
            "be hard, or slopes depend on the dose",
            "Hard interventions on both labels that shift their means measure them; pass "
            'interventions="hard". In a system that is not linear, Result.applied_effects has what '
            "each of them did.",
        )
    return order.effects
