"""What all clients say about the pairs that some of them speak about, heard in passes.

Clients are heard in parts (`said`). Pairs are divided into blocks by their ancestor, and a block
holds what all parts say about its pairs. Every sum over clients belongs to one pair and runs in the
order of the clients, so the numbers do not depend on parts and blocks: one machine has a single
block, whose parts lie in a temporary file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from jigsaw_crl.assembly.copies import find_copies
from jigsaw_crl.assembly.missed import Missed
from jigsaw_crl.assembly.panel import Claims, Panel
from jigsaw_crl.assembly.posterior.weights import Agreement
from jigsaw_crl.assembly.said import Codes, Given, Places, Said, Single, Table, View, Words
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.spool import Mapped, kept_like

__all__ = ["Block", "Hearing", "Here", "Spoken"]

# Pairs of labels in a part, with those of its last client.
PART = 1 << 18


@dataclass(frozen=True, eq=False)
class Spoken:
    """The ordered pairs that some client speaks about, numbered row by row.

    Parameters
    ----------
    p : int
        Labels.
    a, d : array of int32, shape (n,)
    """

    p: int
    a: Places
    d: Places

    def table(self, values: Single, other: float) -> Single:
        """Values of the numbered pairs as a matrix, with another value elsewhere."""
        out = np.full((self.p, self.p), other, dtype=np.float32)
        out[self.a, self.d] = values
        return out


@dataclass(frozen=True, eq=False)
class Block:
    """Pairs whose ancestors are some consecutive labels, and what all clients say about them.

    Parameters
    ----------
    a, d : array of int32, shape (n,)
        The pairs that a client speaks about, row by row.
    firsts : sequence of int
        Number of the first client of every part.
    said : sequence of Said
        By part.
    at : sequence of array of int32
        For every part, number among the block's pairs of each pair in `said`.
    """

    a: Places
    d: Places
    firsts: Sequence[int]
    said: Sequence[Said]
    at: Sequence[Places]

    @classmethod
    def of(
        cls,
        rows: range,
        p: int,
        firsts: Sequence[int],
        said: Sequence[Said],
        codes: Sequence[Codes],
        keep: Callable[[Iterable[Places]], Sequence[Places]] = tuple,
    ) -> Block:
        """Number the pairs.

        Parameters
        ----------
        rows : range
            The labels that are ancestors in this block.
        p : int
            All labels.
        firsts, said : sequence
        codes : sequence of array of int
            For every part, `View.codes` of its pairs, less that of the first row.
        keep : callable
            Makes the sequence in which numbers are kept.
        """
        spoken = np.zeros(len(rows) * p, dtype=bool)
        for part in codes:
            spoken[part] = True
        found = np.flatnonzero(spoken)
        number = np.empty(len(spoken), dtype=np.int32)
        del spoken
        number[found] = np.arange(len(found), dtype=np.int32)
        a, d = (found // p + rows.start).astype(np.int32), (found % p).astype(np.int32)
        return cls(a, d, firsts, said, keep(number[part] for part in codes))

    def pooled(self, n_scales: int, given: Given) -> Table:
        """Weighted sum of what all clients say."""
        total = Table.zero(len(self.a), n_scales)
        for said, at in zip(self.said, self.at, strict=True):
            said.add_to(total, at, given)
        return total

    def log_odds(self, total: Table, shares: list[float] | None, missed: Missed) -> Single:
        """Log-odds of the pairs; with shares, lines lean as `Missed.leans_of` says."""

        def leans(part: slice) -> FloatArray:
            return missed.leans_of(self.a[part], self.d[part])

        found = total.log_odds(shares, None if shares is None else leans)
        return np.concatenate([np.zeros(0, np.float32), *(x.astype(np.float32) for x in found)])

    def rest(self, total: Table, part: int, given: Given) -> FloatArray:
        """Log-odds of all others on the pairs of each client in a part, shape (n,)."""
        said, at = self.said[part], self.at[part]
        rest = total.of(at)
        for c in range(len(said.stated)):
            for other in given.twins.get(said.first + c, ()):
                own = slice(said.starts[c], said.starts[c + 1])
                self._take_out(rest, own, at[own], other, given)
        said.add_to(rest, np.arange(len(at), dtype=np.int32), given, sign=-1)
        return np.concatenate([np.zeros(0), *rest.log_odds()])

    def _take_out(self, rest: Table, own: slice, at: Places, other: int, given: Given) -> None:
        """Subtract what another client says about the same pairs; in place."""
        part = int(np.searchsorted(self.firsts, other, side="right")) - 1
        said = self.said[part]
        begin, end = said.starts[other - said.first : other - said.first + 2]
        theirs = self.at[part][begin:end]
        _, mine, shared = np.intersect1d(at, theirs, assume_unique=True, return_indices=True)
        chosen = np.zeros(len(self.at[part]), dtype=bool)
        chosen[begin + shared] = True
        said.within(chosen).add_to(rest, (own.start + mine).astype(np.int32), given, sign=-1)


class Hearing(Protocol):
    """All clients' evidence, wherever it lies."""

    spoken: Spoken
    missed: Missed
    n_scales: int
    stating: BoolArray

    @property
    def copies(self) -> tuple[tuple[int, ...], ...]:
        """Clients that sent the same evidence."""

    def pooled(self, given: Given) -> Any:
        """Weighted sum of what all clients say, for the other two functions."""

    def log_odds(self, total: Any, shares: list[float] | None = None) -> Single:
        """Log-odds of the numbered pairs; with shares, lines lean as `Missed.leans_of` says."""

    def agreements(
        self, total: Any, given: Given, cost: float, above: Words
    ) -> Iterator[tuple[int, Agreement]]:
        """Number and agreement of every client: see `View.agreements`."""


