"""The parts of `result.json`: order and proposal as plain JSON values, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from jigsaw_crl.assembly import GlobalOrder, Proposal
from jigsaw_crl.assembly.posterior import Convergence
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["order_document", "order_from", "proposal_from"]


def order_document(order: GlobalOrder) -> dict[str, Any]:
    """The order as plain JSON values, without its fragments."""
    sampled = order.sampled
    convergence = order.convergence
    return {
        "labels": list(order.labels),
        "mode": order.mode,
        "verdicts": order.verdicts.tolist(),
        "decoded": order.decoded.astype(int).tolist(),
        "probabilities": order.probabilities.tolist(),
        "sampled": sampled is not None,
        "client_weights": {name: float(w) for name, w in order.client_weights.items()},
        "notes": list(order.notes),
        "seed": int(order.seed),
        "rate": float(order.rate),
        "disagreement": bool(order.disagreement),
        "convergence": None if convergence is None else asdict(convergence),
        "smallest_effect": order.smallest_effect,
        "rests_on": None if order.resting is None else [[*p, k] for p, k in order.resting.items()],
    }


def order_from(document: dict[str, Any], fragments: list[Fragment]) -> GlobalOrder:
    """The order from its document and fragments.

    Raises
    ------
    ValueError
        The document and the fragments contradict each other, or a value is out of range.
    """
    labels = tuple(document["labels"])
    shape = (len(labels), len(labels))
    verdicts = np.array(document["verdicts"], dtype=np.int8)
    decoded = np.array(document["decoded"], dtype=np.int8)
    probabilities = np.array(document["probabilities"], dtype=np.float64)
    if not verdicts.shape == decoded.shape == probabilities.shape == shape:
        raise ValueError("a matrix does not have one row and column per label")
    if not (np.isin(verdicts, (-1, 0, 1)).all() and np.isin(decoded, (0, 1)).all()):
        raise ValueError("a verdict is none of -1, 0, 1")
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise ValueError("a probability lies outside 0 to 1")
    if labels != tuple(sorted({x for f in fragments for x in f.labels})):
        raise ValueError("the order's labels are not those of the fragments")
    if set(document["client_weights"]) != {f.client for f in fragments}:
        raise ValueError("the weights are not those of the fragments' clients")
    if document["mode"] not in ("exact", "evidence", "paper"):
        raise ValueError(f"there is no mode {document['mode']!r}")
    convergence = document["convergence"]
    order = GlobalOrder(
        labels=labels,
        mode=document["mode"],
        verdicts=verdicts,
        decoded=decoded.astype(bool),
        sampled=probabilities if document["sampled"] else None,
        client_weights={str(k): float(w) for k, w in document["client_weights"].items()},
        notes=tuple(str(note) for note in document["notes"]),
        fragments=tuple(sorted(fragments, key=lambda f: f.client)),
        seed=int(document["seed"]),
        rate=float(document["rate"]),
        disagreement=bool(document["disagreement"]),
        convergence=None if convergence is None else Convergence(**convergence),
        smallest_effect=document.get("smallest_effect"),
        resting=_resting(document.get("rests_on"), labels, fragments),
    )
    if not document["sampled"]:
        # They need not be drawn again.
        probabilities.flags.writeable = False
        order.__dict__["probabilities"] = probabilities
    return order


def _resting(
    given: list[list[str]] | None, labels: tuple[str, ...], fragments: list[Fragment]
) -> dict[tuple[str, str], str] | None:
    """The pairs that rest on one client, each with its client; None if nobody has looked."""
    if given is None:
        return None
    clients = {f.client for f in fragments}
    if not all({a, d} <= set(labels) and client in clients for a, d, client in given):
        raise ValueError("a verdict rests on a label or client that the order does not have")
    return {(a, d): client for a, d, client in given}


def proposal_from(document: Any, order: GlobalOrder) -> Proposal | None:
    """The proposal from its document; a `ValueError` if the order does not have its labels."""
    if document is None:
        return None
    pairs = {name: tuple((a, d) for a, d in document[name]) for name in ("settles", "cannot")}
    proposal = Proposal(
        labels=tuple(document["labels"]),
        expected_gain=float(document["expected_gain"]),
        chances=tuple(float(x) for x in document["chances"]),
        undetermined=int(document["undetermined"]),
        # Files of earlier versions lack these.
        expected=float(document.get("expected", 0.0)),
        rows=None if document.get("rows") is None else int(document["rows"]),
        reason=str(document.get("reason", "")),
        **pairs,
    )
    named = {*proposal.labels, *(x for pair in (*pairs["settles"], *pairs["cannot"]) for x in pair)}
    if not named <= set(order.labels):
        raise ValueError("the proposal names a label that the order does not have")
    return proposal
