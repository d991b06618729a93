"""Why the verdict on a pair is what it is."""

from __future__ import annotations

from jigsaw_crl.assembly.certificate import Certificate
from jigsaw_crl.assembly.global_order import GlobalOrder

__all__ = ["explain"]


def explain(order: GlobalOrder, a: int, d: int) -> Certificate:
    yes, no = order.panel.counts
    reason = f"{yes[a, d]} clients say yes, {no[a, d]} say no"
    x, y = order.labels[a], order.labels[d]
    return Certificate(x, y, order.verdict(x, y), reason)
