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
    # Positions of ancestor and descendant; absent in older results.
    disputed: list[tuple[_Count, _Count]] = Field(default_factory=list)


class _Order(Closed):
    """The order without its fragments; `document.order_from` compares them."""

    labels: list[StrictStr]
    mode: Literal["exact", "evidence", "paper"]
    verdicts: list[list[WholeNumber]]
    decoded: list[list[WholeNumber]]
    probabilities: list[list[Number]]
    sampled: StrictBool
    client_weights: dict[str, _Share]
    notes: list[StrictStr]
    seed: WholeNumber
    rate: _Share
    disagreement: StrictBool
    convergence: _Convergence | None
    # Absent in older results.
    smallest_effect: Annotated[Number, Field(gt=0)] | None = None
    # Ancestor, descendant, and the client on which the verdict rests.
    rests_on: list[tuple[StrictStr, StrictStr, StrictStr]] | None = None


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
    # Absent in older results.
    expected: Annotated[Number, Field(ge=0)] = 0.0
    rows: _Count | None = None
    reason: StrictStr = ""


class ResultDocument(Document):
    """The fields of `result.json`; `document` reads the order and the proposal."""

    kind = "result"
    remedy = "Write it again with `jigsaw recover --out`."
    largest_file = 1 << 32

    format: Literal["jigsaw-crl/result"]
    version: Literal[1, 2]
    written_by: str
    options: dict[str, Any]
    fragments: list[Any]
    order: _Order
    diagnostics: list[_Finding]
    provenance: dict[str, Any]
    # Absent in version 1.
    proposal: _Proposal | None = None
