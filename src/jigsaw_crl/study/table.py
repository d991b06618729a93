"""A table that is read chunk by chunk, and which of its columns are features."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, IntArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.client.reduction import WIDE
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.manifest import Reading

# Chunks of half a million numbers (4 MB) fit the processor's cache; pyarrow reads several ahead.
_CHUNK_VALUES = 1 << 19
# Why a column is not a feature. Those on request are not reported.
BOOLEAN, ON_REQUEST, ROW_INDEX = "boolean", "ignored on request", "a row index"
RISING = "rising from row to row, as a time or a row number does"
IDENTIFIER = "another whole number in every row, as an identifier is"
# What to do if such a column is a measurement after all.
_THEN = {
    BOOLEAN: "encode it as 0 and 1",
    RISING: "shuffle the rows",
    IDENTIFIER: "write it in a unit in which its values are not whole",
}
# The directions of this many columns take a gigabyte with 1,000 latents.
MOST_COLUMNS = 100_000
# Rows that are looked at for a column that may hold the regime. It has at most so many values, each
# in so many rows on average.
HEAD_ROWS, MOST_CANDIDATE_VALUES, ROWS_EACH = 1_000, 1_000, 2
# Wider tables are reduced to directions, among which a covariate is lost.
MOST_WITH_COVARIATES = 2_000
# Values of a possible regime column that are shown, and ignored columns that a warning names.
MOST_VALUES, MOST_WARNED = 5, 4


def chunk_rows(n_features: int) -> int:
    """Number of rows that a reader fetches at a time."""
    return max(256, _CHUNK_VALUES // max(n_features, 1))


def is_sparse(rows: object) -> bool:
    """Are these the rows of a scipy matrix? Only wide tables have such rows."""
    return hasattr(rows, "toarray")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a table.

    Parameters
    ----------
    rows : array, shape (n, features)
    beside : mapping of str to (names, codes)
        The "regime" of each row, and the "batch" and "group" if such columns are named: that of
        row i is `names[codes[i]]`, and missing if the code is -1.
    """

    rows: npt.NDArray[np.number]
    beside: Mapping[str, Coded]

    def select(self, rows: BoolArray | IntArray | slice) -> Chunk:
        """Some of the rows."""
        own = {what: (names, codes[rows]) for what, (names, codes) in self.beside.items()}
        return Chunk(self.rows[rows], own)

    def regimes(self, rows: BoolArray) -> list[str]:
        """The regimes of some rows, one for each."""
        names, codes = self.beside["regime"]
        return [names[code] for code in codes[rows].tolist()]


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
    lacking : tuple of str
        Columns to ignore that the table does not have.
    parts : tuple
        Files of a folder, which may be read apart.
    """

    reading: Reading
    features: tuple[str, ...]
    rows: Callable[[Table], Iterator[Chunk]]
    ignored: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    parts: tuple[Any, ...] = ()

    @property
    def is_wide(self) -> bool:
        """Is it reduced? Filling in missing values and covariates need all columns."""
        reading = self.reading
        return len(self.features) >= WIDE and reading.missing != "em" and not reading.covariates

    def choose(self, features: Sequence[str]) -> Table:
        """The same with these features only, in this order."""
        missing = sorted(set(features) - set(self.features))
        if missing:
            raise self.reading.fail(
                f"columns are missing: {few(missing)}",
                "Pass a table with the columns of the earlier rows.",
            )
        return replace(self, features=tuple(features))

    def places(self, columns: Sequence[str]) -> IntArray | slice:
        """Where the features stand among all columns of a matrix."""
        if self.features == tuple(columns):
            return slice(None)
        position = {name: i for i, name in enumerate(columns)}
        return np.array([position[name] for name in self.features], dtype=np.intp)

    def chunks(self) -> Iterator[Chunk]:
        """The rows in float64 or float32, with NaN for numbers that stand for a missing value."""
        codes: list[float] = []
        for text in self.reading.na:
            with suppress(ValueError):
                codes.append(float(text))
        for chunk in self.rows(self):
            rows = chunk.rows
            if rows.dtype != np.float32:
                rows = rows.astype(np.float64, copy=False)
            if codes and not is_sparse(rows):
                rows = np.where(np.isin(rows, codes), np.nan, rows)
            yield replace(chunk, rows=rows)


# -- columns --------------------------------------------------------------------------------------


def choose_columns(
    reading: Reading,
    columns: Sequence[str],
    rows: Callable[[Table], Iterator[Chunk]],
    *,
    not_numbers: Mapping[str, str],
    beside: Sequence[str] | None = None,
    regime: str = "regime",
    texts: Callable[[], Mapping[str, Sequence[object]]] = dict,
) -> Table:
    """The table: its features, what is ignored, and how it is read.

    Parameters
    ----------
    reading : Reading
    columns : sequence of str
        Columns that may be features.
    rows : callable
        Iterates over the rows of the table.
    not_numbers : mapping of str to str
        Columns without numbers, and what they hold instead.
    beside : sequence of str, optional
        Columns that may hold the regime, the batch or the group; by default the same.
    regime : str
        The regime column if the user names none.
    texts : callable
        Columns of text and their first values: one may hold the regime if there is no such column.
    """
    check_width(len(columns), reading)
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise reading.fail(f"the column {twice!r} appears twice", "Name every column once.")
    known = {*columns, *(beside or ())}
    absent = tuple(name for name in reading.ignore if name not in known)
    if absent and reading.strict_ignore:
        near = did_you_mean(absent[0], columns) or "Check the spelling."
        reading.note(f"there is no column {quoted(absent)} to ignore", near)
    reading = _with_columns(reading, columns if beside is None else beside, regime, texts)
    named = reading.columns(regime).values() if beside is None else ()
    ignored, features = {}, []
    for name in columns:
        if name in named:
            continue
        if name in reading.ignore:
            ignored[name] = ON_REQUEST
        elif name in not_numbers:
            ignored[name] = not_numbers[name]
        elif name.strip() == "" or name == "Unnamed: 0" or name.startswith("__index_level_"):
            ignored[name] = ROW_INDEX
        else:
            features.append(name)
    for name in reading.covariates:
        if name not in features:
            near = did_you_mean(name, features) or "Name a numeric column, or leave it out here."
            raise reading.fail(f"there is no numeric column {name!r} to use as a covariate", near)
    if reading.covariates and len(features) > MOST_WITH_COVARIATES:
        raise reading.fail(
            f"covariates are taken off at most {MOST_WITH_COVARIATES:,} columns",
            "Keep the columns that matter, or take them off before.",
        )
    if not features:
        raise reading.fail(
            "there is no numeric column beside the regime",
            "Every feature is a numeric column of the table.",
        )
    return Table(reading, tuple(features), rows, ignored, absent)


def check_width(count: int, reading: Reading) -> None:
    """Refuse a table with more than `MOST_COLUMNS` columns."""
    if count > MOST_COLUMNS:
        raise reading.fail(
            f"it has {pluralise(count, 'column')}, more than {MOST_COLUMNS}",
            "Keep the columns that matter, or summarise them first.",
        )


def _with_columns(
    reading: Reading,
    columns: Sequence[str],
    default: str,
    texts: Callable[[], Mapping[str, Sequence[object]]],
) -> Reading:
    """The reading without columns of the batch and the group that are missing, which are noted.

    In place of a missing regime column it names the one that is probably meant.
    """
    taken: dict[str, str] = {}
    for what, column in reading.columns(default).items():
        remedy = f"Name the column that holds the {what} of each row with {_naming(reading, what)}."
        fault, hint, other = "", did_you_mean(column, columns), ""
        if column in taken:
            fault, hint = f"the column {column!r} is both the {taken[column]} and the {what}", ""
        elif column not in columns and what == "regime":
            likely = _likely(texts(), reading.control)
            fault = f"there is no column {column!r}"
            fault += "" if likely else f"; the columns are {quoted(columns)}"
            if len(likely) == 1:
                other = next(iter(likely))
            # Without its values, which differ from file to file: the same problem is told once.
            only = f"Is it {other[:60]!r}?" if other else ""
            shown = few((_with_values(name, own) for name, own in likely.items()), 6)
            several = f"Columns that may hold it: {shown}." if likely else ""
            # If no name was given, a similar one means little.
            hint = (hint if reading.regime else "") or only or hint or several
            if not other:
                raise reading.fail(fault, f"{remedy} {hint}".strip())
        elif column not in columns:
            fault = f"there is no column {column!r} for the {what}; the columns are "
            fault += quoted(columns)
        if fault:
            reading.note(fault, f"{remedy} {hint}".strip())
            reading = reading.but(**{what: other})
        taken[column] = what
    return reading


def _naming(reading: Reading, what: str) -> str:
    """How to name a column; a table in memory is read from Python only."""
    if reading.path is None:
        return f"{what}="
    drafted = what == "regime" and reading.path.suffix != ".h5ad"
    drafts = ", which `jigsaw init` drafts" if drafted else ""
    return f"--{what} or in study.toml{drafts}"


def _likely(texts: Mapping[str, Sequence[object]], control: str) -> Mapping[str, Sequence[object]]:
    """Columns that may hold the regime: with the control, with few values, or any of text.

    Of many rows those that are seen first may all have one regime.
    """
    few_values = {}
    for name, values in texts.items():
        n, fewest = len(set(values)), 1 if len(values) >= HEAD_ROWS - 1 else 2
        if fewest <= n <= MOST_CANDIDATE_VALUES and ROWS_EACH * n <= len(values):
            few_values[name] = values
    with_control = {name: values for name, values in texts.items() if control in values}
    return with_control or few_values or dict.fromkeys(texts, ())


def _with_values(name: str, values: Sequence[object]) -> str:
    """A column's name and its first values."""
    own = few((str(value)[:20] for value in dict.fromkeys(values)), MOST_VALUES)
    return f"{name[:60]!r} ({own})" if own else repr(name[:60])


