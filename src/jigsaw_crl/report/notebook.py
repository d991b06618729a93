"""What a notebook shows of a fragment, an order and a result: small, static, escaped HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.evidence import SPEAKS
from jigsaw_crl.assembly.verdict import tally
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.report.drawing import Picture, draw_hasse, draw_piece
from jigsaw_crl.result.result import Result

__all__ = ["fragment_html", "order_html", "result_html"]

# Notebooks have their own light or dark ground: lines take its text colour, fills stay faint.
_FRAMES = {"block": "fill:none;stroke:#8593a8", "district": "fill:#a2477f22;stroke:#a2477f"}
MOST_DRAWN, MOST_ROWS = 120, 12


def _stated(fragment: Fragment) -> set[tuple[str, str]]:
    """Pairs that the client calls ancestors, by more than three to one."""
    with np.errstate(invalid="ignore"):
        found = np.argwhere(fragment.evidence > SPEAKS).tolist()
    return {(fragment.labels[a], fragment.labels[d]) for a, d in found}


def order_html(order: GlobalOrder) -> str:
    """The Hasse diagram under one line of numbers."""
    head = (
        f"<b>GlobalOrder</b>: {pluralise(len(order.labels), 'label')} from "
        f"{pluralise(len(order.fragments), 'client')}: {tally(order.counts)} ({order.mode})"
    )
    if len(order.labels) > MOST_DRAWN:
        return f"<div>{head}. Too large to draw here: write the report.</div>"
    return f"<div>{head}{_svg(draw_hasse(order))}</div>"


def fragment_html(fragment: Fragment) -> str:
    """A client's blocks and districts."""
    head = (
        f"<b>Fragment</b> {escape(fragment.client)} ({escape(fragment.method)}): "
        f"{pluralise(len(fragment.labels), 'label')} in "
        f"{pluralise(len(fragment.blocks), 'block')}; "
        f"{escape(str(fragment.outcome))}"
    )
    if len(fragment.labels) > MOST_DRAWN:
        return f"<div>{head}. Too large to draw here.</div>"
    return f"<div>{head}{_svg(draw_piece(fragment, _stated(fragment)))}</div>"


def result_html(result: Result) -> str:
    """The order, the clients and what was found."""
    order = result.order
    rows = [
        (f.client, len(f.labels), len(f.blocks), f"{order.client_weights[f.client]:.2f}", f.outcome)
        for f in result.fragments.values()
    ]
    parts = [order_html(order), _table(("client", "labels", "blocks", "weight", "outcome"), rows)]
    parts += [f"<p>left out: {escape(str(part))}</p>" for part in result.left_out]
    if result.diagnostics:
        found = [(f.severity, f.client or "study", f.message, f.remedy) for f in result.diagnostics]
        parts.append(_table(("severity", "where", "what was seen", "remedy"), found))
    return f"<div>{''.join(parts)}</div>"


def _table(columns: Iterable[str], rows: Sequence[tuple[object, ...]]) -> str:
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = len(rows) - MOST_ROWS
    rest = f"<p>and {more} more</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _svg(picture: Picture) -> str:
    w, h = picture.width, picture.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" '
        f'height="{h:.0f}" style="max-width:100%;height:auto;display:block" role="img" '
        'aria-label="Hasse diagram" font-family="monospace" font-size="13">'
    ]
    for edge in picture.edges:
        dots = ' stroke-dasharray="1.5 4" stroke-linecap="round"' if not edge.stated else ""
        parts.append(f'<path d="{edge.path}" fill="none" stroke="#8593a8"{dots}/>')
        x, y = edge.points[-1]
        parts.append(f'<path d="M{x - 4:.1f} {y - 8:.1f}h8l-4 8z" fill="#8593a8"/>')
    for o in picture.outlines:
        parts.append(
            f'<rect x="{o.x:.1f}" y="{o.y:.1f}" width="{o.width:.1f}" height="{o.height:.1f}" '
            f'rx="10" style="{_FRAMES[o.kind]}"/>'
        )
    for c in picture.chips:
        middle = f'x="{c.x + c.width / 2:.1f}" y="{c.y + c.height / 2:.1f}"'
        parts.append(
            f'<g><title>{escape(c.label)}</title><rect x="{c.x:.1f}" y="{c.y:.1f}" '
            f'width="{c.width:.1f}" height="{c.height:.1f}" rx="13" fill="none" stroke="#0072B2"/>'
            f'<text {middle} dy="0.35em" text-anchor="middle" fill="currentColor">'
            f"{escape(c.shown)}</text></g>"
        )
    return "".join([*parts, "</svg>"])
