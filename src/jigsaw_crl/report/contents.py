"""Everything the page's template shows, taken from a result: sentences, pieces, findings."""

from __future__ import annotations

import csv
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import log10
from statistics import fmean, median
from typing import Any

import numpy as np

from jigsaw_crl._version import __version__
from jigsaw_crl.assembly import Certificate, GlobalOrder
from jigsaw_crl.assembly.certificate import Fact
from jigsaw_crl.assembly.verdict import NO, YES, Verdict
from jigsaw_crl.base.findings import Finding, most_severe_first
from jigsaw_crl.base.text import chance, pluralise
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.report.drawing import Picture, draw_graph, draw_piece
from jigsaw_crl.report.sensors import carriers
from jigsaw_crl.result.result import Result

__all__ = ["Piece", "Remark", "describe", "likely_right", "relation_no_client_states"]

# Directions of a client's spectrum that are shown.
BARS = 48
# Pairs that a remark shows.
MOST_SHOWN = 4
# Certificates that `relation_no_client_states` looks at; each takes milliseconds.
MOST_ASKED = 300
# A number of a remedy, not one that is part of a name.
_NUMBER = re.compile(r"(?<![\w.'`–-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w'`])")


@dataclass(frozen=True)
class Piece:
    """What the page shows of one client.

    Parameters
    ----------
    fragment : Fragment
    picture : Picture
    alone : tuple of (ancestor, descendant, verdict)
        Decided pairs that no other client states.
    says : mapping of str to int
        Number of ordered pairs on which the client says yes, no, or nothing.
    against : int
        Pairs on which it contradicts the order's verdict.
    bars : tuple of (float, bool)
        Its spectrum on a log scale, 0 to 1, and whether the direction carries a latent.
    """

    fragment: Fragment
    picture: Picture
    alone: tuple[tuple[str, str, bool], ...]
    says: Mapping[str, int]
    against: int
    bars: tuple[tuple[float, bool], ...]


def describe(result: Result) -> dict[str, Any]:
    """Everything the template of the page shows, by name."""
    order = result.order
    return {
        "title": _title(result),
        "news": _news(result),
        "trust": likely_right(order),
        "remarks": _remarks(order),
        "warnings": _how_many(result.diagnostics),
        "diagram": draw_graph(order),
        "pushable": _pushable(order),
        "pieces": [_piece(result, k) for k in range(len(order.fragments))],
        "cards": _cards(result.diagnostics),
        "sensors": carriers(result),
        "provenance": _provenance(result),
        "version": __version__,
    }


def _pushable(order: GlobalOrder) -> tuple[str, ...]:
    """Labels of which at least one effect is known, those that change most others first.

    None where the system is not linear: what another amount would do is not known.
    """
    if order.effects is None or order.is_bent:
        return ()
    off = ~np.eye(len(order.labels), dtype=bool)
    known = (order.effects.known & off).sum(axis=1)
    changes = (order.effects.known & (order.verdicts == YES)).sum(axis=1)
    ranked = sorted(range(len(order.labels)), key=lambda i: (-changes[i], order.labels[i]))
    return tuple(order.labels[i] for i in ranked if known[i])


