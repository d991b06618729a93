"""The fragment: all that a client says, and the only thing that leaves it.

A fragment speaks about ordered pairs of labels in one of three ways:

- from samples, as log Bayes factors (`bayes`): for each effect scale τ, "row is an ancestor of
  column" against "unrelated", and "same district" against "unrelated";
- from exact moments, as certain statements (`statements`): yes, no, or cannot say, with "one of
  these is an ancestor of d" where only a set can be named;
- from `method="paper"`, by its blocks and block order alone.

The latent basis Q̂ stays at the client: `to_json` never writes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jigsaw_crl.errors import InputError
from jigsaw_crl.findings import Finding
from jigsaw_crl.order import PartialOrder

__all__ = ["BayesFactors", "Fragment", "Outcome", "Statements"]

FloatArray = npt.NDArray[np.float64]
Method = Literal["null-cone", "paper"]

FORMAT = "jigsaw-crl/fragment"
VERSION = 1
# Evidence is kept to four decimals: far below any decision's margin, it makes a fragment read from
# a file equal to the one in memory, and it says no more about the data than it must.
DECIMALS = 4

YES, NO, CANNOT_SAY = 1, 0, -1
# Prior log-odds against each relation: most pairs are unrelated. Inside a district nothing is known
# about ancestry but that prior: either direction against neither.
PAIR_COST = 1.0
IN_DISTRICT = 1.0 / (2.0 + math.exp(PAIR_COST))


@dataclass(frozen=True)
class Outcome:
    """What happened during recovery, and what to do when it is not `ok`.

    Parameters
    ----------
    code : str
        ``"ok"``, or the name of what happened (``"budget"``, ``"partial"``, ``"not-identified"``).
    message : str
        One or more sentences for the user.
    remedy : str
        What to do; empty when ok.

    Examples
    --------
    >>> from jigsaw_crl import Outcome
    >>> Outcome().ok
    True
    >>> print(Outcome("partial", "Nothing is said about pump.", "See the findings."))
    partial: Nothing is said about pump. See the findings.
    """

    code: str = "ok"
    message: str = "recovered"
    remedy: str = ""

    @property
    def ok(self) -> bool:
        return self.code == "ok"

    def __str__(self) -> str:
        return self.message if self.ok else f"{self.code}: {self.message} {self.remedy}".strip()


@dataclass(frozen=True, eq=False)
class BayesFactors:
    """Log Bayes factors of one client's pairs (nan where the client cannot say).

    Parameters
    ----------
    scales : tuple of float
        The effect scales τ.
    ancestor : array, shape (n_scales, p, p)
        `ancestor[s, a, d]`: log Bayes factor of "a is an ancestor of d, with an effect of scale
        τ_s" against "unrelated".
    district : array, shape (p, p)
        Log Bayes factor of "same district" against "unrelated"; symmetric.
    """

    scales: tuple[float, ...]
    ancestor: FloatArray
    district: FloatArray

    def __post_init__(self) -> None:
        for name in ("ancestor", "district"):
            value = np.round(np.array(getattr(self, name), dtype=np.float64), DECIMALS)
            value.flags.writeable = False
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Statements:
    """Certain statements of a client that knows its exact moments.

    Parameters
    ----------
    ancestor : array of int8, shape (p, p)
        1 yes, 0 no, -1 cannot say: is the row label an ancestor of the column label?
    one_of : tuple of (frozenset of str, str)
        `(candidates, descendant)`: at least one candidate is an ancestor of the descendant.
    spouses : frozenset of frozenset of str, or None
        Pairs joined by a bidirected edge; None where they are not identified.
    """

    ancestor: npt.NDArray[np.int8]
    one_of: tuple[tuple[frozenset[str], str], ...] = ()
    spouses: frozenset[frozenset[str]] | None = None

    def __post_init__(self) -> None:
        value = np.array(self.ancestor, dtype=np.int8)
        value.flags.writeable = False
        object.__setattr__(self, "ancestor", value)


@dataclass(frozen=True, eq=False)
class Fragment:
    """What one client recovered.

    Parameters
    ----------
    client : str
    method : {"null-cone", "paper"}
    labels : tuple of str
        Intervention labels; rows and columns of every array follow this order.
    blocks : tuple of frozenset of str
    block_order : PartialOrder
        On the blocks, transitively closed.
    districts : tuple of frozenset of str, or None
        None from ``method="paper"``, which does not know them.
    bayes : BayesFactors or None
    statements : Statements or None
    n_samples : mapping of str to int, or None
        Rows per regime; None for exact moments.
    outcome : Outcome
    findings : tuple of Finding
    basis : array, shape (p, n_features), or None
        Q̂, rows in the order of `labels`. Never leaves the client.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> world = jc.simulate.setting("A", 0)
    >>> fragment = jc.recover_fragment(world.client(0, n_samples=20_000))
    >>> fragment.evidence.shape, fragment.basis.shape
    ((4, 4), (4, 8))
    >>> shared = jc.Fragment.from_json(fragment.to_json())
    >>> shared.blocks == fragment.blocks, shared.basis is None
    (True, True)
    """

    client: str
    method: Method
    labels: tuple[str, ...]
    blocks: tuple[frozenset[str], ...]
    block_order: PartialOrder[frozenset[str]]
    districts: tuple[frozenset[str], ...] | None = None
    bayes: BayesFactors | None = None
    statements: Statements | None = None
    n_samples: Mapping[str, int] | None = None
    outcome: Outcome = field(default_factory=Outcome)
    findings: tuple[Finding, ...] = ()
    basis: FloatArray | None = None

    def __post_init__(self) -> None:
        _check(self)
        if self.basis is not None:
            basis = np.array(self.basis, dtype=np.float64)
            basis.flags.writeable = False
            object.__setattr__(self, "basis", basis)
        if self.n_samples is not None:
            object.__setattr__(self, "n_samples", dict(self.n_samples))

    # -- what it says ---------------------------------------------------------------------------

    @cached_property
    def _position(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def index(self, label: str) -> int:
        try:
            return self._position[label]
        except KeyError:
            raise InputError(
                f"this client has no label {label!r}",
                f"It knows {', '.join(self.labels[:8])}{' …' if len(self.labels) > 8 else ''}.",
                client=self.client,
            ) from None

    def block_of(self, label: str) -> frozenset[str]:
        self.index(label)
        return next(b for b in self.blocks if label in b)

    def is_block_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Is the block of `ancestor` a (strict) ancestor of the block of `descendant`?"""
        return self.block_order.is_ancestor(self.block_of(ancestor), self.block_of(descendant))

    @cached_property
    def evidence(self) -> FloatArray:
        """Log-odds that the row label is an ancestor of the column label, shape (p, p).

        Each relation (either direction, same district) starts `PAIR_COST` below "unrelated",
        effect scales are averaged, and a district leaves ancestry at its prior; nan where the
        client cannot say. Exact statements are ±inf. This is a summary for people: assembly works
        with `bayes` and `statements`.
        """
        p = len(self.labels)
        out = np.full((p, p), np.nan)
        if self.statements is not None:
            out[self.statements.ancestor == YES] = np.inf
            out[self.statements.ancestor == NO] = -np.inf
        elif self.bayes is not None:
            scales = np.log(len(self.bayes.scales))
            inside = self.bayes.district - PAIR_COST
            with np.errstate(invalid="ignore"):  # nan says "cannot say", and stays nan
                yes = np.logaddexp.reduce(self.bayes.ancestor, axis=0) - scales - PAIR_COST
                for_it = np.logaddexp(yes, inside + np.log(IN_DISTRICT))
                against = np.logaddexp(np.logaddexp(0.0, yes.T), inside + np.log1p(-IN_DISTRICT))
                out = for_it - against
            out = np.round(out, DECIMALS)
        np.fill_diagonal(out, np.nan)
        out.flags.writeable = False
        return out

    def transform(self, rows: npt.ArrayLike) -> FloatArray:
        """Ẑ = X Q̂ᵀ (Corollary 1 of the paper), shape (n_rows, p)."""
        if self.basis is None:
            raise InputError(
                "the latent basis is not part of this fragment",
                "The basis stays at the client: recover the fragment there to transform rows.",
                client=self.client,
            )
        x = np.asarray(rows, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != self.basis.shape[1]:
            raise InputError(
                f"rows of shape {x.shape} where {self.basis.shape[1]} features are expected",
                "Pass the columns the client was built from, in the same order.",
                client=self.client,
            )
        return np.asarray(x @ self.basis.T, dtype=np.float64)

    def without_basis(self) -> Fragment:
        return replace(self, basis=None)

    def _repr_html_(self) -> str:
        from jigsaw_crl.report.notebook import fragment_html

        return fragment_html(self)

    def __repr__(self) -> str:
        return (
            f"Fragment({self.client!r}, {self.method}: {len(self.labels)} labels in "
            f"{len(self.blocks)} blocks, {self.outcome.code})"
        )

    # -- the file -------------------------------------------------------------------------------

    def to_json(self) -> str:
        """The fragment as it leaves the client: no basis, no moments, no rows."""
        position, block_position = self._position, {b: i for i, b in enumerate(self.blocks)}

        def numbers(labels: Iterable[str]) -> list[int]:
            return sorted(position[x] for x in labels)

        document: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "client": self.client,
            "method": self.method,
            "labels": list(self.labels),
            "blocks": [numbers(b) for b in self.blocks],
            "block_covers": sorted(
                [block_position[a], block_position[d]] for a, d in self.block_order.covers()
            ),
            "districts": None if self.districts is None else [numbers(d) for d in self.districts],
            "n_samples": None if self.n_samples is None else dict(self.n_samples),
            "outcome": {
                "code": self.outcome.code,
                "message": self.outcome.message,
                "remedy": self.outcome.remedy,
            },
            "findings": [
                {k: getattr(f, k) for k in Finding.__dataclass_fields__} for f in self.findings
            ],
            "bayes": None,
            "statements": None,
        }
        if self.bayes is not None:
            document["bayes"] = {
                "scales": list(self.bayes.scales),
                "ancestor": _without_nan(self.bayes.ancestor),
                "district": _without_nan(self.bayes.district),
            }
        if self.statements is not None:
            spouses = self.statements.spouses
            document["statements"] = {
                "ancestor": self.statements.ancestor.tolist(),
                "one_of": [[numbers(c), position[d]] for c, d in self.statements.one_of],
                "spouses": None if spouses is None else sorted(numbers(s) for s in spouses),
            }
        return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | bytes, *, path: object | None = None) -> Fragment:
        """Read a fragment; everything in it is checked, and nothing unknown is accepted."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(
                "the fragment is not valid JSON", "Send the file again, unaltered.", path=path
            ) from None
        return cls.from_document(document, path=path)

    @classmethod
    def from_document(cls, document: object, *, path: object | None = None) -> Fragment:
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
            model = _Document.model_validate(document)
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


def _is_partition(groups: tuple[frozenset[str], ...], labels: tuple[str, ...]) -> bool:
    return all(groups) and sorted(x for group in groups for x in group) == sorted(labels)


def _check(fragment: Fragment) -> None:
    labels = fragment.labels
    p = len(labels)

    def fail(what: str) -> InputError:
        return InputError(
            what, "Recover the fragment again from the client's data.", client=fragment.client
        )

    if p == 0 or len(set(labels)) != p or any(not x.strip() for x in labels):
        raise fail("labels are missing, empty or repeated")
    if not _is_partition(fragment.blocks, labels):
        raise fail("the blocks are not a partition of the labels")
    if set(fragment.block_order.elements) != set(fragment.blocks):
        raise fail("the block order is not an order of the blocks")
    if fragment.districts is not None:
        if not _is_partition(fragment.districts, labels):
            raise fail("the districts are not a partition of the labels")
        if not all(any(d <= b for b in fragment.blocks) for d in fragment.districts):
            raise fail("a district is spread over several blocks")
    if fragment.bayes is not None:
        b = fragment.bayes
        if b.ancestor.shape != (len(b.scales), p, p) or b.district.shape != (p, p):
            raise fail("the evidence has the wrong shape")
        if np.isinf(b.ancestor).any() or np.isinf(b.district).any():
            raise fail("the evidence is not finite")
        if not np.array_equal(b.district, b.district.T, equal_nan=True):
            raise fail("the evidence for districts is not symmetric")
    if fragment.statements is not None:
        s = fragment.statements
        if s.ancestor.shape != (p, p) or not np.isin(s.ancestor, (YES, NO, CANNOT_SAY)).all():
            raise fail("the statements have the wrong shape or values")
        known = set(labels)
        if not all(c and c < known and d in known - c for c, d in s.one_of):
            raise fail("a statement names a label that the client does not have")
        if not all(len(pair) == 2 and pair <= known for pair in s.spouses or ()):
            raise fail("a spouse is not another label of the client")
    if fragment.basis is not None and (fragment.basis.ndim != 2 or fragment.basis.shape[0] != p):
        raise fail("the basis needs one row per label")


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


class _StatementsDocument(_Closed):
    ancestor: list[list[Literal[-1, 0, 1]]]
    one_of: list[tuple[list[_Index], _Index]]
    spouses: list[tuple[_Index, _Index]] | None


class _Document(_Closed):
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
