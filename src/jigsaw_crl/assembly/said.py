"""What some clients say, pair by pair, and sums over clients of it: the arrays of a pass.

Clients that follow each other are one part, with all their pairs in one array (`Said`). What is
added up (`Table`) has a row for each pair, so that a pair is one place in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.assembly.panel import Claims
from jigsaw_crl.assembly.posterior.weights import Agreement, Others, agreement_of
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.pooled import Pooled
from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES

__all__ = ["CHUNK", "Codes", "Given", "Places", "Said", "Single", "Table", "View", "Words"]

Single = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int64]

# Pairs that are worked on at once: bounds the memory of intermediate arrays.
CHUNK = 1 << 20


@dataclass(frozen=True, eq=False)
class Given:
    """How far the clients are trusted in a pass.

    Parameters
    ----------
    weights : array, shape (n_clients,)
    rate : float
        Error rate of statements.
    twins : mapping of int to sequence of int
        The others that sent the same evidence as a client.
    """

    weights: FloatArray
    rate: float
    twins: Mapping[int, Sequence[int]]


@dataclass(frozen=True, eq=False)
class Said:
    """What clients that follow each other say, pair by pair.

    Parameters
    ----------
    first : int
        Number of the first client.
    starts : array of int, shape (n_clients + 1,)
        Where each client's pairs begin.
    stated : array of bool, shape (n_clients,)
        Clients that state rather than weigh: x is 1 for yes and -1 for no.
    x : array of float32, shape (n_scales, n)
        `Pooled.ancestor` at the visible scales.
    lean : array of float32, shape (n,) or (0,)
        `Pooled.lean`; empty where nobody is in doubt.
    doubt : array of uint8, shape (n,) or (0,)
        1 where a target of the pair shows a single direction, 3 where the column's does.
    """

    first: int
    starts: Codes
    stated: BoolArray
    x: Single
    lean: Single
    doubt: npt.NDArray[np.uint8]

    def within(self, chosen: BoolArray) -> Said:
        """The same about some of the pairs."""
        before = np.concatenate([[0], np.cumsum(chosen)])
        some = chosen if len(self.doubt) else slice(0)
        return replace(
            self,
            starts=before[self.starts],
            x=self.x[:, chosen],
            lean=self.lean[some],
            doubt=self.doubt[some],
        )

    def add_to(self, table: Table, at: Places, given: Given, sign: int = 1) -> None:
        """Add all of it at some rows of a table, in place."""
        from jigsaw_crl.assembly.pass_loops import add  # loads the compiler

        weights = np.array(given.weights[self.first : self.first + len(self.stated)])
        weights[self.stated] *= np.log((1.0 - given.rate) / given.rate)
        about = (self.x, self.lean, self.doubt, self.starts)
        add(table.sums, table.counts, at, *about, weights, sign)


@dataclass(frozen=True, eq=False)
class Table:
    """Sums over clients for numbered pairs.

    Parameters
    ----------
    sums : array of float32, shape (n, 2 n_scales + 2)
        The columns are `ancestor` of a `Pooled` at the visible scales, `leaning` at all, `lean`.
    counts : array of int32, shape (n, 2)
        `in_doubt` and `single`.
    """

    sums: Single
    counts: Places

    @classmethod
    def zero(cls, n: int, n_scales: int) -> Table:
        sums = np.zeros((n, 2 * n_scales + 2), dtype=np.float32)
        return cls(sums, np.zeros((n, 2), dtype=np.int32))

    def of(self, at: Places) -> Table:
        """A copy of some rows."""
        return Table(self.sums.take(at, axis=0), self.counts.take(at, axis=0))

    def log_odds(
        self, shares: list[float] | None = None, leans: Callable[[slice], FloatArray] | None = None
    ) -> Iterator[FloatArray]:
        """`Pooled.log_odds` of all pairs, a part at a time."""
        n_scales = self.sums.shape[1] // 2 - 1
        for start in range(0, len(self.sums), CHUNK):
            part = slice(start, start + CHUNK)
            sums: Any = self.sums[part].T
            counts = self.counts[part].T
            seen: Any = np.concatenate([sums[:n_scales], np.zeros_like(sums[:1])])
            leaning: Any = np.ascontiguousarray(sums[n_scales:-1])
            some = Pooled(seen, leaning, sums[-1].copy(), counts[0], counts[1], counts[0])
            yield some.log_odds(shares, None if leans is None else leans(part))


@dataclass(frozen=True, eq=False)
class View:
    """A part of the clients, each with its own labels.

    Parameters
    ----------
    said : Said
    members : tuple of array of int
        Positions of each client's labels, ascending.
    cells : array of int32, shape (n,)
        Row times number of labels plus column of every pair, in its client's table.
    """

    said: Said
    members: tuple[IntArray, ...]
    cells: Places

    @classmethod
    def of(cls, first: int, claims: Iterable[Claims], n_scales: int) -> View:
        """What the claims of some clients say, in single precision; they are read one by one."""
        cells, parts, stated, members = [], [], [], []
        for one in claims:
            cells.append(np.flatnonzero(one.says).astype(np.int32))
            parts.append(_flat(one, cells[-1], n_scales))
            stated.append(one.certain is not None)
            members.append(one.members)
        x, lean, doubt = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
        if not doubt.any():
            lean, doubt = lean[:0], doubt[:0]
        starts = np.concatenate([[0], np.cumsum([len(at) for at in cells])])
        said = Said(first, starts, np.array(stated), x, lean, doubt)
        return cls(said, tuple(members), np.concatenate(cells))

    def codes(self, p: int) -> Codes:
        """Every pair as one number: ancestor times p plus descendant."""
        starts = self.said.starts
        return np.concatenate(
            [
                (members[:, None] * p + members).ravel()[self.cells[starts[c] : starts[c + 1]]]
                for c, members in enumerate(self.members)
            ]
        )

    def agreements(
        self, rest: FloatArray, rate: float, cost: float, above: Words
    ) -> Iterator[tuple[int, Agreement]]:
        """Number and agreement of every client with what all others say.

        Parameters
        ----------
        rest : array, shape (n,)
            Log-odds of all others about each pair.
        rate : float
            Error rate of statements.
        cost : float
            Log-odds from which a pair counts as one of the others' order.
        above : array of uint64, shape (p, words)
            Ancestors of every label in the order of all clients, as bits.
        """
        starts = self.said.starts
        for c, members in enumerate(self.members):
            claims = self._claims(c)
            direct = np.zeros(claims.says.shape)
            direct[claims.says] = rest[starts[c] : starts[c + 1]]
            theirs = (direct > cost) & (direct > direct.T)
            others = Others(theirs, direct, _joined(above, members))
            n_scales = len(self.said.x)
            yield self.said.first + c, agreement_of(claims, others, rate, n_scales)

    def _claims(self, c: int) -> Claims:
        """The claims of one client, as far as agreement needs them."""
        said, members = self.said, self.members[c]
        part = slice(said.starts[c], said.starts[c + 1])
        shape = (len(members), len(members))
        says = np.zeros(shape, dtype=bool)
        says.flat[self.cells[part]] = True
        certain, evidence = None, None
        if said.stated[c]:
            certain = np.full(shape, CANNOT_SAY, dtype=np.int8)
            certain[says] = np.where(said.x[0, part] > 0, YES, NO)
        else:
            evidence = _matrices(said, part, says)
        nothing = np.zeros((0, 0), dtype=bool)
        about = (certain, False, None, None, evidence, says, (), None, nothing)
        return Claims("", members, *about)


def _flat(
    claims: Claims, cells: Places, n_scales: int
) -> tuple[Single, Single, npt.NDArray[np.uint8]]:
    """x, lean and doubt of one client's pairs: see `Said`."""
    evidence = claims.evidence
    if evidence is None:
        assert claims.certain is not None
        stated = np.where(claims.certain.ravel()[cells] == YES, 1, -1).astype(np.float32)
        none = np.zeros(len(cells), dtype=np.float32)
        return np.tile(stated, (n_scales, 1)), none, none.astype(np.uint8)
    x, lean = evidence.ancestor[:-1].reshape(n_scales, -1), evidence.lean.ravel()
    doubt = (evidence.in_doubt | 2 * evidence.single).ravel()
    return (
        x[:, cells].astype(np.float32),
        lean[cells].astype(np.float32),
        doubt[cells].astype(np.uint8),
    )


