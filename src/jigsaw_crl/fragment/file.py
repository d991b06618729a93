"""The fragment's file: a closed, versioned JSON document without the latent basis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, Field, StrictBool

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.documents import Closed, Document, Number, WholeNumber
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.labels import MOST_CHARACTERS, safe_text
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.fragment.fragment import Fragment, Method, Outcome, RankOne, Statements

# Fields that the file has as the type has them; the others name labels by their positions.
_AS_THEY_ARE = (
    *("client", "method", "labels", "n_samples", "outcome", "findings"),
    *("bayes", "soft", "hard", "shares", "rank_one"),
)


def fragment_document(fragment: Fragment) -> dict[str, Any]:
    """The fragment's file as plain JSON values; what there is nothing to say about is None."""
    number, order = {b: i for i, b in enumerate(fragment.blocks)}, fragment.block_order
    districts, said = fragment.districts, fragment.statements

    def numbers(labels: Iterable[str]) -> list[int]:
        return sorted(map(fragment.index, labels))

    parts = {
        "format": "jigsaw-crl/fragment",
        "version": 1,
        **{name: _plain(getattr(fragment, name)) for name in _AS_THEY_ARE},
        "blocks": [numbers(b) for b in fragment.blocks],
        "block_covers": sorted([number[a], number[d]] for a, d in order.covers()),
        "districts": None if districts is None else [numbers(d) for d in districts],
        "statements": None
        if said is None
        else {
            "ancestor": said.ancestor.tolist(),
            "one_of": [[numbers(c), fragment.index(d)] for c, d in said.one_of],
            "spouses": None if said.spouses is None else sorted(map(numbers, said.spouses)),
        },
    }
    return {name: parts[name] for name in FragmentDocument.model_fields}


def _plain(value: Any) -> Any:
    """A field of a fragment as plain JSON values: lists for arrays, None for NaN."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.ndarray | np.generic):
        entries = np.asarray(value).astype(object)
        return np.where(np.isnan(value), np.array(None), entries).tolist()
    return value


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


def _array(given: Any) -> FloatArray:
    """Nested lists as an array, with NaN for None; a `ValueError` if they are ragged."""
    return np.array(given, dtype=np.float64)


_Table = Annotated[list[list[Number | None]], AfterValidator(_array)]


class _SizesDocument(Closed):
    value: _Table
    error: _Table


_Sizes = Annotated[_SizesDocument, AfterValidator(lambda given: Sizes(**dict(given)))]


class _BayesDocument(Closed):
    scales: Annotated[
        tuple[Annotated[Number, Field(gt=0)], ...], Field(min_length=1, max_length=10)
    ]
    ancestor: Annotated[list[list[list[Number | None]]], AfterValidator(_array)]
    district: _Table
    lean: _Table
    single: tuple[StrictBool, ...]
    settled: Annotated[list[list[StrictBool]], AfterValidator(_array)]


_Bayes = Annotated[_BayesDocument, AfterValidator(lambda given: BayesFactors(**dict(given)))]


class _EffectsDocument(Closed):
    hard: tuple[StrictBool, ...]
    moved: tuple[WholeNumber, ...]
    total: _Sizes
    applied: _Sizes
    up: tuple[WholeNumber, ...]


_Effects = Annotated[_EffectsDocument, AfterValidator(lambda given: Effects(**dict(given)))]


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
    """The fields of a fragment's file. Labels and blocks are named by their positions.

    What is said of each field is shown to those who decide whether a fragment may leave a site.
    """

    kind = "fragment"
    remedy = "Write it again with `jigsaw fragment`, and send the file unaltered."

    format: Literal["jigsaw-crl/fragment"] = Field(description="the words jigsaw-crl/fragment")
    version: Literal[1] = Field(description="the version of this list")
    client: _Text = Field(description="the site's name")
    method: Method = Field(description="null-cone or paper")
    labels: list[_Text] = Field(
        description="the names of the p interventions", min_length=1, max_length=_MAX_LABELS
    )
    blocks: list[list[_Index]] = Field(description="which labels are in a block together")
    block_covers: list[tuple[_Index, _Index]] = Field(
        description="which block is directly above which"
    )
    districts: list[list[_Index]] | None = Field(description="which labels share a hidden cause")
    n_samples: Annotated[dict[_Text, _Count], Field(max_length=_MAX_LABELS + 1)] | None = Field(
        description="how many rows each regime has"
    )
    outcome: Outcome = Field(description="whether recovery went well, and what to do if not")
    findings: list[Finding] = Field(
        description="what was noticed about the data: a sentence and at most two numbers each"
    )
    bayes: _Bayes | None = Field(
        description="log Bayes factors of label pairs, p × p per hypothesis, rounded to a "
        "sixteenth; which labels moved one direction only"
    )
    soft: _Bayes | None = Field(
        description="with hard interventions: the same factors as if none were hard"
    )
    statements: _StatementsDocument | None = Field(
        description="from exact moments: yes, no or cannot say for label pairs, p × p"
    )
    hard: _Effects | None = Field(
        description="from hard interventions: which labels, and effects between labels in standard "
        "deviations with their errors, p × p"
    )
    shares: _Sizes | None = Field(
        description="how much of a label's change belongs to another label, with its error, p × p"
    )
    rank_one: RankOne | None = Field(
        description="what you say of labels that moved one direction only, if you say anything"
    )

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
        names, said = tuple(self.labels), self.statements
        given = {
            **{name: getattr(self, name) for name in _AS_THEY_ARE},
            **groups_of(self, names),
            "labels": names,
            "statements": None if said is None else said.statements(names),
            "findings": tuple(replace(f, client=self.client) for f in self.findings),
        }
        return Fragment(**given)


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
