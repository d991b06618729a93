"""What follows from certain statements? Entailment first, then the rules across hidden nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from jigsaw_crl.assembly.exact.entailment import Contradiction, Knowledge, entail
from jigsaw_crl.assembly.exact.hidden import HiddenReach, can_use_hidden_rules, reason_across_hidden
from jigsaw_crl.assembly.panel import Panel
from jigsaw_crl.base.arrays import BoolArray

__all__ = ["Deduction", "deduce"]


@dataclass(frozen=True, eq=False)
class Deduction:
    """What certain statements imply.

    Parameters
    ----------
    knowledge : Knowledge
    views : dict of int to HiddenReach
        What is known about hidden paths, by number of client; empty if those rules were not used.
    notes : tuple of str
    closures : dict
        A cache for `Prover`: what is known below each rank.
    """

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
        No order agrees with the statements. If only the rules across hidden nodes contradict
        them, those rules are not used, and a note says so.
    """
    knowledge = entail(panel)
    if not hidden_rules or not can_use_hidden_rules(panel):
        why = "no client names its spouses, or there are too many labels"
        notes = (f"closed_world was not used: {why}",) if closed_world else ()
        return Deduction(knowledge, notes=notes)
    grown = knowledge.copy()
    try:
        views = reason_across_hidden(grown, panel, closed_world=closed_world)
    except Contradiction as contradiction:
        if closed_world:
            found = deduce(panel, closed_world=False)
            note = (
                f"closed_world was not used: it contradicts the statements ({contradiction.what})"
            )
            return Deduction(found.knowledge, found.views, (note, *found.notes))
        note = (
            "the rules across hidden nodes were not used: they contradict the statements "
            f"({contradiction.what})"
        )
        return Deduction(knowledge, notes=(note,))
    return Deduction(grown, {view.client: view for view in views})
