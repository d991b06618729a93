"""The facts that the page's template writes: sentences, pieces, sensors, findings, provenance."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from jigsaw_crl._version import __version__
from jigsaw_crl.assembly.entailment import Fact
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.verdict import CERTAIN_NO, NO, YES, Verdict
from jigsaw_crl.base.findings import Finding, most_severe_first
from jigsaw_crl.base.text import chance, few, number, pluralise
from jigsaw_crl.report.drawing import draw_graph, draw_piece
from jigsaw_crl.report.lines import contested, resting
from jigsaw_crl.result.result import Result

if TYPE_CHECKING:
    import pandas as pd

# Pairs that a remark shows.
MOST_SHOWN = 4
# Sites, labels and sensors that are drawn; `result.loadings` has them all.
MOST_SITES, MOST_LABELS, MOST_SENSORS = 12, 40, 30

# A sentence, and pairs to ask about: ancestor, descendant, text.
Remark = tuple[str, list[tuple[str, str, str]]]


def describe(result: Result) -> dict[str, Any]:
    """Everything the template of the page shows, by name."""
    order, labels = result.order, pluralise(len(result.order.labels), "label")
    name = str(result.provenance.get("study") or "study")
    counts = {s: sum(f.severity == s for f in result.diagnostics) for s in ("error", "warning")}
    about = f"Causal order of {labels} from {pluralise(len(order.fragments), 'client')}"
    return {
        "title": about if name == "study" else name,
        "news": _news(order),
        "trust": likely_right(order),
        "remarks": _remarks(order),
        "warnings": " and ".join(pluralise(n, severity) for severity, n in counts.items() if n),
        "diagram": draw_graph(order),
        "pushable": _pushable(order),
        "pieces": [_piece(result, k) for k in range(len(order.fragments))],
        "cards": _cards(result.diagnostics),
        "sensors": [_sensors(str(x), own) for x, own in result.loadings.groupby("site")][
            :MOST_SITES
        ],
        "provenance": _provenance(result),
        "version": __version__,
    }


# -- sentences ------------------------------------------------------------------------------------


def _news(order: GlobalOrder) -> Remark:
    """What is decided, with a pair that no client has if one of these is decided."""
    n = order.counts
    decided, every = n["ancestor"] + n["not ancestor"], sum(n.values())
    who = pluralise(len(order.fragments), "client decides", "clients together decide")
    text = f"{who} {f'{decided:,}' if decided else 'none'} of {every:,} ordered pairs of labels."
    pair = decided_across_clients(order)
    about = [] if pair is None else [(*pair, f"{_stated(order, *pair)}, though no client has both")]
    return text, about


def _stated(order: GlobalOrder, ancestor: str, descendant: str) -> Fact:
    """What is decided about a pair."""
    return Fact(ancestor, descendant, order.verdict(ancestor, descendant) is Verdict.ANCESTOR)


def decided_across_clients(order: GlobalOrder) -> tuple[str, str] | None:
    """A decided pair of which no client has both labels, an ancestor pair if there is one."""
    has = (order.panel.where >= 0).astype(np.float32)
    apart = has.T @ has == 0
    for said in (YES, NO):
        for a, d in np.argwhere(apart & (order.verdicts == said))[:1].tolist():
            return order.labels[a], order.labels[d]
    return None


def _remarks(order: GlobalOrder) -> list[Remark]:
    """What to know about the verdicts: open, contested, resting on one client; convergence."""
    found: list[Remark] = []
    if opened := order.undetermined():
        found.append(_about_open(order, opened))
    if said := contested(order):
        more = " Among them:" if len(order.contested) > MOST_SHOWN else ""
        pairs = sorted(order.contested)[:MOST_SHOWN]
        found.append((f"{said}.{more}", [(a, d, str(_stated(order, a, d))) for a, d in pairs]))
    if said := resting(order):
        found.append((f"{said}.", []))
    told = "" if order.convergence is None else str(order.convergence)
    # Chains that do not agree are a note of the order.
    if told and not any(note.startswith(told) for note in order.notes):
        found.append((f"Convergence: {told}.", []))
    return found


def _about_open(order: GlobalOrder, opened: frozenset[tuple[str, str]]) -> Remark:
    """How many pairs are undetermined, why, and which of them are the most probable."""
    text = pluralise(len(opened), "pair is", "pairs are") + " undetermined"
    if order.mode == "paper":
        return f"{text}: Algorithm 3 does not state them, and never denies one.", []
    text += f": the clients' data do not settle {'it' if len(opened) == 1 else 'them'}"
    if order.convergence is not None and (disputed := len(order.convergence.disputed)):
        text += f"; on {disputed:,} of them the chains that sample orders disagree"
    likely = {pair: p for pair in opened if (p := order.probability(*pair)) > CERTAIN_NO}
    ranked = sorted(likely, key=lambda pair: (-likely[pair], pair))[:MOST_SHOWN]
    shown = [
        (a, d, f"is {a} an ancestor of {d}? {chance(likely[a, d], order.decimals)}")
        for a, d in ranked
    ]
    return f"{text}.{' The most probable:' if shown and len(opened) > 1 else ''}", shown


def likely_right(order: GlobalOrder) -> str:
    """How often verdicts were right in the simulations that are most like the study.

    A study counts as hard if most of its clients have hard interventions.
    Empty for exact moments, from Algorithm 3, without any verdict, and for a system that is not
    linear, of which there are none.
    """
    import pandas as pd  # here for start-up time

    rows = [n for f in order.fragments for n in (f.n_samples or {}).values()]
    if order.mode != "evidence" or order.panel.bent or not rows or not (order.verdicts >= 0).any():
        return ""
    clients, size = len(order.fragments), median(rows)
    hard = sum(f.hard is not None and any(f.hard.hard) for f in order.fragments)
    kind = "hard" if 2 * hard > clients else "soft"
    # The lines of the calibration page.
    with (files("jigsaw_crl.report") / "simulations.csv").open(encoding="utf-8") as file:
        known = pd.read_csv(file, comment="#")
    known = known[known["kind"] == kind]
    far = np.abs(np.log10(known["clients"] / clients)) + np.abs(np.log10(known["rows"] / size))
    like = known[far == far.min()]

    def right(column: str) -> str:
        text = f"{100 - like[column].mean():.1f}"
        return ("> 99.9 %" if text == "100.0" else f"{text} %").replace(" ", "\N{NO-BREAK SPACE}")

    there = pluralise(int(like["clients"].iloc[0]), "client")
    here = pluralise(clients, "client")
    here += f", {hard} of them with hard interventions" if 0 < hard < clients else ""
    return (
        f"The nearest simulated studies have {kind} interventions, {there} and "
        f"{like['rows'].iloc[0]:,} rows per regime (this one: {here}, "
        f"{size:,.0f} rows); there, {right('wrong_yes')} of “ancestor” and {right('wrong_no')} of "
        "“not ancestor” verdicts were right."
    )


# -- tables ---------------------------------------------------------------------------------------


def _pushable(order: GlobalOrder) -> tuple[str, ...]:
    """Labels of which at least one effect is known, those that change most others first.

    None where the system is not linear: what another amount would do is not known.
    """
    if order.effects is None or order.panel.bent:
        return ()
    off = ~np.eye(len(order.labels), dtype=bool)
    known = (order.effects.known & off).sum(axis=1)
    changes = (order.effects.known & (order.verdicts == YES)).sum(axis=1)
    ranked = sorted(range(len(order.labels)), key=lambda i: (-changes[i], order.labels[i]))
    return tuple(order.labels[i] for i in ranked if known[i])


def _cards(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings with one check and one remedy on one card, the most severe first.

    A card has each message and where it was seen: the place, and the number with its threshold.
    """
    cards: dict[tuple[str, str, str], dict[str, Any]] = {}
    for f in most_severe_first(findings):
        about = {"severity": f.severity, "check": f.check, "remedy": f.remedy}
        card = cards.setdefault((f.severity, f.check, f.remedy), {**about, "seen": {}})
        where = " / ".join(name for name in (f.client, f.regime) if name) or "study"
        limit = "" if f.threshold is None else f", threshold {number(f.threshold)}"
        measured = "" if f.value is None else f"{number(f.value)}{limit}"
        card["seen"].setdefault(f.message, []).append((where, measured))
    return list(cards.values())


