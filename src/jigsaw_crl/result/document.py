"""`result.json`: a closed, versioned JSON document, what it must hold, and the result in it.

Import this module only where a result is read or written: it loads pydantic.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field, StrictStr, ValidationError

from jigsaw_crl._version import __version__
from jigsaw_crl.assembly.design import Proposal
from jigsaw_crl.assembly.order import GlobalOrder, Options
from jigsaw_crl.assembly.panel import Use, read_fragments
from jigsaw_crl.assembly.posterior.chains import Convergence
from jigsaw_crl.assembly.verdict import Why
from jigsaw_crl.base.documents import Closed, Document, Number, WholeNumber
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.knowledge import Knowledge
from jigsaw_crl.fragment.file import FragmentDocument, GroupsDocument, groups_of
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.result.result import Result

_Share = Annotated[Number, Field(ge=0, le=1)]
# Of a fragment, what the order settles: blocks, their order and districts.
_GROUPS = GroupsDocument.model_fields.keys()


def result_document(result: Result) -> dict[str, Any]:
    """The result as plain JSON values, without the latent bases."""
    return {
        "format": "jigsaw-crl/result",
        "version": 1,
        "written_by": f"jigsaw-crl {__version__}",
        "fragments": [f.to_document() for f in result.order.fragments],
        "refined": [
            {name: value for name, value in f.to_document().items() if name in _GROUPS}
            for f in result.fragments.values()
        ],
        "order": order_document(result.order),
        "diagnostics": [f.to_document() for f in result.diagnostics],
        "provenance": dict(result.provenance),
        "proposal": None if result.proposal is None else asdict(result.proposal),
    }


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
        "withheld": sorted(use.withheld),
        "copies": [[order.panel.clients[k] for k in group] for group in use.copies],
        "notes": list(order.notes),
        "seed": int(order.options.seed),
        "convergence": None if convergence is None else asdict(convergence),
        "smallest_effect": order.options.smallest_effect,
        "witnesses": order.options.witnesses,
        "knowledge": known.to_document() if known else None,
    }


class OrderDocument(Closed):
    """The order without its fragments. What pairs rest on, and what is contested, follows."""

    labels: list[StrictStr]
    mode: Literal["exact", "evidence", "paper"]
    verdicts: list[list[Annotated[WholeNumber, Field(ge=-1, le=1)]]]
    why: list[list[Annotated[WholeNumber, Field(ge=0, le=max(Why))]]]
    decoded: list[list[Annotated[WholeNumber, Field(ge=0, le=1)]]]
    probabilities: list[list[_Share]]
    client_weights: dict[str, _Share]
    rate: _Share
    not_hard: list[StrictStr]
    withheld: list[StrictStr]
    copies: list[list[StrictStr]]
    notes: list[StrictStr]
    seed: Annotated[WholeNumber, Field(ge=0)]
    convergence: Convergence | None
    smallest_effect: Annotated[Number, Field(gt=0)] | None
    # Older files have none.
    knowledge: dict[StrictStr, list[list[StrictStr]]] | None = None
    witnesses: Annotated[WholeNumber, Field(ge=1)] | Literal["fifth"] | None = None

    def order(self, fragments: list[Fragment]) -> GlobalOrder:
        """The order of these fragments; a `ValueError` if the two contradict each other."""
        panel = read_fragments(fragments, Knowledge.from_document(self.knowledge or {}))
        if tuple(self.labels) != panel.labels:
            raise ValueError("the order's labels are not those of the fragments")
        if set(self.client_weights) != set(panel.clients):
            raise ValueError("the weights are not those of the fragments' clients")
        number = {client: k for k, client in enumerate(panel.clients)}
        return GlobalOrder(
            panel=panel,
            use=Use(
                weights=np.array([self.client_weights[name] for name in panel.clients]),
                rate=self.rate,
                soft=frozenset(self.not_hard),
                withheld=frozenset(self.withheld),
                copies=tuple(tuple(number[name] for name in group) for group in self.copies),
            ),
            mode=self.mode,
            verdicts=np.array(self.verdicts, dtype=np.int8),
            why=np.array(self.why, dtype=np.int8),
            decoded=np.array(self.decoded, dtype=bool),
            # They need not be sampled again.
            chances=np.array(self.probabilities, dtype=np.float64),
            notes=tuple(self.notes),
            options=Options(
                "paper" if self.mode == "paper" else "null-cone",
                self.seed,
                self.smallest_effect,
                panel.knowledge,
                self.witnesses,
            ),
            convergence=self.convergence,
        )


class _Provenance(Closed):
    """What the program reads in the provenance, or adds to it; other entries may be anything."""

    model_config = ConfigDict(extra="allow")

    study: str | None = None
    round: str | None = None
    versions: dict[str, Any] = Field(default_factory=dict)
    n_samples: dict[str, dict[str, int] | None] = Field(default_factory=dict)
    fragments: dict[str, Any] = Field(default_factory=dict)
    signatures: dict[str, Any] = Field(default_factory=dict)
    log: dict[str, Any] = Field(default_factory=dict)
    added: list[str] = Field(default_factory=list)
    removed: list[str] = Field(default_factory=list)


# Levels of the provenance: ours has six, and each takes calls where it is shown or compared.
_LEVELS = 20


def _shallow(value: object, levels: int = _LEVELS) -> bool:
    """Has a value of a JSON document at most so many levels?"""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_shallow(one, levels - 1) for one in inner)


def _usable(value: dict[str, Any]) -> dict[str, Any]:
    """The provenance, unless the program could not show it, add to it or write it again."""
    if not _shallow(value):
        raise ValueError(f"it has more than {_LEVELS} levels")
    # Half a character cannot be written, nor a number beyond 64 bits, which is read as infinite.
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    try:
        _Provenance.model_validate(value)
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise ValueError(f"its entry {place[:80]!r} has another form") from None
    return value


class ResultDocument(Document):
    """The fields of `result.json`."""

    kind = "result"
    remedy = "Write it again with `jigsaw recover --out`."
    largest_file = 1 << 32

    format: Literal["jigsaw-crl/result"]
    version: Literal[1]
    written_by: str
    fragments: list[FragmentDocument]
    # Blocks and districts as settled by the order.
    refined: list[GroupsDocument]
    order: OrderDocument
    diagnostics: list[Finding]
    provenance: Annotated[dict[str, Any], AfterValidator(_usable)]
    proposal: Proposal | None

    def result(self, path: object) -> Result:
        """The result; a `ValueError` or the like if the parts contradict each other."""
        p = len(self.order.labels)
        tables = (self.order.verdicts, self.order.why, self.order.decoded, self.order.probabilities)
        # First of all: memory is asked for by the number of labels.
        if any([len(row) for row in table] != [p] * p for table in tables):
            raise ValueError("a matrix does not have one row and column per label")
        if not self.fragments:
            raise ValueError("there are no fragments")
        fragments = [given.fragment(path) for given in self.fragments]
        order = self.order.order(fragments)
        groups = {given.client: given for given in self.refined}
        if self.proposal is not None:
            pairs = (*self.proposal.settles, *self.proposal.cannot)
            if not {*self.proposal.labels, *(x for pair in pairs for x in pair)} <= {*order.labels}:
                raise ValueError("the proposal names a label that the order does not have")
        return Result(
            {f.client: replace(f, **groups_of(groups[f.client], f.labels)) for f in fragments},
            order,
            tuple(self.diagnostics),
            self.provenance,
            self.proposal,
        )
