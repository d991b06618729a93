"""Rows that cannot be used: without a regime, or with values that are missing or out of range.

They are counted over the whole table, so that one message tells of them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.moments.checks import LARGEST_VALUE
from jigsaw_crl.study.source import Chunk, Reading, is_sparse

__all__ = ["BadRows", "ignoring"]

# Columns that are named with their counts.
MOST_COLUMNS = 4
# How to leave out rows with missing values; a table in memory is read from Python only.
_MISSING = (
    'Leave such rows out with missing="drop", or the column with ignore=[…]; missing="em" uses the '
    "values that are there."
)
_MISSING_IN_FILE = (
    'Leave such rows out with --drop-missing (missing = "drop" in study.toml, missing="drop" in '
    "Python), or the column with --ignore; --fill-missing uses the values that are there."
)


@dataclass
class _Fault:
    """Values of one kind that cannot be used: the first of them, and counts."""

    row: int
    column: str
    value: float
    n_rows: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    regimes: set[str] = field(default_factory=set)


class BadRows:
    """Looks for rows that cannot be used, chunk by chunk.

    Parameters
    ----------
    features : sequence of str
    reading : Reading
        With ``missing="drop"``, rows with missing values are counted and no problem; with
        ``missing="em"`` they are used.
    """

    def __init__(self, features: Sequence[str], reading: Reading) -> None:
        self.features, self.reading = features, reading
        self.n_rows = 0
        # Rows with missing values that were left out on request, by regime and by column.
        self.incomplete, self.incomplete_columns = Counter[str](), Counter[str]()
        # Regimes of the rows that are left out.
        self.regimes: set[str] = set()
        # The first row, and how many there are.
        self.unnamed: dict[str, tuple[int, int]] = {}
        self.faults: dict[str, _Fault] = {}

    def merge(self, other: BadRows) -> BadRows:
        """With the rows that another part of the table leaves out on request."""
        both = copy(self)
        both.n_rows = self.n_rows + other.n_rows
        both.incomplete = self.incomplete + other.incomplete
        both.incomplete_columns = self.incomplete_columns + other.incomplete_columns
        both.regimes = self.regimes | other.regimes
        return both

    def without(self, chunk: Chunk) -> Chunk:
        """The rows of a chunk that can be used."""
        kept = self._named(chunk)
        # Two fast passes (NaN makes both NaN); the places are searched for only if needed.
        values = chunk.rows.data if is_sparse(chunk.rows) else chunk.rows
        low, high = (float(f(values, initial=0.0)) for f in (np.min, np.max))
        if not (low >= -LARGEST_VALUE and high <= LARGEST_VALUE):
            kept &= self._good(chunk, kept)
        self.n_rows += len(kept)
        return chunk if kept.all() else chunk.select(kept)

    def _named(self, chunk: Chunk) -> BoolArray:
        """Which rows have a regime, and a batch and a group if such columns are named."""
        named = np.ones(chunk.rows.shape[0], dtype=np.bool_)
        for what, (_, codes) in chunk.beside.items():
            if len(codes) and int(codes.min()) < 0:
                bad = codes < 0
                row, count = self.unnamed.get(what, (self.n_rows + int(np.argmax(bad)) + 1, 0))
                self.unnamed[what] = row, count + int(np.count_nonzero(bad))
                named &= ~bad
        return named

    def _good(self, chunk: Chunk, named: BoolArray) -> BoolArray:
        """Which of the named rows have values that can be used."""
        given: Any = chunk.rows
        rows = (given.toarray() if is_sparse(given) else given).astype(np.float64)
        missing = np.isnan(rows) & named[:, None] & (self.reading.missing != "em")
        kept = named & ~missing.any(axis=1)
        usable = named
        if self.reading.missing == "drop":
            # A row that is left out anyway may hold any other value.
            usable = kept
            self.incomplete.update(chunk.regimes(missing.any(axis=1)))
            self._by_column(self.incomplete_columns, missing)
        else:
            self._count("missing", chunk, missing)
        infinite = np.isinf(rows) & usable[:, None]
        large = (np.abs(rows) > LARGEST_VALUE) & usable[:, None] & ~infinite
        self._count("infinite", chunk, infinite)
        self._count("large", chunk, large)
        kept &= ~(infinite | large).any(axis=1)
        self.regimes.update(chunk.regimes(named & ~kept))
        return np.asarray(kept, dtype=np.bool_)

    def _by_column(self, counts: Counter[str], bad: BoolArray) -> None:
        each = np.count_nonzero(bad, axis=0)
        for i in np.flatnonzero(each).tolist():
            counts[self.features[i]] += int(each[i])

    def _count(self, kind: str, chunk: Chunk, bad: BoolArray) -> None:
        if not bad.any():
            return
        row, column = (int(i) for i in np.argwhere(bad)[0])
        first = _Fault(self.n_rows + row + 1, self.features[column], float(chunk.rows[row, column]))
        fault = self.faults.setdefault(kind, first)
        out = np.asarray(bad.any(axis=1), dtype=np.bool_)
        fault.n_rows += int(np.count_nonzero(out))
        fault.regimes.update(chunk.regimes(out))
        self._by_column(fault.columns, bad)

    def problems(self) -> list[InputError]:
        """The error of each kind of bad row."""
        found = []
        for what, (row, count) in self.unnamed.items():
            more = f" (and {pluralise(count - 1, 'more row')})" if count > 1 else ""
            remedy = f"Give every row its {what}, or remove the row."
            found.append(self.reading.fail(f"row {row} has no {what}{more}", remedy))
        for kind, fault in self.faults.items():
            where = f"column {fault.column!r}, row {fault.row}"
            what = f"a value is {kind} in {where}"
            remedy = f"Correct it, or leave the column out with {ignoring(self.reading.path)}."
            if kind == "large":
                what = f"the value {fault.value:.3g} in {where} is too large"
                remedy = "Rescale the column."
            elif kind == "missing":
                remedy = _MISSING if self.reading.path is None else _MISSING_IN_FILE
            if fault.columns.total() > 1:
                what += (
                    f" ({fault.columns.total():,} such values in {fault.n_rows:,} of "
                    f"{self.n_rows:,} rows: {self.most(fault.columns)})"
                )
            regime = next(iter(fault.regimes)) if len(fault.regimes) == 1 else None
            found.append(self.reading.fail(what, remedy, regime))
        return found

    @staticmethod
    def most(columns: Counter[str]) -> str:
        """The columns with most bad values, and their numbers."""
        return few((f"{n:,} in {name!r}" for name, n in columns.most_common()), MOST_COLUMNS)


def ignoring(path: object | None) -> str:
    """How to name columns to ignore; a table in memory is read from Python only."""
    return "ignore=[…]" if path is None else "--ignore"