def quoted(names: Sequence[str]) -> str:
    """The first names in quotes, and the number of the others."""
    return few((repr(name[:60]) for name in names), 6)


def ignored_columns(ignored: Mapping[str, str], client: str) -> list[Finding]:
    """A finding for each column that is not used, with the reason; none for those on request."""
    return [
        Finding(
            "ignored-column",
            "info",
            f"the column {column!r} is {why}, so it is not used as a feature",
            "Nothing to do, unless it is a measurement; then "
            f"{_THEN.get(why, 'encode it as numbers')}.",
            client=client,
        )
        for column, why in ignored.items()
        if why != ON_REQUEST
    ]


def warn_of_ignored(findings: Sequence[Finding], *, stacklevel: int) -> None:
    """Warn of ignored columns and regimes, for readers that do not return findings."""
    found = [f for f in findings if f.check in ("ignored-column", "unusable-regime")]
    found = [f for f in found if f" is {ROW_INDEX}, " not in f.message]
    if not found:
        return
    said: dict[str, list[str]] = {}
    for f in found[:MOST_WARNED]:
        said.setdefault(f.remedy, []).append(f.message)
    text = " ".join(f"{'; '.join(messages)}. {remedy}" for remedy, messages in said.items())
    more = f" And {len(found) - MOST_WARNED} more." if len(found) > MOST_WARNED else ""
    warnings.warn(
        f"client {found[0].client!r}: {text}{more} (ignore=[…] names columns that need no warning)",
        stacklevel=stacklevel + 1,
    )
