"""The parts of `result.json`: order and proposal as plain JSON values, and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from jigsaw_crl.assembly import GlobalOrder, Proposal
from jigsaw_crl.assembly.decision import Why
from jigsaw_crl.assembly.panel import read_fragments
from jigsaw_crl.assembly.posterior import Convergence
from jigsaw_crl.assembly.use import Use
from jigsaw_crl.base.knowledge import Knowledge
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["groups_document", "order_document", "order_from", "proposal_from", "with_groups"]


def order_document(order: GlobalOrder) -> dict[str, Any]:
    """The order as plain JSON values, without its fragments."""
    convergence, use, known = order.convergence, order.use, order.panel.knowledge
    return {
        "labels": list(order.labels),
        "mode": order.mode,
        "verdicts": order.verdicts.tolist(),
        "why": order.why.tolist(),
        "decoded": order.decoded.astype(int).tolist(),
        "probabilities": order.probabilities.tolist(),
        "client_weights": dict(order.client_weights),
        "rate": float(use.rate),
        "not_hard": sorted(use.soft),
        "silent": sorted(map(list, use.silent)),
        "withheld": sorted(use.withheld),
        "copies": [[order.panel.clients[k] for k in group] for group in use.copies],
        "notes": list(order.notes),
        "seed": int(order.seed),
        "disagreement": bool(order.disagreement),
        "convergence": None if convergence is None else asdict(convergence),
        "smallest_effect": order.smallest_effect,
        "knowledge": known.to_document() if known else None,
        "rests_on": [[*pair, client] for pair, client in sorted(order.rests_on.items())],
        "contested": sorted(map(list, order.contested)),
    }


def order_from(document: dict[str, Any], fragments: list[Fragment]) -> GlobalOrder:
    """The order from its document and fragments.

    What a pair rests on, and what is contested, follows from the rest.

    Raises
    ------
    ValueError
        The document and the fragments contradict each other, or a value is out of range.
    """
    if not fragments:
        raise ValueError("there are no fragments")
    panel = read_fragments(fragments, Knowledge.from_document(document["knowledge"] or {}))
    shape = (len(panel.labels), len(panel.labels))
    verdicts, why, decoded = (
        np.array(document[name], dtype=np.int8) for name in ("verdicts", "why", "decoded")
    )
    probabilities = np.array(document["probabilities"], dtype=np.float64)
    if tuple(document["labels"]) != panel.labels:
        raise ValueError("the order's labels are not those of the fragments")
    if {m.shape for m in (verdicts, why, decoded, probabilities)} != {shape}:
        raise ValueError("a matrix does not have one row and column per label")
    if not (np.isin(verdicts, (-1, 0, 1)).all() and np.isin(decoded, (0, 1)).all()):
        raise ValueError("a verdict is none of -1, 0, 1")
    if not np.isin(why, [int(x) for x in Why]).all():
        raise ValueError("a verdict has an unknown reason")
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise ValueError("a probability lies outside 0 to 1")
    if set(document["client_weights"]) != set(panel.clients):
        raise ValueError("the weights are not those of the fragments' clients")
    number = {client: k for k, client in enumerate(panel.clients)}
    convergence, exact = document["convergence"], document["mode"] == "exact"
    order = GlobalOrder(
        panel=panel,
        use=Use(
            weights=np.array([document["client_weights"][name] for name in panel.clients]),
            rate=float(document["rate"]),
            soft=frozenset(document["not_hard"]),
            silent=frozenset((client, label) for client, label in document["silent"]),
            withheld=frozenset(document["withheld"]),
            copies=tuple(tuple(number[name] for name in group) for group in document["copies"]),
        ),
        mode=document["mode"],
        verdicts=verdicts,
        why=why,
        decoded=decoded.astype(bool),
        chances=None if exact else probabilities,
        notes=tuple(str(note) for note in document["notes"]),
        seed=int(document["seed"]),
        disagreement=bool(document["disagreement"]),
        convergence=None if convergence is None else Convergence(**convergence),
        smallest_effect=document["smallest_effect"],
    )
    if exact:
        # They need not be sampled again.
        probabilities.flags.writeable = False
        order.__dict__["probabilities"] = probabilities
    return order


def groups_document(fragment: Fragment) -> dict[str, Any]:
    """Blocks, their order and districts of a client, as settled by the order."""
    document = fragment.to_document()
    return {name: document[name] for name in ("client", "blocks", "block_covers", "districts")}


def with_groups(fragment: Fragment, document: dict[str, Any]) -> Fragment:
    """The fragment with the blocks and districts of a document."""

    def sets(groups: list[list[int]]) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(fragment.labels[i] for i in group) for group in groups)

    blocks, districts = sets(document["blocks"]), document["districts"]
    covers = [(blocks[a], blocks[d]) for a, d in document["block_covers"]]
    return replace(
        fragment,
        blocks=blocks,
        block_order=PartialOrder.from_pairs(blocks, covers),
        districts=None if districts is None else sets(districts),
    )


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
        expected=float(document["expected"]),
        rows=None if document["rows"] is None else int(document["rows"]),
        reason=str(document["reason"]),
        **pairs,
    )
    named = {*proposal.labels, *(x for pair in (*pairs["settles"], *pairs["cannot"]) for x in pair)}
    if not named <= set(order.labels):
        raise ValueError("the proposal names a label that the order does not have")
    return proposal