def _piece(result: Result, k: int) -> dict[str, Any]:
    """What the page shows of one client.

    Its fragment and picture; `alone`, the decided pairs that no other client states; `says`, the
    number of pairs on which it says yes, no, or nothing; `against`, those on which it contradicts
    the verdict.
    """
    order, claims = result.order, result.order.said.claims[k]
    fragment, names = result.fragments[claims.client], [order.labels[i] for i in claims.members]
    grid = np.ix_(claims.members, claims.members)
    yes, no = (count[grid] for count in order.said.counts)
    said, stance = order.verdicts[grid], claims.stance
    agrees = {True: (stance > 0) & (said == YES), False: (stance < 0) & (said == NO)}
    alone = [
        (names[i], names[j], is_yes)
        for is_yes, count in ((True, yes), (False, no))
        for i, j in np.argwhere(agrees[is_yes] & (count == 1))
    ]
    against = ((stance > 0) & (said == NO)) | ((stance < 0) & (said == YES))
    return {
        "fragment": fragment,
        "picture": draw_piece(fragment, {(names[i], names[j]) for i, j in np.argwhere(stance > 0)}),
        "alone": alone,
        "says": {
            "yes": int((stance > 0).sum()),
            "no": int((stance < 0).sum()),
            "nothing": int((stance == 0).sum()) - len(names),
        },
        "against": int(against.sum()),
    }


