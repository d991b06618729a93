"""The fragment's file: a closed, versioned JSON document without the latent basis."""

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
    "fragment_document",
    "groups_of",
]


def fragment_document(fragment: Fragment) -> dict[str, Any]:
    """The fragment's file as plain JSON values; what there is nothing to say about is None."""
    number, order = {b: i for i, b in enumerate(fragment.blocks)}, fragment.block_order
    districts, said, hard = fragment.districts, fragment.statements, fragment.hard

    def numbers(labels: Iterable[str]) -> list[int]:
        return sorted(map(fragment.index, labels))

    return {
        "format": "jigsaw-crl/fragment",
        "version": 1,
        "client": fragment.client,
        "method": fragment.method,
        "labels": list(fragment.labels),
        "blocks": [numbers(b) for b in fragment.blocks],
        "block_covers": sorted([number[a], number[d]] for a, d in order.covers()),
        "districts": None if districts is None else [numbers(d) for d in districts],
        "n_samples": None if fragment.n_samples is None else dict(fragment.n_samples),
        "outcome": asdict(fragment.outcome),
        "findings": [f.to_document() for f in fragment.findings],
        "bayes": _factors(fragment.bayes),
        "soft": _factors(fragment.soft),
        "statements": None
        if said is None
        else {
            "ancestor": said.ancestor.tolist(),
            "one_of": [[numbers(c), fragment.index(d)] for c, d in said.one_of],
            "spouses": None if said.spouses is None else sorted(map(numbers, said.spouses)),
        },
        "hard": None
        if hard is None
        else {
            "labels": np.flatnonzero(hard.hard).tolist(),
            "moved": list(hard.moved),
            "up": list(hard.up),
            "total": _sizes(hard.total),
            "applied": _sizes(hard.applied),
        },
        "shares": _sizes(fragment.shares),
        "rank_one": fragment.rank_one,
    }


def _factors(bayes: BayesFactors | None) -> dict[str, Any] | None:
    """Bayes factors as plain JSON values."""
    if bayes is None:
        return None
    tables = {name: _without_nan(getattr(bayes, name)) for name in ("ancestor", "district", "lean")}
    return {
        "scales": list(bayes.scales),
        **tables,
        "single": np.flatnonzero(bayes.single).tolist(),
        "settled": np.argwhere(bayes.settled).tolist(),
    }


def _sizes(sizes: Sizes | None) -> dict[str, Any] | None:
    """Estimates and errors as plain JSON values."""
    if sizes is None:
        return None
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
    lean: list[list[Number | None]]
    single: list[_Index]
    settled: list[tuple[_Index, _Index]]

    def factors(self, p: int) -> BayesFactors:
        single, settled = np.zeros(p, dtype=bool), np.zeros((p, p), dtype=bool)
        single[self.single] = True
        for pair in self.settled:
            settled[pair] = True
        return BayesFactors(
            tuple(self.scales),
            _table(self.ancestor),
            _table(self.district),
            _table(self.lean),
            tuple(single.tolist()),
            settled,
        )


class _SizesDocument(Closed):
    value: list[list[Number | None]]
    error: list[list[Number | None]]

    def sizes(self) -> Sizes:
        return Sizes(_table(self.value), _table(self.error))


class _HardDocument(Closed):
    labels: list[_Index]
    moved: list[Annotated[WholeNumber, Field(ge=0, le=1)]] = Field(max_length=_MAX_LABELS)
    up: list[Annotated[WholeNumber, Field(ge=-1, le=1)]] = Field(max_length=_MAX_LABELS)
    total: _SizesDocument
    applied: _SizesDocument

    def effects(self, p: int) -> Effects:
        hard = np.zeros(p, dtype=bool)
        hard[self.labels] = True
        sizes = self.total.sizes(), self.applied.sizes()
        return Effects(tuple(hard.tolist()), tuple(self.moved), *sizes, tuple(self.up))


class _StatementsDocument(Closed):
    ancestor: list[list[Annotated[WholeNumber, Field(ge=-1, le=1)]]]
    one_of: list[tuple[list[_Index], _Index]]
    spouses: list[tuple[_Index, _Index]] | None

    def statements(self, names: Sequence[str]) -> Statements:
        candidates = _sets(names, [c for c, _ in self.one_of])
        one_of = zip(candidates, (names[d] for _, d in self.one_of), strict=True)
        spouses = None if self.spouses is None else frozenset(_sets(names, self.spouses))
        return Statements(np.array(self.ancestor, dtype=np.int8), tuple(one_of), spouses)


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
    soft: _BayesDocument | None
    statements: _StatementsDocument | None
    hard: _HardDocument | None
    shares: _SizesDocument | None
    rank_one: RankOne | None

    def fragment(self, path: object | None = None) -> Fragment:
        """The fragment; an `InputError` that names `path` if the fields contradict each other."""
        try:
            return self._fragment()
        except (IndexError, TypeError, ValueError) as error:
            what = error.what if isinstance(error, InputError) else str(error)
            if isinstance(error, IndexError):
                what = "it refers to a label or block that it does not list"
            what = f"the fragment does not hold together: {what}"
            raise InputError(what, self.remedy, client=self.client, path=path) from None

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
        for other in {f.client or self.client for f in self.findings} - {self.client}:
            raise ValueError(f"a finding speaks of {other[:60]!r}, which is not its own client")

    def _fragment(self) -> Fragment:
        self._check_findings()
        names, p = tuple(self.labels), len(self.labels)
        return Fragment(
            client=self.client,
            method=self.method,
            labels=names,
            **groups_of(self, names),
            bayes=None if self.bayes is None else self.bayes.factors(p),
            soft=None if self.soft is None else self.soft.factors(p),
            statements=None if self.statements is None else self.statements.statements(names),
            n_samples=self.n_samples,
            outcome=self.outcome,
            findings=tuple(replace(f, client=self.client) for f in self.findings),
            hard=None if self.hard is None else self.hard.effects(p),
            shares=None if self.shares is None else self.shares.sizes(),
            rank_one=self.rank_one,
        )


def groups_of(given: GroupsDocument | FragmentDocument, labels: Sequence[str]) -> dict[str, Any]:
    """The fields `blocks`, `block_order` and `districts` of a fragment with these labels."""
    blocks = _sets(labels, given.blocks)
    covers = [(blocks[a], blocks[d]) for a, d in given.block_covers]
    return {
        "blocks": blocks,
        "block_order": PartialOrder.from_pairs(blocks, covers),
        "districts": None if given.districts is None else _sets(labels, given.districts),
    }


def _table(given: Any) -> FloatArray:
    """Nested lists as an array, with NaN for None."""
    return np.array(given, dtype=np.float64)


def _sets(labels: Sequence[str], groups: Iterable[Iterable[int]]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(labels[i] for i in group) for group in groups)
