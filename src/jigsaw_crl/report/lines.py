"""A result in lines and tables, for people at a terminal; the page has some of the sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import tally
from jigsaw_crl.base.findings import Finding, most_severe_first
from jigsaw_crl.base.terminal import Table
from jigsaw_crl.base.text import chance, few, number, pluralise
from jigsaw_crl.evidence.effects import AT_DOSE
from jigsaw_crl.fragment.fragment import Outcome
from jigsaw_crl.result.result import Result
from jigsaw_crl.result.summary import LeftOut

# Undetermined pairs of the best guess, lines about what is left out, and places that are named for
# one finding.
MOST_OPEN, MOST_LEFT_OUT, MOST_PLACES = 10, 10, 6


def resting(order: GlobalOrder) -> str:
    """How many verdicts rest on a single client, and on which ones; empty if none does."""
    if not order.rests_on:
        return ""
    many = pluralise(len(order.rests_on), "verdict rests", "verdicts rest")
    named = few(sorted(set(order.rests_on.values())))
    what = "it" if len(order.rests_on) == 1 else "them"
    return f"{many} on a single client ({named}): the others would not decide {what}"


def contested(order: GlobalOrder) -> str:
    """How many verdicts are contested; empty if none is."""
    if not order.contested:
        return ""
    many = pluralise(len(order.contested), "verdict is", "verdicts are")
    return f"{many} contested: the clients that say the opposite would decide so among themselves"


def result_lines(result: Result) -> list[str | Table]:
    """A result for people, in lines and tables."""
    order, covers = result.order, sorted(result.order.hasse().edges)
    told: list[str | Table] = [result.summary]
    told.append(f"{pluralise(len(order.labels), 'label')}: {tally(order.counts)}")
    told += [said for said in (resting(order), contested(order)) if said]
    guessed = order.best_guess().pairs() - order.pairs()
    likely = sorted(guessed, key=lambda p: -order.probability(*p))
    if likely:
        shown = few(
            (f"{a} → {d} ({chance(order.probability(a, d), order.decimals)})" for a, d in likely),
            MOST_OPEN,
        )
        told.append(f"undetermined, but part of the best guess (probability): {shown}")
    rows = [(name, len(f.labels), f.outcome.code) for name, f in result.fragments.items()]
    told.append(Table("Clients", ["client", "labels", "outcome"], rows))
    told += outcome_lines({name: piece.outcome for name, piece in result.fragments.items()})
    columns = ["ancestor", "descendant", "probability", "rests on"]
    if order.mode == "paper":
        # Algorithm 3 states pairs; it gives them no probability.
        title = "Order that Algorithm 3 states (Hasse diagram)"
        told.append(Table(title, columns[:2], covers))
    else:
        odds = [chance(order.probability(*pair), order.decimals) for pair in covers]
        alone = [order.table.resting(*order.indices(*pair)) for pair in covers]
        width = 4 if any(alone) else 3
        edges = [(*pair, *x)[:width] for pair, *x in zip(covers, odds, alone, strict=True)]
        title = "Decided ancestors (without pairs that others imply)"
        told.append(Table(title, columns[:width], edges))
    told += [*_effects(result), *left_out_lines(result.left_out, result.lost_labels)]
    told += [f"note: {text}" for text in order.notes]
    return [*told, findings_table(result.diagnostics) if result.diagnostics else "", result.summary]


def _effects(result: Result) -> list[str | Table]:
    """The largest effects and the number of direct edges, if there are hard interventions."""
    frame = result.effects[result.effects.verdict == "ancestor"]
    if not len(frame) and result.order.effects is None:
        return []
    frame = frame.reindex(frame.total.abs().sort_values(ascending=False, kind="stable").index)
    edges = result.graph.edges(data=True)
    direct: dict[Any, str] = {(a, d): about["verdict"] for a, d, about in edges}
    rows = [
        (
            row.cause,
            row.effect,
            f"{row.total:+.3f}",
            f"{row.low:+.3f} to {row.high:+.3f}",
            row.sites,
            "at this dose"
            if row.kind == AT_DOSE
            else direct.get((row.cause, row.effect), "not direct"),
        )
        for row in frame.itertuples()
    ]
    columns = ["cause", "effect", "total", "95 % interval", "clients", "edge"]
    kind = "Average" if len(frame) and (frame.kind == AT_DOSE).all() else "Total"
    table = Table(f"{kind} effects in standard deviations", columns, rows, long=True)
    stated = sum(verdict == "direct" for verdict in direct.values())
    counts = f"{pluralise(stated, 'direct edge')}, {len(direct) - stated} undetermined"
    return [table, f"graph: {counts}"]


def findings_table(findings: Sequence[Finding]) -> Table | str:
    """The findings, the most severe first; the same words about several places once."""
    if not findings:
        return "No findings: nothing in the data speaks against the method's assumptions."
    places: dict[tuple[str, ...], list[str]] = {}
    for f in most_severe_first(findings):
        limit = "" if f.threshold is None else f" ({number(f.threshold)})"
        value = "" if f.value is None else f"{number(f.value)}{limit}"
        place = "/".join(x for x in (f.client, f.regime) if x) or "study"
        said = (f.severity, f"{f.check}: {f.message}", value, f.remedy)
        places.setdefault(said, []).append(place)
    rows = [(said[0], few(where, MOST_PLACES), *said[1:]) for said, where in places.items()]
    columns = ["severity", "where", "what was seen", "value (threshold)", "remedy"]
    return Table("Findings", columns, rows, long=True)


def outcome_lines(outcomes: Mapping[str, Outcome]) -> list[str]:
    """What happened at clients that were not simply recovered; the same words once."""
    told: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        if str(outcome) != "recovered":
            told.setdefault(str(outcome), []).append(name)
    return [f"{few(names, MOST_PLACES)}: {text}" for text, names in told.items()]


def left_out_lines(parts: Sequence[LeftOut], lost: Iterable[str] = ()) -> list[str]:
    """Each label or client that is not used, and the labels missing from the order."""
    told = [f"left out: {part}" for part in parts[:MOST_LEFT_OUT]]
    if len(parts) > MOST_LEFT_OUT:
        told.append(f"left out: {len(parts) - MOST_LEFT_OUT} more, see the findings")
    names = ", ".join(lost)
    if names:
        told.append(f"missing from the order, because left out of every client: {names}")
    return told