def _sensors(site: str, frame: pd.DataFrame) -> dict[str, Any]:
    """Which sensors of a site carry which label.

    `cells` have the places of a sensor and of a label, the share, whether the sensor rises, and
    what the cell says; `rows` a label, its sensor, what this does when the label rises, by how
    much, and its share.
    """
    labels = list(dict.fromkeys(frame["label"]))[:MOST_LABELS]
    frame = frame[frame["label"].isin(labels)]
    sensors = list(frame.groupby("sensor", sort=False)["share"].max().nlargest(MOST_SENSORS).index)
    cells, rows = [], {}
    for x in frame.to_dict("records"):
        label, sensor, rises, share = x["label"], x["sensor"], x["response"] > 0, x["share"]
        if sensor in sensors:
            place = sensors.index(sensor), labels.index(label), min(share, 1.0)
            cells.append((*place, rises, f"{share:.0%} of {sensor} comes from {label}"))
        if x["up"] or label not in rows:
            size = f"{abs(x['response']):.2f} {x['unit']}".strip() + f" per {x['per']}"
            named = f"{sensor} (named by you)" if x["up"] else sensor
            rows[label] = (label, named, "rises" if rises else "falls", size, f"{share:.0%}")
    found = {"labels": labels, "sensors": sensors, "cells": cells, "rows": list(rows.values())}
    return {"site": site, **found}


def _provenance(result: Result) -> list[tuple[str, str]]:
    """Pairs of name and value for the table of provenance."""
    given = dict(result.provenance)
    made = given.pop("version", None), given.pop("versions", {})
    given["versions"] = {"jigsaw-crl": made[0], **made[1]}
    # The table of clients has the numbers of rows.
    given.pop("n_samples", None)
    options = vars(result.order.options).items()
    given["assembly"] = {key: value for key, value in options if key != "knowledge" or value}
    given["hard interventions"] = {
        f.client: few(x for x, is_hard in zip(f.labels, f.hard.hard, strict=True) if is_hard)
        for f in result.order.fragments
        if f.hard is not None
    }
    given["page written by"] = f"jigsaw-crl {__version__}, Python {platform.python_version()}"
    return [pair for name, value in given.items() for pair in _flat(name, value)]


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """The name and value of each leaf of nested mappings."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(f"{name}: {key}", inner)
    elif isinstance(value, (list, tuple)):
        yield name.replace("_", " "), ", ".join(map(str, value))
    elif value is not None:
        yield name.replace("_", " "), str(value)
