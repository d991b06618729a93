"""The fragment's file: a closed, versioned JSON document without the latent basis.

A site's own file holds it beside the names of the features, the mean of the control rows and the
directions Q̂, so that latents can be had after a restart. No command takes it for a fragment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.documents import Closed, Document, Number, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import MOST_CHARACTERS, safe_text
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.fragment.fragment import (
    BayesFactors,
    Fragment,
    Method,
    Outcome,
    RankOne,
    Statements,
)

__all__ = [
    "FINDINGS_PER_LABEL",
    "FragmentDocument",
    "GroupsDocument",
    "PrivateDocument",
    "fragment_document",
    "groups_of",
]


def fragment_document(fragment: Fragment) -> dict[str, Any]:
    """The fragment's file as plain JSON values."""
    position, block_position = fragment._position, {b: i for i, b in enumerate(fragment.blocks)}

    def numbers(labels: Iterable[str]) -> list[int]:
        return sorted(position[x] for x in labels)

    document: dict[str, Any] = {
        "format": "jigsaw-crl/fragment",
        "version": 1,
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
        "outcome": asdict(fragment.outcome),
        "findings": [f.to_document() for f in fragment.findings],
        "bayes": None,
        "statements": None,
    }
    for name in ("bayes", "soft"):
        if getattr(fragment, name) is not None:
            document[name] = _factors(getattr(fragment, name))
    if fragment.statements is not None:
        spouses = fragment.statements.spouses
        document["statements"] = {
            "ancestor": fragment.statements.ancestor.tolist(),
            "one_of": [[numbers(c), position[d]] for c, d in fragment.statements.one_of],
            "spouses": None if spouses is None else sorted(numbers(s) for s in spouses),
        }
    if fragment.hard is not None:
        document["hard"] = {
            "labels": [i for i, hard in enumerate(fragment.hard.hard) if hard],
            "moved": list(fragment.hard.moved),
            **({"up": list(fragment.hard.up)} if fragment.hard.up else {}),
            "total": _sizes(fragment.hard.total),
            "applied": _sizes(fragment.hard.applied),
        }
    if fragment.shares is not None:
        document["shares"] = _sizes(fragment.shares)
    if fragment.rank_one is not None:
        document["rank_one"] = fragment.rank_one
    return document


def _factors(bayes: BayesFactors) -> dict[str, Any]:
    return {
        "scales": list(bayes.scales),
        "ancestor": _without_nan(bayes.ancestor),
        "district": _without_nan(bayes.district),
        "lean": _without_nan(bayes.lean),
        "single": [i for i, alone in enumerate(bayes.single) if alone],
        "settled": np.argwhere(bayes.settled).tolist(),
    }


def _sizes(sizes: Sizes) -> dict[str, Any]:
    return {"value": _without_nan(sizes.value), "error": _without_nan(sizes.error)}


def _without_nan(array: FloatArray) -> Any:
    """Nested lists with None for NaN, which JSON does not have."""
    values = array.astype(object)
    values[np.isnan(array)] = None
    return values.tolist()


# -- the schema of the file -------------------------------------------------------------------

_MAX_LABELS = 5_000
# Recovery gives a few findings for each regime; the least is for clients with few labels.
FINDINGS_PER_LABEL, _LEAST_FINDINGS = 8, 200
# Of an outcome's message, which names labels; findings are shorter.
_LONGEST_TEXT = 5_000
_Text = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
_Index = Annotated[WholeNumber, Field(ge=0, lt=_MAX_LABELS)]
# Up to 2^53 an integer is exact as a float.
_Count = Annotated[WholeNumber, Field(ge=1, le=2**53)]


class _BayesDocument(Closed):
    scales: list[Annotated[Number, Field(gt=0)]] = Field(min_length=1, max_length=10)
    ancestor: list[list[list[Number | None]]]
    district: list[list[Number | None]]
    # Absent in files from before these two were written.
    lean: list[list[Number | None]] = Field(default=[])
    single: list[_Index] = Field(default=[])
    settled: list[tuple[_Index, _Index]] = Field(default=[])


class _SizesDocument(Closed):
    value: list[list[Number | None]]
    error: list[list[Number | None]]


class _HardDocument(Closed):
    labels: list[_Index]
    moved: list[Annotated[WholeNumber, Field(ge=0, le=1)]] = Field(max_length=_MAX_LABELS)
    total: _SizesDocument
    applied: _SizesDocument
    # Absent where no sensor is named.
    up: list[Annotated[WholeNumber, Field(ge=-1, le=1)]] = Field(default=[], max_length=_MAX_LABELS)


class _StatementsDocument(Closed):
    ancestor: list[list[Annotated[WholeNumber, Field(ge=-1, le=1)]]]
    one_of: list[tuple[list[_Index], _Index]]
    spouses: list[tuple[_Index, _Index]] | None


class GroupsDocument(Closed):
    """Blocks and districts of a client. Labels and blocks are named by their positions."""

    client: _Text
    blocks: list[list[_Index]]
    block_covers: list[tuple[_Index, _Index]]
    districts: list[list[_Index]] | None


