"""A table that is read chunk by chunk, and which of its columns are features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, IntArray
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.reduction import BLOCK_ROWS, WIDE_TABLE
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.manifest import Reading

# Chunks of half a million numbers (4 MB) fit the processor's cache; pyarrow reads several ahead.
_CHUNK_VALUES = 1 << 19
# Why a column is not a feature. Those on request are not reported.
BOOLEAN, TEXT, ON_REQUEST, ROW_INDEX = "boolean", "text", "ignored on request", "a row index"
RISING = "rising from row to row, as a time or a row number does"
IDENTIFIER = "another whole number in every row, as an identifier is"
# What to do if such a column is a measurement after all.
THEN = {
    BOOLEAN: "encode it as 0 and 1",
    RISING: "shuffle the rows",
    IDENTIFIER: "write it in a unit in which its values are not whole",
}
# The directions of this many columns take a gigabyte with 1,000 latents.
MOST_COLUMNS = 100_000
# A text that is a number.
NUMBER = re.compile(
    r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|[+-]?nan", re.IGNORECASE
)
# Rows that are looked at for a column that may hold the regime.
HEAD_ROWS = 1_000
# Wider tables are reduced to directions, among which a covariate is lost.
MOST_WITH_COVARIATES = 2_000
# Values of a possible regime column that are shown.
MOST_VALUES = 5


def chunk_rows(n_features: int) -> int:
    """Number of rows that a reader fetches at a time."""
    return max(BLOCK_ROWS, _CHUNK_VALUES // max(n_features, 1))


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a table.

    Parameters
    ----------
    rows : array, shape (n, features)
        Of a wide table it may be a scipy CSR matrix.
    beside : mapping of str to (names, codes)
        The "regime" of each row, and the "batch" and "group" if such columns are named: that of
        row i is `names[codes[i]]`, and missing if the code is -1.
    strange : mapping of str to (int, str)
        Columns with a text that is no number: the row of the first one, from 0, and the text.
    """

    rows: npt.NDArray[np.number]
    beside: Mapping[str, Coded]
    strange: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def select(self, rows: BoolArray | IntArray) -> Chunk:
        """Some of the rows."""
        own = {what: (names, codes[rows]) for what, (names, codes) in self.beside.items()}
        return Chunk(self.rows[rows], own)


@dataclass(frozen=True, eq=False)
class Table:
    """A table that is read chunk by chunk.

    Parameters
    ----------
    reading : Reading
        How it is read: without columns that are not there.
    features : tuple of str
    rows : callable
        Iterates over the rows of the table that it is given.
    ignored : mapping of str to str
        Columns that are not features, and why.
    known : frozenset of str
        All its columns.
    parts : tuple
        Files of a folder, which may be read apart.
    wide : bool
        Is it reduced? Filling in missing values and covariates need all columns.
    """

    reading: Reading
    features: tuple[str, ...]
    rows: Callable[[Table], Iterator[Chunk]]
    ignored: Mapping[str, str] = field(default_factory=dict)
    known: frozenset[str] = frozenset()
    parts: tuple[Any, ...] = ()
    wide: bool = False

    def places(self, columns: Sequence[str]) -> IntArray | slice:
        """Where the features stand among all columns of a matrix."""
        if self.features == tuple(columns):
            return slice(None)
        position = {name: i for i, name in enumerate(columns)}
        return np.array([position[name] for name in self.features], dtype=np.intp)


# -- columns --------------------------------------------------------------------------------------