class Here:
    """All clients' evidence on this machine; a temporary file holds it if one holds the fragments.

    Parameters
    ----------
    panel : Panel
    """

    def __init__(self, panel: Panel) -> None:
        self.n_scales, self.missed = panel.n_scales, panel.missed
        views = kept_like(panel.fragments, _views(panel.claims, panel.n_scales))
        p = len(panel.labels)
        said: Sequence[Said] = Mapped(lambda view: view.said, views)
        parts = [(one.first, one.stated) for one in said]
        firsts = [first for first, _ in parts]
        codes: Sequence[Codes] = Mapped(lambda view: view.codes(p), views)
        keep = partial(kept_like, panel.fragments)
        self._views = views
        self._block = Block.of(range(p), p, firsts, said, codes, keep)
        self.spoken = Spoken(p, self._block.a, self._block.d)
        self.stating = np.concatenate([stated for _, stated in parts])
        self._fragments = panel.fragments

    @cached_property
    def copies(self) -> tuple[tuple[int, ...], ...]:
        """Clients that sent the same evidence."""
        return tuple(find_copies(self._fragments))

    def pooled(self, given: Given) -> Table:
        return self._block.pooled(self.n_scales, given)

    def log_odds(self, total: Table, shares: list[float] | None = None) -> Single:
        return self._block.log_odds(total, shares, self.missed)

    def agreements(
        self, total: Table, given: Given, cost: float, above: Words
    ) -> Iterator[tuple[int, Agreement]]:
        for part, view in enumerate(self._views):
            rest = self._block.rest(total, part, given)
            yield from view.agreements(rest, given.rate, cost, above)


def _views(claims: Iterable[Claims], n_scales: int) -> Iterator[View]:
    """The clients in parts."""
    some: list[Claims] = []
    first = pairs = 0
    for one in claims:
        some.append(one)
        pairs += one.says.size
        if pairs >= PART:
            yield View.of(first, some, n_scales)
            first, some, pairs = first + len(some), [], 0
    if some:
        yield View.of(first, some, n_scales)
