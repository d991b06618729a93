"""`jigsaw explain`: the verdict on a pair, and what it rests on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import normal_label
from jigsaw_crl.cli import options as opt
from jigsaw_crl.cli.output import emit

__all__ = ["explain"]


def explain(
    folder: opt.ResultFolder,
    ancestor: Annotated[
        str, typer.Argument(metavar="ANCESTOR", help="Is this label an ancestor …")
    ],
    descendant: Annotated[str, typer.Argument(metavar="DESCENDANT", help="… of this one?")],
    as_json: opt.Json = False,
) -> None:
    """Why is this the verdict on a pair of labels?"""
    from jigsaw_crl.result.folder import load_result

    result = load_result(folder)
    order = result.order
    ancestor, descendant = normal_label(ancestor), normal_label(descendant)
    for label in (ancestor, descendant):
        if label in result.lost_labels:
            why = "; ".join(str(part) for part in result.lost_labels[label])
            raise InputError(
                f"the label {label!r} is missing from the order; left out were {why[:400]}",
                "See the findings for what to do about it.",
            )
    certificate = order.explain(ancestor, descendant)
    emit(
        as_json,
        {
            "ancestor": ancestor,
            "descendant": descendant,
            "verdict": order.verdict(ancestor, descendant).name.lower(),
            # Algorithm 3 gives none.
            "probability": None
            if order.mode == "paper"
            else float(order.probability(ancestor, descendant)),
            "excludes_above": certificate.bound if certificate.excluded else None,
            "excludes_unit": certificate.bound_unit if certificate.excluded else "",
            "effect": None if certificate.effect is None else asdict(certificate.effect),
            "contested": certificate.contested,
            "rests_on": certificate.rests_on or None,
            "witnesses": certificate.witnesses or None,
            "certificate": str(certificate),
        },
        str(certificate),
    )
