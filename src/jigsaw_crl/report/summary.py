"""The summary of the page in words: title, news, what to know about the verdicts, trust."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import log10
from statistics import fmean, median

import numpy as np

from jigsaw_crl.assembly import Certificate, GlobalOrder
from jigsaw_crl.assembly.certificate import Fact
from jigsaw_crl.assembly.verdict import NO, YES, Verdict
from jigsaw_crl.base.text import chance, pluralise
from jigsaw_crl.result.result import Result

__all__ = ["Remark", "likely_right", "news", "relation_no_client_states", "remarks", "title"]

Pair = tuple[str, str]

# Pairs that a remark shows.
MOST_SHOWN = 4
# Certificates that `relation_no_client_states` looks at; each takes milliseconds.
MOST_ASKED = 300
# The name of a study without one.
NAMELESS = "study"


@dataclass(frozen=True)
class Remark:
    """A sentence, and pairs to ask about: (ancestor, descendant, text)."""

    text: str
    pairs: tuple[tuple[str, str, str], ...] = ()


def title(result: Result) -> str:
    """The study's name, or what it is about."""
    name = str(result.provenance.get("study") or NAMELESS)
    if name != NAMELESS:
        return name
    order = result.order
    labels = pluralise(len(order.labels), "label")
    return f"Causal order of {labels} from {pluralise(len(order.fragments), 'client')}"


def news(result: Result) -> Remark:
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


def relation_no_client_states(order: GlobalOrder) -> Pair | None:
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


def remarks(order: GlobalOrder) -> tuple[Remark, ...]:
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
