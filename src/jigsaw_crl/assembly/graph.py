"""Direct effects, the weighted causal graph behind the total effects; and effects as tables.

With M the matrix of total effects (rows the cause, ones on the diagonal), the direct effects are
`I − M⁻¹` (T8). An entry that the order excludes is zero. An entry that nobody measured is open: it
counts as zero here, and an effect of up to one standard deviation may be there. With U these sizes
and N = |M⁻¹| among the labels that may lie between i and j, paths through open pairs carry at most
`(N U N + N U N U N)_ij`: the second part has paths i → k → j of which nobody has k together with i
or with j. An effect of which only the size is known is open with that size.

An edge is direct only if the order says that it is a cause at all, and if more is left than such
paths can carry. Otherwise what was measured may pass through other labels of the study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.directions import ROUNDING
from jigsaw_crl.assembly.effects import COLUMNS, PooledEffects
from jigsaw_crl.assembly.verdict import NO, SURE, VERDICTS, YES
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.evidence.effects import INTERVAL

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

    from jigsaw_crl.assembly.order import GlobalOrder

EdgeVerdict = Literal["direct", "not direct", "undetermined"]

# Size of a direct effect, in standard deviations, and log-odds against there being one.
TYPICAL, AGAINST = 0.3, 1.0
# Size that effects which nobody measured may have, alone and together, in standard deviations.
LARGEST = 1.0


@dataclass(frozen=True, eq=False)
class DirectEffects:
    """Direct effects, rows the cause, columns the effect, shape (p, p)."""

    labels: tuple[str, ...]
    # NaN for pairs that nobody measured; 0 for those that the order excludes.
    weight: FloatArray
    error: FloatArray
    # That there is an edge; −inf where the order excludes it.
    log_odds: FloatArray
    # The most that paths through pairs that nobody measured can carry.
    carried: FloatArray
    # Pairs that the order does not exclude, and those of them that nobody measured.
    possible: BoolArray
    open_pairs: BoolArray

    @property
    def half(self) -> FloatArray:
        """Half of the 95 % interval: sampling error, and what open paths can carry."""
        return np.asarray(INTERVAL * self.error + self.carried)

    def verdict(self, a: int, d: int) -> EdgeVerdict:
        """Is a a direct cause of d?"""
        log_odds = self.log_odds[a, d]
        if log_odds > SURE:
            return "direct"
        return "not direct" if log_odds < -SURE else "undetermined"

    def through(self, a: int, d: int) -> tuple[str, ...]:
        """Labels through which a part may pass that nobody measured, or all of it."""
        if self.verdict(a, d) == "not direct" or not self.carried[a, d] > self.error[a, d]:
            return ()
        at, unseen = _between(self.possible, self.open_pairs, a, d)
        touched = np.asarray(unseen.any(axis=0) | unseen.any(axis=1))[1:-1]
        return tuple(self.labels[k] for k in at[1:-1][touched])


def direct_effects(
    effects: PooledEffects, verdicts: npt.NDArray[np.int8], *, entailed: bool = False
) -> DirectEffects:
    """Direct effects from total effects and the order.

    Parameters
    ----------
    effects : PooledEffects
    verdicts : array of int8, shape (p, p)
        Of the order: see `verdict`.
    entailed : bool
        Decide only edges that no open pair can change, of whatever size, as in exact mode.
    """
    p = len(effects.labels)
    possible = verdicts != NO
    np.fill_diagonal(possible, False)
    measured = effects.known & possible
    open_ = possible & ~effects.known
    M = np.eye(p)
    M[measured] += effects.estimate[measured]
    variance = np.where(measured, np.nan_to_num(effects.error) ** 2, 0.0)
    inverse = np.linalg.inv(M)
    weight, square = np.eye(p) - inverse, np.asarray(inverse**2)
    error = np.sqrt(square @ variance @ square)
    unseen = open_ * np.where(np.isnan(effects.unsigned), LARGEST, effects.unsigned)
    carried = _carried(np.abs(inverse), unseen, possible, measured)
    odds = _edge_odds(weight, error**2, carried)
    unsure = open_ | (entailed & (carried > ROUNDING))
    odds = np.where(unsure, np.clip(odds, -SURE, SURE), odds)
    # One judge says whether there is an effect: the order.
    odds = np.where(verdicts == YES, odds, np.minimum(odds, SURE))
    blank = np.where(open_, np.nan, 0.0)
    return DirectEffects(
        labels=effects.labels,
        weight=np.where(measured, weight, blank),
        error=np.where(measured, error, blank),
        log_odds=np.where(possible, odds, -np.inf),
        carried=carried,
        possible=possible,
        open_pairs=open_,
    )


def _between(
    possible: BoolArray, unseen: npt.NDArray[Any], a: int, d: int
) -> tuple[IntArray, npt.NDArray[Any]]:
    """Positions of a, of all labels that may lie between, and of d; what is unseen among them."""
    at = np.array([a, *np.flatnonzero(possible[a] & possible[:, d]), d], dtype=np.intp)
    inside = unseen[np.ix_(at, at)]
    # No path leads back to a, or on from d.
    inside[:, 0] = inside[-1] = 0
    return at, inside


def _carried(
    N: FloatArray, unseen: FloatArray, possible: BoolArray, measured: BoolArray
) -> FloatArray:
    """The most that paths through open pairs carry of every measured effect."""
    out = np.zeros_like(N)
    for a, d in np.argwhere(measured).tolist():
        at, U = _between(possible, unseen, a, d)
        if U.any():
            inside = N[np.ix_(at, at)]
            once = inside[0] @ U
            out[a, d] = once @ inside[:, -1] + once @ inside @ U @ inside[:, -1]
    return np.minimum(out, LARGEST)


def _edge_odds(weight: FloatArray, variance: FloatArray, carried: FloatArray) -> FloatArray:
    """Log-odds of an edge of typical size against none.

    For an edge counts what is left of the weight if open paths carry as much as they can.
    """
    left, v = np.maximum(np.abs(weight) - carried, 0.0), np.maximum(variance, 1e-18)
    ratio = TYPICAL**2 / v
    none, some = (
        0.5 * x**2 / v * ratio / (1.0 + ratio) - 0.5 * np.log1p(ratio) - AGAINST
        for x in (weight, left)
    )
    odds = np.where(none > 0, np.maximum(some, -SURE), none)
    sure = np.where(np.abs(weight) <= ROUNDING, -np.inf, np.where(left > ROUNDING, np.inf, 0.0))
    return np.where(np.sqrt(variance) <= ROUNDING / 100, sure, odds)


# -- tables ---------------------------------------------------------------------------------------

# A push may differ from the dose of an intervention by this share of it.
SAME_DOSE = 0.1


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
    at_dose = bool(order.panel.bent)
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