def choose_columns(
    reading: Reading,
    columns: Sequence[str],
    rows: Callable[[Table], Iterator[Chunk]],
    held: Mapping[str, str],
    *,
    beside: Mapping[str, str] | None = None,
    parts: Sequence[Any] = (),
) -> Table:
    """The table: its features, what is ignored, and how it is read.

    Parameters
    ----------
    reading : Reading
    columns : sequence of str
        Columns that may be features.
    rows : callable
        Iterates over the rows of the table.
    held : mapping of str to str
        What columns without numbers hold.
    beside : mapping of str to str, optional
        Columns that may hold the regime, the batch or the group, likewise; by default the same.
    parts : sequence
        Files of a folder.
    """
    most = MOST_WITH_COVARIATES if reading.covariates else MOST_COLUMNS
    if len(columns) > most:
        what = f"it has {pluralise(len(columns), 'column')}, more than {most}"
        what += " from which covariates are taken off" if reading.covariates else ""
        raise reading.fail(what, "Keep the columns that matter, or summarise them first.")
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise reading.fail(f"the column {twice!r} appears twice", "Name every column once.")
    among = {**dict.fromkeys(columns, ""), **held} if beside is None else beside
    known, named = frozenset([*columns, *among]), dict[str, str]()
    table = Table(reading, (), rows, parts=tuple(parts), known=known)
    for what, column in reading.named.items():
        if column not in among or column in named.values():
            column = _other(table, what, among, named)
        named |= {what: column} if column else {}
    reading = reading.model_copy(update={"named": named})
    ignored, features = {}, []
    for name in columns:
        if beside is None and name in named.values():
            continue
        if name in reading.ignore:
            ignored[name] = ON_REQUEST
        elif name in held:
            ignored[name] = held[name]
        elif name.strip() == "" or name == "Unnamed: 0" or name.startswith("__index_level_"):
            ignored[name] = ROW_INDEX
        else:
            features.append(name)
    for name in reading.covariates:
        if name not in features:
            near = did_you_mean(name, features) or "Name a numeric column, or leave it out here."
            raise reading.fail(f"there is no numeric column {name!r} to use as a covariate", near)
    if not features:
        raise reading.fail(
            "there is no numeric column beside the regime",
            "Every feature is a numeric column of the table.",
        )
    wide = len(features) >= WIDE_TABLE and reading.missing != "em" and not reading.covariates
    return replace(table, reading=reading, features=tuple(features), ignored=ignored, wide=wide)


def _other(table: Table, what: str, held: Mapping[str, str], named: Mapping[str, str]) -> str:
    """The column that is probably meant where the one of the regime is missing; "" for others.

    That the column of the regime, batch or group is missing, or taken already, is noted.
    """
    reading, column, columns = table.reading, table.reading.named[what], list(held)
    with_what = f"{what}="
    if reading.path is not None:
        # A table in memory is read from Python only.
        drafted = what == "regime" and reading.ending != ".h5ad"
        with_what = f"--{what} or in study.toml{', which `jigsaw init` drafts' if drafted else ''}"
    remedy = f"Name the column that holds the {what} of each row with {with_what}."
    fault, hint, other = f"there is no column {column!r}", did_you_mean(column, columns), ""
    if taken := [x for x, own in named.items() if own == column]:
        fault, hint = f"the column {column!r} is both the {taken[0]} and the {what}", ""
    elif what != "regime":
        fault += f" for the {what}; the columns are {quoted(columns)}"
    else:
        texts = [x for x, holds in held.items() if holds == TEXT and x not in reading.ignore]
        values = dict[str, list[str]]()
        for name in texts:
            named_so = reading.model_copy(update={"named": {"regime": name}})
            first = next(table.rows(replace(table, reading=named_so)), None)
            names, codes = ([], np.empty(0)) if first is None else first.beside["regime"]
            values[name] = [names[code] for code in codes[:HEAD_ROWS].tolist() if code >= 0]
        likely = [name for name, own in values.items() if reading.control in own]
        # Without its values, which differ from file to file: the same problem is told once.
        other = likely[0] if len(likely) == 1 else ""
        several = [name for name, own in values.items() if 2 * len(set(own)) <= len(own)]
        firsts = {x: (value[:20] for value in dict.fromkeys(values[x])) for x in texts if values[x]}
        held_by = [x for x in likely or several or texts if x in firsts]
        shown = few((f"{x[:60]!r} ({few(firsts[x], MOST_VALUES)})" for x in held_by), 6)
        fault += "" if shown else f"; the columns are {quoted(columns)}"
        # If no name was given, a similar one means little.
        hint = (hint if reading.regime else "") or (f"Is it {other[:60]!r}?" if other else hint)
        if not other:
            hint = f"{hint} Columns that may hold it: {shown}." if shown else hint
            raise reading.fail(fault, f"{remedy} {hint}".strip())
    reading.note(fault, f"{remedy} {hint}".strip())
    return other


def quoted(names: Sequence[str]) -> str:
    """The first names in quotes, and the number of the others."""
    return few((repr(name[:60]) for name in names), 6)
