"""What a notebook shows of a fragment, an order and a result: small, static, escaped HTML."""

from __future__ import annotations

from html import escape

import numpy as np

from jigsaw_crl.assembly import GlobalOrder
from jigsaw_crl.assembly.evidence import SPEAKS
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.report.drawing import MANY, draw_graph, draw_piece
from jigsaw_crl.report.writing import svg
from jigsaw_crl.result.result import Result

__all__ = ["fragment_html", "order_html", "result_html"]

# Lines about a result; the report has all of them.
MOST_LINES = 12


def order_html(order: GlobalOrder) -> str:
    """The diagram of the order under what its repr says."""
    if len(order.labels) > 2 * MANY:
        return f"<div>{escape(repr(order))}. Too large to draw here: write the report.</div>"
    return f"<div>{escape(repr(order))}{svg(draw_graph(order))}</div>"


def fragment_html(fragment: Fragment) -> str:
    """A client's blocks and districts."""
    head = escape(f"{fragment!r}: {fragment.outcome}")
    if len(fragment.labels) > 2 * MANY:
        return f"<div>{head}. Too large to draw here.</div>"
    with np.errstate(invalid="ignore"):
        said = np.argwhere(fragment.evidence > SPEAKS).tolist()
    says = {(fragment.labels[i], fragment.labels[j]) for i, j in said}
    return f"<div>{head}{svg(draw_piece(fragment, says))}</div>"


def result_html(result: Result) -> str:
    """The order, what was left out and what was found."""
    told = [result.summary, *(f"left out: {part}" for part in result.left_out)]
    told += [str(finding) for finding in result.diagnostics]
    if len(told) > MOST_LINES:
        told[MOST_LINES:] = [f"and {len(told) - MOST_LINES} more"]
    lines = "".join(f"<p>{escape(line)}</p>" for line in told)
    return f"<div>{order_html(result.order)}{lines}</div>"
