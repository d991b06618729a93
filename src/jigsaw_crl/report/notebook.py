"""What a notebook shows of a fragment, an order and a result: small, static, escaped HTML."""

from __future__ import annotations

from html import escape

import numpy as np

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.evidence import SPEAKS
from jigsaw_crl.assembly.verdict import tally
from jigsaw_crl.base.text import pluralise, signed
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.report.drawing import Picture, draw_graph, draw_piece
from jigsaw_crl.result.result import Result

__all__ = ["fragment_html", "order_html", "result_html", "svg"]

# Notebooks have their own light or dark ground: lines take its text colour, fills stay faint.
_SIGNS = {"plus": "#0072B2", "minus": "#D55E00", "unclear": "#8593a8"}
_FRAMES = {"block": "fill:none;stroke:#8593a8", "district": "fill:#a2477f22;stroke:#a2477f"}
MOST_DRAWN, MOST_LINES = 120, 12


def order_html(order: GlobalOrder) -> str:
    """The diagram of the order under one line of numbers."""
    head = (
        f"<b>GlobalOrder</b>: {pluralise(len(order.labels), 'label')} from "
        f"{pluralise(len(order.fragments), 'client')}: {tally(order.counts)} ({order.mode})"
    )
    if len(order.labels) > MOST_DRAWN:
        return f"<div>{head}. Too large to draw here: write the report.</div>"
    return f"<div>{head}{svg(draw_graph(order))}</div>"


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
    with np.errstate(invalid="ignore"):
        said = np.argwhere(fragment.evidence > SPEAKS).tolist()
    says = {(fragment.labels[i], fragment.labels[j]) for i, j in said}
    return f"<div>{head}{svg(draw_piece(fragment, says))}</div>"


def result_html(result: Result) -> str:
    """The order, what was left out and what was found."""
    told = [f"left out: {part}" for part in result.left_out]
    told += [str(finding) for finding in result.diagnostics]
    if len(told) > MOST_LINES:
        told[MOST_LINES:] = [f"and {len(told) - MOST_LINES} more"]
    lines = "".join(f"<p>{escape(line)}</p>" for line in told)
    return f"<div>{order_html(result.order)}{lines}</div>"


def svg(picture: Picture) -> str:
    """A picture as SVG that needs no style sheet."""
    w, h = picture.width, picture.height
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0f} {h:.0f}" width="{w:.0f}" '
        f'height="{h:.0f}" style="max-width:100%;height:auto;display:block" role="img" '
        'aria-label="Diagram" font-family="monospace" font-size="13" text-anchor="middle" '
        'fill="currentColor">'
    ]
    for edge in picture.edges:
        weight = edge.weight
        colour = _SIGNS["unclear" if weight is None else weight.sign]
        dash = "1.5 4" if not edge.stated else "6 4" if weight and not weight.decided else "none"
        parts.append(
            f'<path d="{edge.path}" fill="none" stroke="{colour}" stroke-linecap="round" '
            f'stroke-width="{weight.width if weight else 1:.1f}" stroke-dasharray="{dash}"/>'
        )
        x, y = edge.points[-1]
        parts.append(f'<path d="M{x - 5:.1f} {y - 9:.1f}h10l-5 9z" fill="{colour}"/>')
    for o in picture.outlines:
        parts.append(
            f'<rect x="{o.x:.1f}" y="{o.y:.1f}" width="{o.width:.1f}" height="{o.height:.1f}" '
            f'rx="10" style="{_FRAMES[o.kind]}"/>'
        )
    for c in picture.chips:
        middle = f'x="{c.x + c.width / 2:.1f}" y="{c.y + c.height / 2:.1f}"'
        parts.append(
            f'<g><title>{escape(c.label)}</title><rect x="{c.x:.1f}" y="{c.y:.1f}" '
            f'width="{c.width:.1f}" height="{c.height:.1f}" rx="13" fill="none" '
            f'stroke="#0072B2"/><text {middle} dy="0.35em">{escape(c.shown)}</text></g>'
        )
    for edge in picture.edges:
        if edge.weight is not None and edge.number_at is not None:
            x, y = edge.number_at
            parts.append(
                f'<text x="{x:.1f}" y="{y:.1f}" dy="0.35em" font-size="11" fill="#17202c" '
                'stroke="white" stroke-width="3" paint-order="stroke">'
                f"{signed(edge.weight.value)}</text>"
            )
    return "".join([*parts, "</svg>"])