def _matrices(said: Said, part: slice, says: BoolArray) -> Pooled:
    """The evidence of one client as matrices."""
    n_scales = len(said.x)
    zero = Pooled.empty(n_scales, says.shape, np.float32)
    zero.ancestor[:-1, says] = said.x[:, part]
    if not len(said.doubt):
        return replace(zero, leaning=zero.ancestor)
    doubt, lean = said.doubt[part], said.lean[part]
    zero.leaning[:-1, says] = np.where(doubt > 0, np.fmax(said.x[:, part], lean), said.x[:, part])
    zero.leaning[-1, says] = np.where(doubt > 0, np.fmax(lean, 0), 0)
    zero.lean[says], zero.in_doubt[says], zero.single[says] = lean, doubt & 1, doubt >> 1
    return zero


def _joined(above: Words, members: IntArray) -> BoolArray:
    """Pairs of a client's labels with a common ancestor that the client lacks."""
    from jigsaw_crl.assembly.pass_loops import share_an_ancestor  # loads the compiler

    hidden = np.ones((1, 64 * above.shape[1]), dtype=bool)
    hidden[0, members] = False
    mask = np.packbits(hidden, axis=1, bitorder="little").view(np.dtype("<u8"))
    out = np.zeros((len(members), len(members)), dtype=bool)
    share_an_ancestor(above[members] & mask.astype(above.dtype), out)
    return out
