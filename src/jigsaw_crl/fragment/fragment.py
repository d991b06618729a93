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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import CLOSED, Finding
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.base.labels import label_fault, label_key
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.fragment.latents import Loadings, latents_of

if TYPE_CHECKING:
    import pandas as pd

Method = Literal["null-cone", "paper"]
RankOne = Literal["no-ancestor", "unsure"]

YES, NO, CANNOT_SAY = 1, 0, -1


@dataclass(frozen=True)
class Outcome:
    """What happened during recovery, and what to do when it is not `ok`.

    The code is ``"ok"``, or the name of what happened (``"budget"``, ``"partial"``,
    ``"not-identified"``); the remedy is empty when ok.

    Examples
    --------
    >>> from jigsaw_crl import Outcome
    >>> Outcome().ok
    True
    >>> print(Outcome("partial", "Nothing is said about pump.", "See the findings."))
    partial: Nothing is said about pump. See the findings.
    """

    __pydantic_config__: ClassVar = CLOSED

    code: str = "ok"
    message: str = "recovered"
    remedy: str = ""

    @property
    def ok(self) -> bool:
        return self.code == "ok"

    def __str__(self) -> str:
        return self.message if self.ok else f"{self.code}: {self.message} {self.remedy}".strip()


@dataclass(frozen=True, eq=False)
class Statements(ReadOnlyArrays):
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
        self._copy_read_only("ancestor", dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Fragment(ReadOnlyArrays):
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
    soft : BayesFactors or None
        The same as if no intervention were hard; None where none is said to be. It is used where
        the sites together contradict the claim.
    statements : Statements or None
    n_samples : mapping of str to int, or None
        Rows per regime; None for exact moments.
    outcome : Outcome
    findings : tuple of Finding
    basis : array, shape (p, n_features), or None
        Q̂, rows in the order of `labels`. Never leaves the client. The row of a hard label reads the
        latent itself, with standard deviation 1 in the control, growing as its intervention moved.
    hard : Effects or None
        What hard interventions reveal; None without any.
    shares : Sizes or None
        For every pair, the share of what changed in the column's equation that belongs to the row.
        It bounds the effect that a "no" leaves open. None from exact statements and Algorithm 1.
    rank_one : {"no-ancestor", "unsure"}, or None
        What the user says of labels whose intervention moved a single direction (see
        `recover_fragment`).
    features : tuple of str, or None
        Names of the basis's columns; `transform` checks data frames against them.
    centre : array, shape (n_features,), or None
        Mean of the control rows, which `transform` subtracts.
    carried : Loadings or None
        Which sensors carry which latent: see `loadings`. These three never leave the client.

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
    soft: BayesFactors | None = None
    statements: Statements | None = None
    n_samples: Mapping[str, int] | None = None
    outcome: Outcome = field(default_factory=Outcome)
    findings: tuple[Finding, ...] = ()
    basis: FloatArray | None = None
    hard: Effects | None = None
    shares: Sizes | None = None
    rank_one: RankOne | None = None
    features: tuple[str, ...] | None = None
    centre: FloatArray | None = None
    carried: Loadings | None = None

    def __post_init__(self) -> None:
        for fault in _faults(self):
            remedy = "Recover the fragment again from the client's data."
            raise InputError(fault, remedy, client=self.client)
        self._copy_read_only("basis", "centre")
        if self.n_samples is not None:
            object.__setattr__(self, "n_samples", dict(self.n_samples))

    # -- what it says ---------------------------------------------------------------------------

    @cached_property
    def _position(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def index(self, label: str) -> int:
        if label not in self._position:
            known = f"It knows {few(self.labels)}."
            raise InputError(f"this client has no label {label!r}", known, client=self.client)
        return self._position[label]

    def block_of(self, label: str) -> frozenset[str]:
        self.index(label)
        return next(b for b in self.blocks if label in b)

    def is_block_ancestor(self, ancestor: str, descendant: str) -> bool:
        """Is the block of `ancestor` a (strict) ancestor of the block of `descendant`?"""
        return self.block_order.is_ancestor(self.block_of(ancestor), self.block_of(descendant))

    @cached_property
    def evidence(self) -> FloatArray:
        """Log-odds that the row label is an ancestor of the column label, shape (p, p).

        NaN where the client cannot say, ±inf for exact statements. This is a summary for people:
        assembly works with `bayes` and `statements`.
        """
        p = len(self.labels)
        out = np.full((p, p), np.nan)
        if self.statements is not None:
            out[self.statements.ancestor == YES] = np.inf
            out[self.statements.ancestor == NO] = -np.inf
        elif self.bayes is not None:
            out = self.bayes.summary()
            if self.rank_one != "no-ancestor":
                hard = (False,) * p if self.hard is None else self.hard.hard
                alike = np.array(self.bayes.single) & ~np.array(hard)
                out[:, alike] = np.nan
        np.fill_diagonal(out, np.nan)
        out.flags.writeable = False
        return out

    @cached_property
    def effects(self) -> pd.DataFrame | None:
        """Total effects of this client alone, as `Result.effects`; None if no label is hard.

        The verdict of a pair is what its interval says: "ancestor" if it excludes zero by far
        (four standard errors), otherwise "undetermined".
        """
        return None if self.hard is None else self.hard.frame(self.labels)

    @cached_property
    def loadings(self) -> pd.DataFrame | None:
        """Which sensors carry which latent: label, sensor, response, unit, per, share, up.

        The response is how far a sensor moves when the label is raised by one standard deviation
        (of its noise, if its intervention is soft); the share is the part of the sensor's variance
        that comes from the label. None where the rows were not read here, and of wide tables.
        """
        if self.carried is None or self.features is None:
            return None
        return self.carried.frame(self.labels, self.features)

    def transform(self, rows: Any) -> Any:
        """Ẑ = (X − μ) Q̂ᵀ (Corollary 1 of the paper), μ the mean of the control rows.

        Parameters
        ----------
        rows : array, shape (n_rows, n_features), or data frame
            A data frame (pandas, polars, pyarrow) must have the client's columns; others are left
            out.

        Returns
        -------
        array, shape (n_rows, p), or data frame
            Columns follow `labels`. A data frame gives a data frame of the same kind, with one
            column per label.
        """
        return latents_of(self, rows)

    def _repr_html_(self) -> str:
        return str(resolve_name("jigsaw_crl.report.writing:fragment_html")(self))

    def __repr__(self) -> str:
        return (
            f"Fragment({self.client!r}, {self.method}: {pluralise(len(self.labels), 'label')} in "
            f"{pluralise(len(self.blocks), 'block')}, {self.outcome.code})"
        )

    # -- the file -------------------------------------------------------------------------------
    # Imported where it is used, for start-up time: it loads pydantic.

    def to_json(self) -> str:
        """The fragment as it leaves the client: no basis, no moments, no rows."""
        return json.dumps(
            self.to_document(), ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )

    def to_document(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        from jigsaw_crl.fragment.file import fragment_document

        return fragment_document(self)

    @classmethod
    def from_json(cls, text: str | bytes, *, path: object | None = None) -> Fragment:
        """Read a fragment; everything in it is checked, and nothing unknown is accepted."""
        from jigsaw_crl.fragment.file import FragmentDocument

        return FragmentDocument.from_text(text, path=path).fragment(path)


def _faults(fragment: Fragment) -> Iterator[str]:
    """What is wrong with a fragment; later checks rely on the earlier ones."""
    labels, p = fragment.labels, len(fragment.labels)
    if p == 0 or len(set(labels)) != p:
        yield "labels are missing or repeated"
    yield from _misspelt(fragment)
    for what, groups in (("blocks", fragment.blocks), ("districts", fragment.districts)):
        if groups is not None and not (all(groups) and sorted(chain(*groups)) == sorted(labels)):
            yield f"the {what} are not a partition of the labels"
    if set(fragment.block_order.elements) != set(fragment.blocks):
        yield "the block order is not an order of the blocks"
    home = {x: i for i, block in enumerate(fragment.blocks) for x in block}
    if not all(len({home[x] for x in d}) == 1 for d in fragment.districts or ()):
        yield "a district is spread over several blocks"
    if fragment.soft is not None and fragment.bayes is None:
        yield "there are factors without claims, and none with them"
    for b in filter(None, (fragment.bayes, fragment.soft)):
        shapes = {x.shape for x in (b.district, b.lean, b.settled, *b.ancestor)}
        if len(b.ancestor) != len(b.scales) or len(b.single) != p or shapes != {(p, p)}:
            yield "the evidence has the wrong shape"
        if any(np.isinf(x).any() for x in (b.ancestor, b.district, b.lean)):
            yield "the evidence is not finite"
        if not np.array_equal(b.district, b.district.T, equal_nan=True):
            yield "the evidence for districts is not symmetric"
    e = fragment.hard
    if e is not None:
        flags = (e.hard, {0, 1}), (e.moved, {0, 1}), (e.up or (0,) * p, {-1, 0, 1})
        if any(len(given) != p or not set(given) <= allowed for given, allowed in flags):
            yield "the flags of the effects have the wrong shape or values"
    for sizes in filter(None, (fragment.shares, *((e.total, e.applied) if e is not None else ()))):
        if {sizes.value.shape, sizes.error.shape} != {(p, p)}:
            yield "the effects have the wrong shape"
        if np.isinf(sizes.value).any() or np.isinf(sizes.error).any() or (sizes.error < 0).any():
            yield "the effects or their errors are not finite, or an error is negative"
        if not np.array_equal(np.isnan(sizes.value), np.isnan(sizes.error)):
            yield "an effect has no error, or an error no effect"
    if e is not None and e.total.known[:, ~np.array(e.hard)].any():
        yield "an effect is given on a label without a hard intervention"
    if (s := fragment.statements) is not None:
        if s.ancestor.shape != (p, p) or not np.isin(s.ancestor, (YES, NO, CANNOT_SAY)).all():
            yield "the statements have the wrong shape or values"
        if not all(c and c < home.keys() and d in home.keys() - c for c, d in s.one_of):
            yield "a statement names a label that the client does not have"
        if not all(len(pair) == 2 and pair <= home.keys() for pair in s.spouses or ()):
            yield "a spouse is not another label of the client"
    if fragment.basis is not None and (fragment.basis.ndim != 2 or fragment.basis.shape[0] != p):
        yield "the basis needs one row per label"


def _misspelt(fragment: Fragment) -> Iterator[str]:
    """Labels and names that do not follow the rule of `base.labels`."""
    for what, names in (
        ("client's name", (fragment.client,)),
        ("label", fragment.labels),
        ("regime", fragment.n_samples or ()),
    ):
        for name in names:
            if fault := label_fault(name):
                yield f"the {what} {name[:60]!r} {fault}"
    seen: dict[str, str] = {}
    for label in fragment.labels:
        first = seen.setdefault(label_key(label), label)
        if first != label:
            yield (
                f"the labels {first[:60]!r} and {label[:60]!r} differ only by case, spaces, _ "
                "or -, or as 1 and 1.0 do"
            )
