"""The schema of `result.json`: a closed, versioned JSON document."""

from __future__ import annotations

from typing import Any, Literal

from jigsaw_crl.base.documents import Document

__all__ = ["ResultDocument"]


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
    order: dict[str, Any]
    diagnostics: list[dict[str, Any]]
    provenance: dict[str, Any]
    # Absent in version 1.
    proposal: dict[str, Any] | None = None
