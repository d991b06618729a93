"""The schema of `result.json`: a closed, versioned JSON document with strict types."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr

from jigsaw_crl.base.documents import Closed, Document, Number, WholeNumber

__all__ = ["ResultDocument"]

_Share = Annotated[Number, Field(ge=0, le=1)]
_Count = Annotated[WholeNumber, Field(ge=0)]
_Pair = tuple[StrictStr, StrictStr]


class _Convergence(Closed):
    converged: StrictBool
    r_hat: Number
    worst_error: Number
    sweeps: _Count
    chains: _Count
    # Positions of ancestor and descendant.
    disputed: list[tuple[_Count, _Count]]


class _Knowledge(Closed):
    tiers: list[list[StrictStr]]
    ancestor: list[_Pair]
    not_ancestor: list[_Pair]


class _Order(Closed):
    """The order without its fragments; `document.order_from` compares them."""

    labels: list[StrictStr]
    mode: Literal["exact", "evidence", "paper"]
    verdicts: list[list[WholeNumber]]
    why: list[list[WholeNumber]]
    decoded: list[list[WholeNumber]]
    probabilities: list[list[Number]]
    client_weights: dict[str, _Share]
    rate: _Share
    not_hard: list[StrictStr]
    silent: list[_Pair]
    withheld: list[StrictStr]
    copies: list[list[StrictStr]]
    notes: list[StrictStr]
    seed: WholeNumber
    disagreement: StrictBool
    convergence: _Convergence | None
    smallest_effect: Annotated[Number, Field(gt=0)] | None
    # Older files have none.
    knowledge: _Knowledge | None = None
    # Ancestor, descendant, and the client on which the verdict rests.
    rests_on: list[tuple[StrictStr, StrictStr, StrictStr]]
    contested: list[_Pair]


class _Finding(Closed):
    check: StrictStr
    severity: Literal["info", "warning", "error"]
    message: StrictStr
    remedy: StrictStr
    value: Number | None = None
    threshold: Number | None = None
    client: StrictStr | None = None
    regime: StrictStr | None = None


class _Proposal(Closed):
    labels: list[StrictStr]
    expected_gain: Number
    chances: list[_Share]
    undetermined: _Count
    settles: list[_Pair]
    cannot: list[_Pair]
    expected: Annotated[Number, Field(ge=0)]
    rows: _Count | None
    reason: StrictStr


class _Groups(Closed):
    """Blocks and districts of a client, as settled by the order; labels by position."""

    client: StrictStr
    blocks: list[list[_Count]]
    block_covers: list[tuple[_Count, _Count]]
    districts: list[list[_Count]] | None


class ResultDocument(Document):
    """The fields of `result.json`; `document` reads the order and the proposal."""

    kind = "result"
    remedy = "Write it again with `jigsaw recover --out`."
    largest_file = 1 << 32

    format: Literal["jigsaw-crl/result"]
    version: Literal[1]
    written_by: str
    options: dict[str, Any]
    fragments: list[Any]
    refined: list[_Groups]
    order: _Order
    diagnostics: list[_Finding]
    provenance: dict[str, Any]
    proposal: _Proposal | None
