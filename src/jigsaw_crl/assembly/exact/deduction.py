"""What follows from certain statements? Entailment first, then the rules across hidden nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from jigsaw_crl.assembly.exact.conflicts import agreeing
from jigsaw_crl.assembly.exact.entailment import Contradiction, Knowledge
from jigsaw_crl.assembly.exact.hidden import HiddenReach, can_use_hidden_rules, reason_across_hidden
from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import BoolArray

__all__ = ["SET_ASIDE", "Deduction", "deduce"]

SET_ASIDE = "these statements contradict each other and are set aside"


@dataclass(frozen=True, eq=False)
class Deduction:
    """What certain statements imply.

    Parameters
    ----------
    panel : Panel
        The statements that were used: those that do not contradict each other.
    knowledge : Knowledge
    views : dict of int to HiddenReach
        What is known about hidden paths, by number of client; empty if those rules were not used.
    notes : tuple of str
    closures : dict
        A cache for `Prover`: what is known below each rank.
    """

    panel: Panel
    knowledge: Knowledge
    views: dict[int, HiddenReach] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    closures: dict[int, tuple[BoolArray, BoolArray]] = field(default_factory=dict)


def deduce(panel: Panel, *, closed_world: bool = False, hidden_rules: bool = True) -> Deduction:
    """Everything that follows from certain statements.

    Parameters
    ----------
    panel : Panel
        Log-odds are ignored.
    closed_world : bool
        Every latent variable carries a label at some client.
    hidden_rules : bool
        Use the rules across hidden nodes, for clients that name their spouses.

    Raises
    ------
    Contradiction
        Many statements contradict each other. Of a few, the smallest contradictory sets are set
        aside, and notes name them. If only the rules across hidden nodes contradict the
        statements, those rules are not used, and a note says so.
    """
    panel, knowledge, aside = agreeing(given := panel)
    notes = tuple(f"{SET_ASIDE}: {conflict.described(given)}" for conflict in aside)
    return _with_hidden(panel, knowledge, notes, closed_world, hidden_rules)


def _with_hidden(
    panel: Panel,
    knowledge: Knowledge,
    notes: tuple[str, ...],
    closed_world: bool,
    hidden_rules: bool = True,
) -> Deduction:
    """What the rules across hidden nodes add."""
    if not hidden_rules or not can_use_hidden_rules(panel):
        why = "no client names its spouses, or there are too many labels"
        unused = (f"closed_world was not used: {why}",) if closed_world else ()
        return Deduction(panel, knowledge, notes=(*notes, *unused))
    grown = knowledge.copy()
    try:
        views = reason_across_hidden(grown, panel, closed_world=closed_world)
    except Contradiction as contradiction:
        if closed_world:
            note = (
                f"closed_world was not used: it contradicts the statements ({contradiction.what})"
            )
            return _with_hidden(panel, knowledge, (*notes, note), closed_world=False)
        note = (
            "the rules across hidden nodes were not used: they contradict the statements "
            f"({contradiction.what})"
        )
        return Deduction(panel, knowledge, notes=(*notes, note))
    return Deduction(panel, grown, {view.client: view for view in views}, notes)