def _cards(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings with one check and one remedy on one card, the most severe first.

    Remedies that differ in numbers only are one remedy. A card has each message and where it was
    seen: the place, and the number with its threshold.
    """
    cards: dict[tuple[str, str, str], dict[str, Any]] = {}
    for f in most_severe_first(findings):
        key = (f.severity, f.check, _NUMBER.sub("#", f.remedy))
        new = {"severity": f.severity, "check": f.check, "remedies": [], "seen": {}}
        card = cards.setdefault(key, new)
        card["remedies"].append(f.remedy)
        card["seen"].setdefault(f.message, []).append(_place(f))
    return [{**card, "remedy": _one_remedy(card["remedies"])} for card in cards.values()]


def _place(f: Finding) -> tuple[str, str]:
    where = " / ".join(name for name in (f.client, f.regime) if name) or "study"
    limit = "" if f.threshold is None else f", threshold {f.threshold:.3g}"
    return where, "" if f.value is None else f"{f.value:.3g}{limit}"


def _one_remedy(remedies: Sequence[str]) -> str:
    """Remedies that differ in numbers only, as one with the smallest and the largest of them."""
    numbers = [
        sorted(set(column), key=lambda text: float(text.replace(",", "")))
        for column in zip(*map(_NUMBER.findall, remedies), strict=True)
    ]
    ranges = iter(f"{c[0]} to {c[-1]}" if len(c) > 1 else c[0] for c in numbers)
    return _NUMBER.sub(lambda _: next(ranges), remedies[0])


def _how_many(findings: Sequence[Finding]) -> str:
    """The number of errors and warnings; empty if there are none."""
    counts = [
        (sum(f.severity == severity for f in findings), severity)
        for severity in ("error", "warning")
    ]
    return " and ".join(pluralise(n, severity) for n, severity in counts if n)


def _piece(result: Result, k: int) -> Piece:
    order = result.order
    claims = order.said.claims[k]
    fragment = result.fragments[claims.client]
    grid = np.ix_(claims.members, claims.members)
    yes, no = (count[grid] for count in order.said.counts)
    said, stance = order.verdicts[grid], claims.stance
    off = ~np.eye(len(stance), dtype=bool)
    alone = ((stance > 0) & (said == 1) & (yes == 1)) | ((stance < 0) & (said == 0) & (no == 1))
    names = [order.labels[i] for i in claims.members]
    found = [(names[i], names[j], bool(said[i, j] == 1)) for i, j in np.argwhere(alone)]
    against = ((stance > 0) & (said == 0)) | ((stance < 0) & (said == 1))
    return Piece(
        fragment=fragment,
        picture=draw_piece(fragment, {(names[i], names[j]) for i, j in np.argwhere(stance > 0)}),
        alone=tuple(sorted(found, key=lambda item: (not item[2], item))),
        says={
            "yes": int((stance > 0).sum()),
            "no": int((stance < 0).sum()),
            "nothing": int(((stance == 0) & off).sum()),
        },
        against=int(against.sum()),
        bars=_bars(result, claims.client),
    )


def _bars(result: Result, client: str) -> tuple[tuple[float, bool], ...]:
    spectrum = (result.provenance.get("spectra") or {}).get(client)
    if not spectrum:
        return ()
    values = np.array(spectrum["eigenvalues"][:BARS], dtype=np.float64)
    heights = np.log10(np.maximum(values, values[0] * 1e-6) / values[0]) / 6 + 1
    return tuple((float(h), i < spectrum["n_latent"]) for i, h in enumerate(heights))


def _provenance(result: Result) -> list[tuple[str, str]]:
    """Pairs of name and value for the table of provenance."""
    given = dict(result.provenance)
    hashes = given.pop("sha256", {})
    given.pop("spectra", None)
    out: list[tuple[str, str]] = []
    sizes = given.pop("n_samples", None) or {f.client: f.n_samples for f in result.order.fragments}
    sources = given.pop("sources", None) or {}
    made_with = {"jigsaw-crl": given.pop("version", None), **(given.pop("versions", None) or {})}
    for name, value in given.items():
        out += _flat(name.replace("_", " "), value)
    with_versions = ", ".join(f"{name} {number}" for name, number in made_with.items() if number)
    if with_versions:
        out.append(("recovered with", with_versions))
    for name, value in result.options.items():
        out += _flat(f"assembly: {name.replace('_', ' ')}", value)
    for client, rows in sizes.items():
        out.append((f"rows of {client}", _rows(rows)))
    for client in sorted({*sources, *hashes}):
        digest = f"sha256 {hashes[client]}" if client in hashes else "no file"
        out.append((f"source of {client}", f"{sources.get(client, '')} {digest}".strip()))
    written = f"jigsaw-crl {__version__}, Python {platform.python_version()}"
    return [*out, ("page written by", written)]


def _flat(name: str, value: Any) -> list[tuple[str, str]]:
    if isinstance(value, Mapping):
        return [pair for k, v in value.items() for pair in _flat(f"{name}: {k}", v)]
    return [(name, str(value))]


def _rows(rows: Mapping[str, int] | int | None) -> str:
    if rows is None:
        return "exact moments"
    if not isinstance(rows, Mapping):
        return f"{rows:,}"
    sizes = set(rows.values())
    if len(sizes) == 1:
        return f"{sizes.pop():,} in each of {pluralise(len(rows), 'regime')}"
    return ", ".join(f"{name} {count:,}" for name, count in rows.items())


# -- sentences ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remark:
    """A sentence, and pairs to ask about: (ancestor, descendant, text)."""

    text: str
    pairs: tuple[tuple[str, str, str], ...] = ()


def _title(result: Result) -> str:
    """The study's name, or what it is about."""
    name = str(result.provenance.get("study") or "study")
    if name != "study":
        return name
    order = result.order
    labels = pluralise(len(order.labels), "label")
    return f"Causal order of {labels} from {pluralise(len(order.fragments), 'client')}"


def _news(result: Result) -> Remark:
    """What is decided, with a pair that only several clients together decide if there is one."""
    order = result.order
    n = order.counts
    decided, every = n["ancestor"] + n["not ancestor"], sum(n.values())
    one = len(order.fragments) == 1
    who = pluralise(len(order.fragments), "client") + (" decides" if one else " together decide")
    text = f"{who} {f'{decided:,}' if decided else 'none'} of {every:,} ordered pairs of labels."
    pair = relation_no_client_states(order)
    if pair is None:
        return Remark(text)
    seen = order.panel.seen_by(*order.indices(*pair))
    why = "no client could tell alone" if seen else "no client has both"
    return Remark(text, ((*pair, f"{_stated(order, *pair)}, though {why}"),))


def _stated(order: GlobalOrder, ancestor: str, descendant: str) -> Fact:
    """What is decided about a pair."""
    return Fact(ancestor, descendant, order.verdict(ancestor, descendant) is Verdict.ANCESTOR)


def relation_no_client_states(order: GlobalOrder) -> tuple[str, str] | None:
    """A decided pair that follows only from several clients together; None if there is none.

    No client supports every direct step of its certificate. Ancestor pairs come first, among them
    pairs that no client has.
    """
    yes, no = order.said.counts
    off = ~np.eye(len(order.labels), dtype=bool)
    for candidates in ((order.verdicts == YES) & (yes == 0), (order.verdicts == NO) & (no == 0)):
        pairs = np.argwhere(candidates & off).tolist()
        pairs.sort(key=lambda pair: bool(order.panel.seen_by(*pair)))
        for a, d in pairs[:MOST_ASKED]:
            if _needs_several(order.explain(order.labels[a], order.labels[d])):
                return order.labels[a], order.labels[d]
    return None


def _needs_several(certificate: Certificate) -> bool:
    """Whether no single client supports all the direct steps of a certificate."""
    direct = [set(s.supporting) for s in certificate.steps if s.rule in ("stated", "weighed")]
    return len(direct) > 1 and not set.intersection(*direct)


def _remarks(order: GlobalOrder) -> tuple[Remark, ...]:
    """What to know about the verdicts: open, contested, resting on one client; convergence."""
    found = [_about_open(order), _about_contested(order)]
    if order.rests_on:
        many = _many(len(order.rests_on), "verdict rests", "verdicts rest")
        found.append(Remark(f"{many} on a single client: without it, the others would not decide."))
    if order.convergence is not None:
        found.append(Remark(f"Convergence: {order.convergence}."))
    return tuple(remark for remark in found if remark.text)


def _many(number: int, one: str, several: str) -> str:
    return f"{number:,} {one if number == 1 else several}"


def _about_open(order: GlobalOrder) -> Remark:
    """How many pairs are undetermined, why, and which of them are the most probable."""
    opened = order.undetermined()
    if not opened:
        return Remark("")
    text = f"{_many(len(opened), 'pair is', 'pairs are')} undetermined"
    if order.mode == "paper":
        return Remark(f"{text}: Algorithm 3 does not state them, and never denies one.")
    disputed = 0 if order.convergence is None else len(order.convergence.disputed)
    one = len(opened) == 1
    why = f"the clients' data do not settle {'it' if one else 'them'}"
    if disputed:
        why += f"; on {disputed:,} of them the chains that sample orders disagree"
    ranked = sorted(opened, key=lambda pair: (-order.probability(*pair), pair))[:MOST_SHOWN]
    return Remark(
        f"{text}: {why}." + ("" if one else " The most probable:"),
        tuple(
            (a, d, f"is {a} an ancestor of {d}? {chance(order.probability(a, d))}")
            for a, d in ranked
        ),
    )


def _about_contested(order: GlobalOrder) -> Remark:
    if not order.contested:
        return Remark("")
    shown = sorted(order.contested)[:MOST_SHOWN]
    return Remark(
        f"{_many(len(order.contested), 'verdict is', 'verdicts are')} contested: clients that say "
        "the opposite would decide so on their own.",
        tuple((a, d, str(_stated(order, a, d))) for a, d in shown),
    )


def likely_right(order: GlobalOrder) -> str:
    """How often verdicts were right in the simulations that are most like the study.

    Empty for exact moments, from Algorithm 3, without any verdict, and for a system that is not
    linear, of which there are none.
    """
    rows = [n for f in order.fragments for n in (f.n_samples or {}).values()]
    if order.mode != "evidence" or order.is_bent or not rows or not (order.verdicts >= 0).any():
        return ""
    kind = "soft" if order.effects is None else "hard"
    have = log10(max(median(rows), 1)), log10(len(order.fragments))
    known = [line for line in _simulations() if line["kind"] == kind]

    def distance(line: dict[str, str]) -> float:
        there = log10(int(line["rows"])), log10(int(line["clients"]))
        return abs(there[0] - have[0]) + abs(there[1] - have[1])

    nearest = min(map(distance, known))
    like = [line for line in known if distance(line) == nearest]
    clients, size = int(like[0]["clients"]), int(like[0]["rows"])
    yes, no = (_right([float(line[name]) for line in like]) for name in ("wrong_yes", "wrong_no"))
    return (
        f"In simulations like this study ({kind} interventions, {pluralise(clients, 'client')}, "
        f"{size:,} rows per regime) {yes} of “ancestor” and {no} of “not ancestor” verdicts were "
        "right."
    )


def _right(wrong: Sequence[float]) -> str:
    text = f"{100 - fmean(wrong):.1f}"
    return ("> 99.9 %" if text == "100.0" else f"{text} %").replace(" ", "\N{NO-BREAK SPACE}")


@cache
def _simulations() -> list[dict[str, str]]:
    text = (files("jigsaw_crl.report") / "simulations.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
