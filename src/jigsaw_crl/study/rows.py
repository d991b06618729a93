"""What is noticed about single rows while a table is read, chunk by chunk.

`BadRows` counts rows that cannot be used: without a regime, or with values that are missing or out
of range. One message then tells of them all.

`RowNumbers` finds columns that say which row it is and measure nothing. A measurement of n rows
rises from each row to the next with probability 1/n!, and n whole numbers from a range of r all
differ with probability of about exp(−n²/2r). Used as a feature, such a column would have more
variance than all others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.moments.checks import LARGEST_VALUE
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import IDENTIFIER, RISING, Chunk, is_sparse

# Columns that are named with their counts.
MOST_COLUMNS = 4
# Rises that a column needs in some regime: by chance, one column in 10! (3.6 million) has them.
FEWEST_RISES = 10
# Pairs of equal values that are expected by chance, if there is none: one column in e¹⁰ (22,000).
EXPECTED_PAIRS = 10.0
# Rows that are compared for equal values.
MOST_COMPARED = 10_000
_Row = npt.NDArray[np.number]
# Names of identifiers, for which fewer rows are enough.
_NAMES = re.compile(r"(^|[\W_])(id|ids|uid|idx|index|key|serial|no|nr|number)$", re.IGNORECASE)


def ignoring(path: object | None) -> str:
    """How to name columns to ignore; a table in memory is read from Python only."""
    return "ignore=[…]" if path is None else "--ignore"


def _without_gaps(path: object | None) -> str:
    """How to leave out rows with missing values, or to use their other values."""
    drop, fill = 'missing="drop"', 'missing="em"'
    if path is not None:
        drop = f'--drop-missing (missing = "drop" in study.toml, {drop} in Python)'
        fill = "--fill-missing"
    with_ignored = f"or the column with {ignoring(path)}; {fill} uses the values that are there."
    return f"Leave such rows out with {drop}, {with_ignored}"


@dataclass
class _Fault:
    """Rows with one fault: the first of them, and counts of values and rows."""

    row: int
    column: str
    value: float
    n_rows: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    regimes: Counter[str] = field(default_factory=Counter)


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
        self.features, self.reading, self.n_rows = features, reading, 0
        # By kind: "missing", "infinite", "large", or what a row lacks ("regime", "batch", "group").
        self.faults: dict[str, _Fault] = {}
        # Regimes of the rows that are left out for their values.
        self.regimes: set[str] = set()

    def merge(self, later: BadRows) -> BadRows:
        """With the rows that a later part of the table leaves out."""
        both = copy(self)
        both.n_rows, both.regimes = self.n_rows + later.n_rows, self.regimes | later.regimes
        both.faults = {**later.faults, **self.faults}
        for kind in self.faults.keys() & later.faults.keys():
            a, b = self.faults[kind], later.faults[kind]
            sums = a.n_rows + b.n_rows, a.columns + b.columns, a.regimes + b.regimes
            both.faults[kind] = _Fault(a.row, a.column, a.value, *sums)
        return both

    def without(self, chunk: Chunk) -> Chunk:
        """The rows of a chunk that can be used."""
        kept = np.ones(chunk.rows.shape[0], dtype=np.bool_)
        for what, (_, codes) in chunk.beside.items():
            if len(codes) and int(codes.min()) < 0:
                first = _Fault(self.n_rows + int(np.argmax(codes < 0)) + 1, "", np.nan)
                self.faults.setdefault(what, first).n_rows += int(np.count_nonzero(codes < 0))
                kept &= codes >= 0
        # Two fast passes (NaN makes both NaN); the places are searched for only if needed.
        values = chunk.rows.data if is_sparse(chunk.rows) else chunk.rows
        low, high = (float(f(values, initial=0.0)) for f in (np.min, np.max))
        if not (low >= -LARGEST_VALUE and high <= LARGEST_VALUE):
            kept &= self._good(chunk, kept)
        self.n_rows += len(kept)
        return chunk if kept.all() else chunk.select(kept)

    def _good(self, chunk: Chunk, named: BoolArray) -> BoolArray:
        """Which of the named rows have values that can be used."""
        given: Any = chunk.rows
        rows = (given.toarray() if is_sparse(given) else given).astype(np.float64)
        missing = np.isnan(rows) & named[:, None] & (self.reading.missing != "em")
        kept = named & ~missing.any(axis=1)
        # A row that is left out anyway may hold any other value.
        usable = (kept if self.reading.missing == "drop" else named)[:, None]
        infinite = np.isinf(rows) & usable
        large = (np.abs(rows) > LARGEST_VALUE) & usable & ~infinite
        for kind, bad in (("missing", missing), ("infinite", infinite), ("large", large)):
            if bad.any():
                self._count(kind, chunk, bad)
        kept &= ~(infinite | large).any(axis=1)
        self.regimes.update(chunk.regimes(named & ~kept))
        return np.asarray(kept, dtype=np.bool_)

    def _count(self, kind: str, chunk: Chunk, bad: BoolArray) -> None:
        row, column = (int(i) for i in np.argwhere(bad)[0])
        first = _Fault(self.n_rows + row + 1, self.features[column], float(chunk.rows[row, column]))
        fault, out = self.faults.setdefault(kind, first), np.asarray(bad.any(axis=1))
        fault.n_rows += int(np.count_nonzero(out))
        fault.regimes.update(chunk.regimes(out))
        each = np.count_nonzero(bad, axis=0)
        bad_columns = np.flatnonzero(each).tolist()
        fault.columns.update({self.features[i]: int(each[i]) for i in bad_columns})

    @property
    def dropped(self) -> _Fault | None:
        """The rows with missing values that are left out on request."""
        return self.faults.get("missing") if self.reading.missing == "drop" else None

    def problems(self) -> list[InputError]:
        """The error of each kind of bad row."""
        found, path = [], self.reading.path
        for kind, fault in self.faults.items():
            if fault is self.dropped:
                continue
            where = f"column {fault.column!r}, row {fault.row}"
            what = f"a value is {kind} in {where}"
            remedy = f"Correct it, or leave the column out with {ignoring(path)}."
            if not fault.column:
                more = pluralise(fault.n_rows - 1, "more row")
                what = f"row {fault.row} has no {kind}"
                what += f" (and {more})" if fault.n_rows > 1 else ""
                remedy = f"Give every row its {kind}, or remove the row."
                remedy += " If it holds units, remove it." if fault.row == 1 else ""
            elif kind == "large":
                what = f"the value {fault.value:.3g} in {where} is too large"
                remedy = "Rescale the column."
            elif kind == "missing":
                remedy = _without_gaps(path)
                empty = [name for name, n in fault.columns.items() if n == self.n_rows]
                if empty:
                    named = few((repr(name) for name in empty), MOST_COLUMNS)
                    what = f"no row has a value in {named}"
                    remedy = f"Leave {'it' if len(empty) == 1 else 'them'} out with "
                    remedy += f"{ignoring(path)}, or fill in the values."
                    found.append(self.reading.fail(what, remedy))
                    continue
            if fault.columns.total() > 1:
                what += (
                    f" ({fault.columns.total():,} such values in {fault.n_rows:,} of "
                    f"{self.n_rows:,} rows: {most(fault.columns)})"
                )
            regime = next(iter(fault.regimes)) if len(fault.regimes) == 1 else None
            found.append(self.reading.fail(what, remedy, regime))
        return found


def most(columns: Counter[str]) -> str:
    """The columns with most bad values, and their numbers."""
    return few((f"{n:,} in {name!r}" for name, n in columns.most_common()), MOST_COLUMNS)


class RowNumbers:
    """Looks for columns that number or identify rows, chunk by chunk.

    Parameters
    ----------
    features : sequence of str

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.study.rows import RowNumbers
    >>> seen = RowNumbers(["flow", "clock", "tag"])
    >>> n = np.arange(40)
    >>> seen.add("control", np.column_stack([np.sin(n), n, n * 7 % 41]))
    >>> list(seen.found())
    ['clock', 'tag']
    """

    def __init__(self, features: Sequence[str]) -> None:
        self.features = features
        # Columns that have not fallen so far; the first row, the last one and the rises of each
        # column in each regime.
        self.rising = np.arange(len(features))
        self.runs: dict[Hashable, tuple[_Row, _Row, _Row]] = {}
        # Columns of whole numbers without a repetition so far, and their first values.
        self.whole = np.arange(len(features))
        self.values = np.empty((0, len(features)))

    def add(self, regime: Hashable, rows: npt.NDArray[np.number]) -> None:
        """Look at further rows of a regime (or of a batch of it), in the order of the file."""
        if len(self.whole) and len(self.values) < MOST_COMPARED:
            # Most columns have fractions or repetitions within a few rows.
            for start, end in ((0, 16), (16, MOST_COMPARED - len(self.values))):
                self._compare(rows[start:end, self.whole])
        for some in (rows[:16], rows):
            if len(self.rising):
                never = (np.diff(some[:, self.rising], axis=0) >= 0).all(axis=0)
                self.rising = self.rising[never]
        if len(self.rising):
            rises = np.zeros(len(self.features), dtype=np.int64)
            steps = np.diff(rows[:, self.rising], axis=0) > 0
            rises[self.rising] = np.count_nonzero(steps, axis=0)
            self._join(regime, rows[0].copy(), rows[-1].copy(), rises)

    def _join(self, regime: Hashable, first: _Row, last: _Row, rises: _Row) -> None:
        """Put a run of rows behind the earlier ones of its regime."""
        if regime in self.runs:
            start, before, earlier = self.runs[regime]
            self.rising = self.rising[before[self.rising] <= first[self.rising]]
            first, rises = start, earlier + rises + (before < first)
        self.runs[regime] = first, last, rises

    def _compare(self, own: npt.NDArray[np.number]) -> None:
        values = np.vstack([self.values, own])
        differ = (np.diff(np.sort(values, axis=0), axis=0) > 0).all(axis=0)
        kept = (own == np.floor(own)).all(axis=0) & differ
        self.whole, self.values = self.whole[kept], values[:, kept]

    def merge(self, later: RowNumbers) -> RowNumbers:
        """With the rows that `later` has seen, which come after these."""
        both = copy(self)
        both.rising = np.intersect1d(self.rising, later.rising)
        both.runs = dict(self.runs)
        for regime, run in later.runs.items():
            both._join(regime, *run)
        both.whole = np.intersect1d(self.whole, later.whole)
        both.values = self.values[:, np.isin(self.whole, both.whole)]
        both._compare(later.values[:, np.isin(later.whole, both.whole)])
        return both

    def found(self) -> dict[str, str]:
        """The columns that say which row it is, and how."""
        n, out = len(self.values), dict[str, str]()
        for i, values in zip(self.whole.tolist(), self.values.T, strict=True):
            expected = n * (n - 1) / 2 / (np.ptp(values) + 1) if n else 0.0
            named = _NAMES.search(self.features[i]) and n >= FEWEST_RISES
            if expected >= EXPECTED_PAIRS or named:
                out[self.features[i]] = IDENTIFIER
        for i in self.rising.tolist():
            rises = max((rises[i] for _, _, rises in self.runs.values()), default=0)
            # The number of a batch or a shift rises once in many rows.
            if rises >= (1 if _NAMES.search(self.features[i]) else FEWEST_RISES):
                out[self.features[i]] = RISING
        return out
