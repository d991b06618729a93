"""Everything the page's template shows, taken from a result."""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jigsaw_crl._version import __version__
from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.verdict import YES
from jigsaw_crl.base.findings import Finding, most_severe_first
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.report.drawing import Picture, draw_graph, draw_piece
from jigsaw_crl.report.summary import likely_right, news, remarks, title
from jigsaw_crl.result.result import Result

__all__ = ["Piece", "describe"]

BARS = 48
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
        "title": title(result),
        "news": news(result),
        "trust": likely_right(order),
        "remarks": remarks(order),
        "warnings": _how_many(result.diagnostics),
        "diagram": draw_graph(order),
        "pushable": _pushable(order),
        "pieces": [_piece(result, k) for k in range(len(order.fragments))],
        "cards": _cards(result.diagnostics),
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
