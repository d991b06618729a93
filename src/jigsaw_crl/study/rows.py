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
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.moments.checks import LARGEST_VALUE
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import IDENTIFIER, RISING, Chunk

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


# How to ask for an option on the command line, and for a table in memory, which is read in Python.
_ON_COMMAND_LINE = "--ignore", "--drop-missing", "--fill-missing"
_IN_PYTHON = "ignore=[…]", 'missing="drop"', 'missing="em"'


@dataclass
class _Fault:
    """Rows with one fault: the first of them, and counts of values and rows."""

    row: int
    column: str = ""
    value: Any = None
    n_rows: int = 0
    columns: Counter[str] = field(default_factory=Counter)
    regimes: Counter[str] = field(default_factory=Counter)


@dataclass
class BadRows:
    """Looks for rows that cannot be used, chunk by chunk.

    Parameters
    ----------
    features : sequence of str
    reading : Reading
        With ``missing="drop"``, rows with missing values are counted and no problem; with
        ``missing="em"`` they are used.
    n_rows : int
        Rows so far.
    faults : mapping of str to _Fault
        By kind: "missing", "dropped" (missing, on request), "large", what a row lacks ("regime",
        "batch", "group"), or "text" and the column of a text among numbers.
    regimes : set of str
        Regimes of the rows that are left out for their values.
    """

    features: Sequence[str]
    reading: Reading
    n_rows: int = 0
    faults: dict[str, _Fault] = field(default_factory=dict)
    regimes: set[str] = field(default_factory=set)

    def merge(self, later: BadRows) -> BadRows:
        """With the rows that a later part of the table leaves out."""
        faults = {**later.faults, **self.faults}
        for kind in self.faults.keys() & later.faults.keys():
            a, b = self.faults[kind], later.faults[kind]
            sums = a.n_rows + b.n_rows, a.columns + b.columns, a.regimes + b.regimes
            faults[kind] = _Fault(a.row, a.column, a.value, *sums)
        n_rows, regimes = self.n_rows + later.n_rows, self.regimes | later.regimes
        return replace(self, n_rows=n_rows, faults=faults, regimes=regimes)

    def without(self, chunk: Chunk) -> Chunk:
        """The rows of a chunk that can be used; a text among numbers counts as a number."""
        kept = np.ones(chunk.rows.shape[0], dtype=np.bool_)
        for what, (names, codes) in chunk.beside.items():
            # The last is that of the code -1.
            lacking = np.array([not x.strip() or x in self.reading.na for x in names] + [True])
            if (bad := lacking[codes]).any():
                first = _Fault(self.n_rows + int(np.argmax(bad)) + 1)
                self.faults.setdefault(what, first).n_rows += int(np.count_nonzero(bad))
                kept &= ~bad
        for column, (row, text) in chunk.strange.items():
            self.faults.setdefault(f"text {column}", _Fault(self.n_rows + row + 1, column, text))
        # Two fast passes (NaN makes both NaN); the places are searched for only if needed.
        values: Any = chunk.rows if isinstance(chunk.rows, np.ndarray) else chunk.rows.data
        low, high = (float(f(values, initial=0.0)) for f in (np.min, np.max))
        if not (low >= -LARGEST_VALUE and high <= LARGEST_VALUE):
            kept &= self._good(chunk, kept)
        self.n_rows += len(kept)
        return chunk if kept.all() else chunk.select(kept)

    def _good(self, chunk: Chunk, named: BoolArray) -> BoolArray:
        """Which of the named rows have values that can be used."""
        given: Any = chunk.rows
        rows = (given if isinstance(given, np.ndarray) else given.toarray()).astype(np.float64)
        missing = np.isnan(rows) & named[:, None] & (self.reading.missing != "em")
        kept = named & ~missing.any(axis=1)
        drop, (names, codes) = self.reading.missing == "drop", chunk.beside["regime"]
        regimes = np.array([*names, ""], dtype=object)[codes]
        # A row that is left out anyway may hold any other value.
        large = (np.abs(rows) > LARGEST_VALUE) & (kept if drop else named)[:, None]
        for kind, bad in (("dropped" if drop else "missing", missing), ("large", large)):
            if not bad.any():
                continue
            row, column = (int(i) for i in np.argwhere(bad)[0])
            value = float(rows[row, column])
            first = _Fault(self.n_rows + row + 1, self.features[column], value)
            fault, out = self.faults.setdefault(kind, first), np.asarray(bad.any(axis=1))
            fault.n_rows += int(np.count_nonzero(out))
            fault.regimes.update(regimes[out])
            each = np.count_nonzero(bad, axis=0)
            found = np.flatnonzero(each).tolist()
            fault.columns.update({self.features[i]: int(each[i]) for i in found})
        kept &= ~large.any(axis=1)
        self.regimes.update(regimes[named & ~kept])
        return np.asarray(kept, dtype=np.bool_)

    def problems(self) -> list[InputError]:
        """The error of each kind of bad row."""
        found, path = list[InputError](), self.reading.path
        ignore, drop, fill = _IN_PYTHON if path is None else _ON_COMMAND_LINE
        for kind, fault in self.faults.items():
            where = f"column {fault.column!r}, row {fault.row}"
            empty = [name for name, n in fault.columns.items() if n == self.n_rows]
            if kind == "dropped":
                continue
            if not fault.column:
                more = f" (and {pluralise(fault.n_rows - 1, 'more row')})" * (fault.n_rows > 1)
                what = f"row {fault.row} has no {kind}{more}"
                remedy = f"Give every row its {kind}, or remove the row."
                remedy += " If it holds units, remove it." if fault.row == 1 else ""
            elif isinstance(fault.value, str):
                said = fault.value[:60]
                what = f"{where} holds {said!r} among numbers"
                elsewhere = f' (on the command line --na "{said}", in study.toml na = ["{said}"])'
                meant = f"na=[{said!r}]{'' if path is None else elsewhere}"
                remedy = f"Correct such values, or leave the column out with {ignore}. "
                remedy += f"If it stands for a missing value, name it with {meant}."
            elif kind == "large":
                what = f"the value {fault.value:.3g} in {where} is too large"
                remedy = f"Correct or rescale it, or leave the column out with {ignore}."
            elif empty:
                what = f"no row has a value in {few(map(repr, empty), MOST_COLUMNS)}"
                remedy = f"Leave such columns out with {ignore}, or fill in the values."
            else:
                what = f"a value is missing in {where}"
                remedy = f"Leave such rows out with {drop}, or the column with {ignore}; {fill} "
                remedy += "uses the values that are there."
            if fault.columns.total() > 1 and not empty:
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
            self._compare(rows[: MOST_COMPARED - len(self.values), self.whole])
        if len(self.rising):
            still, none = self.rising, np.zeros(rows.shape[1], int)
            first, last, rises = self.runs.get(regime, (rows[0].copy(), rows[0], none))
            steps = np.diff(rows[:, still], axis=0, prepend=last[None, still])
            self.rising = still[(steps >= 0).all(axis=0)]
            rises[still] += np.count_nonzero(steps > 0, axis=0)
            self.runs[regime] = first, rows[-1].copy(), rises

    def _compare(self, own: npt.NDArray[np.number]) -> None:
        """Keep the columns of whole numbers that differ from the earlier ones and each other."""
        kept = (own == np.floor(own)).all(axis=0)
        self.whole, values = self.whole[kept], np.vstack([self.values, own])[:, kept]
        differ = (np.diff(np.sort(values, axis=0), axis=0) > 0).all(axis=0)
        self.whole, self.values = self.whole[differ], values[:, differ]

    def merge(self, later: RowNumbers) -> RowNumbers:
        """With the rows that `later` has seen, which come after these."""
        both = copy(self)
        both.rising = np.intersect1d(self.rising, later.rising)
        both.runs = {**later.runs, **self.runs}
        for regime in self.runs.keys() & later.runs.keys():
            (start, before, earlier), (first, last, rises) = self.runs[regime], later.runs[regime]
            both.rising = both.rising[before[both.rising] <= first[both.rising]]
            both.runs[regime] = start, last, earlier + rises + (before < first)
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