class FragmentDocument(Document):
    """The fields of a fragment's file. Labels and blocks are named by their positions."""

    kind = "fragment"
    remedy = "Write it again with `jigsaw fragment`, and send the file unaltered."

    format: Literal["jigsaw-crl/fragment"]
    version: Literal[1]
    client: _Text
    method: Method
    labels: list[_Text] = Field(min_length=1, max_length=_MAX_LABELS)
    blocks: list[list[_Index]]
    block_covers: list[tuple[_Index, _Index]]
    districts: list[list[_Index]] | None
    n_samples: Annotated[dict[_Text, _Count], Field(max_length=_MAX_LABELS + 1)] | None
    outcome: Outcome
    findings: list[Finding]
    bayes: _BayesDocument | None
    soft: _BayesDocument | None = None
    statements: _StatementsDocument | None
    # Absent in files from before these two were written, and where there is nothing to say.
    hard: _HardDocument | None = None
    shares: _SizesDocument | None = None
    rank_one: RankOne | None = None

    def fragment(self, path: object | None = None) -> Fragment:
        """The fragment; an `InputError` that names `path` if the fields contradict each other."""
        try:
            return self._fragment()
        except (IndexError, TypeError, ValueError) as error:
            what = error.what if isinstance(error, InputError) else str(error)
            if isinstance(error, IndexError):
                what = "it refers to a label or block that it does not list"
            raise InputError(
                f"the fragment does not hold together: {what}",
                self.remedy,
                client=self.client,
                path=path,
            ) from None

    def _check_findings(self) -> None:
        """Raise an error for findings about others, too many of them, or hidden characters."""
        regimes = max(len(self.labels), len(self.n_samples or ()))
        most = max(_LEAST_FINDINGS, FINDINGS_PER_LABEL * (regimes + 2))
        if len(self.findings) > most:
            raise ValueError(f"it has {len(self.findings)} findings where at most {most} can arise")
        for text in (
            *(self.outcome.code, self.outcome.message, self.outcome.remedy),
            *(t for f in self.findings for t in (f.check, f.message, f.remedy, f.regime or "")),
        ):
            if len(text) > _LONGEST_TEXT:
                raise ValueError("its outcome or a finding holds a text that is too long")
            if safe_text(text) != text:
                raise ValueError("its outcome or a finding holds control characters")
        for finding in self.findings:
            if finding.client not in (None, self.client):
                raise ValueError(
                    f"a finding speaks of {str(finding.client)[:60]!r}, which is not its own client"
                )

    def _fragment(self) -> Fragment:
        self._check_findings()
        names = tuple(self.labels)

        def table(given: Any) -> FloatArray:
            return np.array(given, dtype=np.float64)

        def sizes(given: _SizesDocument) -> Sizes:
            return Sizes(table(given.value), table(given.error))

        def factors(given: _BayesDocument | None) -> BayesFactors | None:
            if given is None:
                return None
            (single,) = _sets(names, [given.single])
            settled = np.zeros((len(names), len(names)), dtype=bool)
            for a, d in given.settled:
                settled[a, d] = True
            return BayesFactors(
                tuple(given.scales),
                table(given.ancestor),
                table(given.district),
                table(given.lean),
                tuple(x in single for x in names),
                settled,
            )

        hard = None
        if self.hard is not None:
            claimed = set(self.hard.labels)
            hard = Effects(
                tuple(i in claimed for i in range(len(names))),
                tuple(self.hard.moved),
                sizes(self.hard.total),
                sizes(self.hard.applied),
                tuple(self.hard.up),
            )
        statements = None
        if self.statements is not None:
            s = self.statements
            candidates = _sets(names, [c for c, _ in s.one_of])
            descendants = (names[d] for _, d in s.one_of)
            statements = Statements(
                np.array(s.ancestor, dtype=np.int8),
                tuple(zip(candidates, descendants, strict=True)),
                None if s.spouses is None else frozenset(_sets(names, s.spouses)),
            )
        return Fragment(
            client=self.client,
            method=self.method,
            labels=names,
            **groups_of(self, names),
            bayes=factors(self.bayes),
            soft=factors(self.soft),
            statements=statements,
            n_samples=self.n_samples,
            outcome=self.outcome,
            findings=tuple(replace(f, client=self.client) for f in self.findings),
            hard=hard,
            shares=None if self.shares is None else sizes(self.shares),
            rank_one=self.rank_one,
        )


class PrivateDocument(Document):
    """The fields of a site's own file: the fragment, and what never leaves the site."""

    kind = "private fragment"
    remedy = "Recover the fragment at the site again, and save it with `save_private`."
    # 5,000 directions of 10,000 features, at about 20 characters each.
    largest_file = 1 << 30

    format: Literal["jigsaw-crl/private-fragment"]
    version: Literal[1]
    fragment: FragmentDocument
    features: list[str] | None
    centre: list[Number] | None
    basis: list[list[Number]] = Field(min_length=1)

    def whole(self, path: object | None = None) -> Fragment:
        """The fragment with its basis; an `InputError` that names `path` for a faulty one."""
        width = len(self.basis[0])
        beside = (*self.basis, self.centre, self.features)
        if width == 0 or any(part is not None and len(part) != width for part in beside):
            raise InputError("basis, centre and features differ in length", self.remedy, path=path)
        try:
            return replace(
                self.fragment.fragment(path),
                basis=np.array(self.basis, dtype=np.float64),
                features=None if self.features is None else tuple(self.features),
                centre=None if self.centre is None else np.array(self.centre),
            )
        except InputError as error:
            raise error.located(path=path) from None


def groups_of(given: GroupsDocument | FragmentDocument, labels: Sequence[str]) -> dict[str, Any]:
    """The fields `blocks`, `block_order` and `districts` of a fragment with these labels."""
    blocks = _sets(labels, given.blocks)
    covers = [(blocks[a], blocks[d]) for a, d in given.block_covers]
    return {
        "blocks": blocks,
        "block_order": PartialOrder.from_pairs(blocks, covers),
        "districts": None if given.districts is None else _sets(labels, given.districts),
    }


def _sets(labels: Sequence[str], groups: Iterable[Iterable[int]]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(labels[i] for i in group) for group in groups)
