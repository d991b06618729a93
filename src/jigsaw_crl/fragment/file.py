"""The fragment's file: a closed, versioned JSON document.

Nothing unknown is accepted, nothing that a fragment must not hold can be written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.fragment.fragment import BayesFactors, Fragment, Method, Outcome, Statements

__all__ = [
    "FragmentDocument",
    "fragment_document",
    "fragment_from_document",
    "fragment_json",
    "parse_fragment",
]

FloatArray = npt.NDArray[np.float64]

FORMAT = "jigsaw-crl/fragment"
VERSION = 1


def fragment_json(fragment: Fragment) -> str:
    """The fragment as it leaves the client: no basis, no moments, no rows."""
    document = fragment_document(fragment)
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def fragment_document(fragment: Fragment) -> dict[str, Any]:
    """The same as plain JSON values."""
    position, block_position = fragment._position, {b: i for i, b in enumerate(fragment.blocks)}

    def numbers(labels: Iterable[str]) -> list[int]:
        return sorted(position[x] for x in labels)

    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "client": fragment.client,
        "method": fragment.method,
        "labels": list(fragment.labels),
        "blocks": [numbers(b) for b in fragment.blocks],
        "block_covers": sorted(
            [block_position[a], block_position[d]] for a, d in fragment.block_order.covers()
        ),
        "districts": None
        if fragment.districts is None
        else [numbers(d) for d in fragment.districts],
        "n_samples": None if fragment.n_samples is None else dict(fragment.n_samples),
        "outcome": {
            "code": fragment.outcome.code,
            "message": fragment.outcome.message,
            "remedy": fragment.outcome.remedy,
        },
        "findings": [f.to_document() for f in fragment.findings],
        "bayes": None,
        "statements": None,
    }
    if fragment.bayes is not None:
        document["bayes"] = {
            "scales": list(fragment.bayes.scales),
            "ancestor": _without_nan(fragment.bayes.ancestor),
            "district": _without_nan(fragment.bayes.district),
            "lean": _without_nan(fragment.bayes.lean),
            "single": [i for i, alone in enumerate(fragment.bayes.single) if alone],
        }
    if fragment.statements is not None:
        spouses = fragment.statements.spouses
        document["statements"] = {
            "ancestor": fragment.statements.ancestor.tolist(),
            "one_of": [[numbers(c), position[d]] for c, d in fragment.statements.one_of],
            "spouses": None if spouses is None else sorted(numbers(s) for s in spouses),
        }
    return document


def parse_fragment(text: str | bytes, *, path: object | None = None) -> Fragment:
    """Read a fragment; everything in it is checked, and nothing unknown is accepted."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(
            "the fragment is not valid JSON", "Send the file again, unaltered.", path=path
        ) from None
    return fragment_from_document(document, path=path)


def fragment_from_document(document: object, *, path: object | None = None) -> Fragment:
    """A fragment from a parsed JSON document."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(
            "this is not a jigsaw-crl fragment",
            "Write one with `jigsaw fragment`.",
            path=path,
        )
    version = document.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        raise InputError(
            f"the fragment has format version {version!r}, this program reads {VERSION}",
            "Upgrade jigsaw-crl." if newer else "Write the fragment again.",
            path=path,
        )
    try:
        model = FragmentDocument.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "document"
        raise InputError(
            f"the fragment's field {place!r} is not valid: {first['msg']}",
            "Write the fragment again with `jigsaw fragment`.",
            client=str(document.get("client", ""))[:80] or None,
            path=path,
        ) from None
    try:
        return model.fragment()
    except (IndexError, InputError, TypeError, ValueError) as error:
        what = error.what if isinstance(error, InputError) else f"inconsistent ({error})"
        raise InputError(
            f"the fragment does not hold together: {what}",
            "Write the fragment again with `jigsaw fragment`.",
            client=model.client,
            path=path,
        ) from None


def _without_nan(array: FloatArray) -> Any:
    """Nested lists with None for nan, which JSON cannot hold."""
    if array.ndim > 1:
        return [_without_nan(row) for row in array]
    return [None if value != value else value for value in array.tolist()]


# -- the closed schema of the file ------------------------------------------------------------

_MAX_LABELS = 5_000
_Text = Annotated[str, Field(min_length=1, max_length=500)]
_Index = Annotated[int, Field(ge=0, lt=_MAX_LABELS, strict=True)]
# Counts stay exact as floats.
_Count = Annotated[int, Field(ge=1, le=2**53, strict=True)]
_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _OutcomeDocument(_Closed):
    code: str = Field(max_length=50)
    message: str = Field(max_length=5_000)
    remedy: str = Field(max_length=5_000)


class _FindingDocument(_Closed):
    check: str = Field(max_length=100)
    severity: Literal["info", "warning", "error"]
    message: str = Field(max_length=2_000)
    remedy: str = Field(max_length=2_000)
    value: _Number | None
    threshold: _Number | None
    client: str | None = Field(max_length=500)
    regime: str | None = Field(max_length=500)


class _BayesDocument(_Closed):
    scales: list[_Number] = Field(min_length=1, max_length=10)
    ancestor: list[list[list[_Number | None]]]
    district: list[list[_Number | None]]
    lean: list[list[_Number | None]] = []
    single: list[_Index] = []


class _StatementsDocument(_Closed):
    ancestor: list[list[Literal[-1, 0, 1]]]
    one_of: list[tuple[list[_Index], _Index]]
    spouses: list[tuple[_Index, _Index]] | None


class FragmentDocument(_Closed):
    format: Literal["jigsaw-crl/fragment"]
    version: Literal[1]
    client: _Text
    method: Method
    labels: list[_Text] = Field(min_length=1, max_length=_MAX_LABELS)
    blocks: list[list[_Index]]
    block_covers: list[tuple[_Index, _Index]]
    districts: list[list[_Index]] | None
    n_samples: dict[_Text, _Count] | None
    outcome: _OutcomeDocument
    findings: list[_FindingDocument] = Field(max_length=100_000)
    bayes: _BayesDocument | None
    statements: _StatementsDocument | None

    def fragment(self) -> Fragment:
        names = tuple(self.labels)

        def sets(groups: list[list[int]]) -> tuple[frozenset[str], ...]:
            return tuple(frozenset(names[i] for i in group) for group in groups)

        blocks = sets(self.blocks)
        bayes = None
        if self.bayes is not None:
            bayes = BayesFactors(
                tuple(self.bayes.scales),
                np.array(self.bayes.ancestor, dtype=np.float64),
                np.array(self.bayes.district, dtype=np.float64),
                np.array(self.bayes.lean, dtype=np.float64),
                tuple(i in self.bayes.single for i in range(len(names))),
            )
        statements = None
        if self.statements is not None:
            s = self.statements
            statements = Statements(
                np.array(s.ancestor, dtype=np.int8),
                tuple((frozenset(names[i] for i in c), names[d]) for c, d in s.one_of),
                None
                if s.spouses is None
                else frozenset(frozenset((names[i], names[j])) for i, j in s.spouses),
            )
        return Fragment(
            client=self.client,
            method=self.method,
            labels=names,
            blocks=blocks,
            block_order=PartialOrder.from_pairs(
                blocks, [(blocks[a], blocks[d]) for a, d in self.block_covers]
            ),
            districts=None if self.districts is None else sets(self.districts),
            bayes=bayes,
            statements=statements,
            n_samples=self.n_samples,
            outcome=Outcome(self.outcome.code, self.outcome.message, self.outcome.remedy),
            findings=tuple(Finding(**f.model_dump()) for f in self.findings),
        )
