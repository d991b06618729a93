"""A draft of `study.toml` from the tables of a folder, for `jigsaw init`.

All values of text files, Parquet tables and Excel sheets are looked at: which column holds the
regime and what its control is called, which texts stand for missing numbers, and which columns hold
no numbers. What else is no feature, the reader of all commands says. Files of other formats are
left as they are.

- *Regime*: a column of text with few values. One that holds a usual name of the control comes
  first, then one with a usual name of its own, then the only one, then the one whose values are
  labels of other tables.
- *Missing*: a few texts without digits among the numbers of a column.
- *Units*: what stands in brackets at the end of a column's name ("temp [C]").
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype
from pyarrow import parquet

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import label_key, misspelt, respelt
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.study.arrow import excel_sheet
from jigsaw_crl.study.collected import USUAL_CONTROLS
from jigsaw_crl.study.delimited import csv_batches, csv_head
from jigsaw_crl.study.files import describe, opened, parquet_parts, reading_as
from jigsaw_crl.study.manifest import MANIFEST, Reading

# Usual names of a column with the regime of a row.
REGIMES = re.compile(r"regime|arm|condition|perturb|interven|treatment|experiment|setting|mode")
# A column of regimes has at most so many values, each in so many rows on average.
MOST_VALUES, ROWS_EACH = 1_000, 2
# More texts among numbers are not codes for a missing value.
MOST_CODES = 5
_DRAFTED = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".xlsx")
_BRACKETS = re.compile(r"[\[(]([^\[\]()]{1,12})[\])]\s*$")
_COMMENTS = {
    "regime": "column with the regime of each row",
    "control": "its value on rows without an intervention",
    "na": "values that seem to stand for a missing one",
    "missing": 'leaves out rows with a missing value; "em" uses their other values',
    "ignore": "columns that are no measurements",
    "units": "from the names of columns",
    "rename": "spellings of one label",
}


# -- what the columns hold ------------------------------------------------------------------------


@dataclass
class _Column:
    """What is seen of the values of one column, chunk by chunk."""

    rows: int = 0
    missing: int = 0
    numbers: int = 0
    # Values that are not numbers and how often they occur; a few more than may be regimes.
    texts: Counter[str] = field(default_factory=Counter)

    def add(self, values: pd.Series, decimal: str) -> None:
        """Take further values."""
        self.rows += len(values)
        known = values.dropna()
        if not (is_numeric_dtype(known) or is_datetime64_any_dtype(known)):
            known = known.astype(str)
            known = known[known.str.strip() != ""]
            numbers = pd.to_numeric(known.str.replace(decimal, ".", regex=False), errors="coerce")
            for text, count in known[numbers.isna()].value_counts().items():
                if text in self.texts or len(self.texts) <= MOST_VALUES:
                    self.texts[str(text)] += int(count)
            self.numbers += int(numbers.notna().sum())
        elif is_numeric_dtype(known) and not is_bool_dtype(known):
            self.numbers += len(known)
        self.missing += len(values) - len(known)

    @property
    def is_number(self) -> bool:
        """Are most values numbers?"""
        return self.numbers > 0 and self.numbers >= self.texts.total()

    @property
    def may_be_regime(self) -> bool:
        """Has it few values, which are not numbers, each in several rows?"""
        n = len(self.texts)
        few_values = 2 <= n <= MOST_VALUES and ROWS_EACH * n <= self.rows
        return not self.is_number and few_values

    @property
    def unusable(self) -> str:
        """Why it is no feature, if it is empty or holds more texts than codes."""
        if self.missing == self.rows:
            return "empty"
        if self.is_number and len(self.texts) <= MOST_CODES:
            return ""
        return "text among numbers" if self.numbers else "no numbers"

    @property
    def codes(self) -> set[str]:
        """Texts that seem to stand for a missing number; one with a digit may be a value."""
        return {x for x in self.texts if not self.unusable and not any(map(str.isdigit, x))}


def _looked_at(reading: Reading) -> dict[str, _Column]:
    """What the columns of a text file, a Parquet table or an Excel sheet hold."""
    found: dict[str, _Column] = {}
    with reading_as("a table", "Write it again, or leave it out of the folder", reading):
        for frame, decimal in _frames(reading):
            for name in frame:
                found.setdefault(str(name), _Column()).add(frame[name], decimal)
    return found


def _frames(reading: Reading) -> Iterator[tuple[pd.DataFrame, str]]:
    """All columns of a table, some rows at a time, and the decimal mark of its texts."""
    if reading.ending == ".xlsx":
        yield excel_sheet(reading), "."
    elif reading.ending != ".parquet":
        head = csv_head(reading)
        batches = csv_batches(reading, head, head.header)
        yield from ((batch.to_pandas(), head.decimal) for batch in batches)
    else:
        for path, _, keys in parquet_parts(reading):
            with parquet.ParquetFile(path) as file:
                yield from ((x.to_pandas().assign(**keys), ".") for x in file.iter_batches())


# -- one table ------------------------------------------------------------------------------------


@dataclass
class _Table:
    """What is drafted for one client, and why."""

    reading: Reading
    columns: Mapping[str, _Column]
    # Columns that are no features, and the reason.
    ignored: dict[str, str] = field(default_factory=dict)

    @property
    def labels(self) -> list[str]:
        """Values of the regime column but the control, whose other spellings are renamed."""
        control = {self.reading.control, *self.reading.rename}
        own = self.columns.get(self.reading.regime, _Column())
        return [value for value in own.texts if value not in control]

    def fill(self, known: set[str]) -> None:
        """Draft how the table is read, if all known labels tell which column holds the regime."""
        likely = {
            name: column.texts for name, column in self.columns.items() if column.may_be_regime
        }
        reasons = {
            name: (
                name == "regime",
                bool(_usual_control(own)),
                bool(REGIMES.search(name.casefold())),
                sum(label_key(value) in known for value in own),
            )
            for name, own in likely.items()
        }
        regime = max(likely, key=lambda name: reasons[name], default="")
        if not regime or (len(likely) > 1 and not any(reasons[regime])):
            return
        values, usual = likely[regime], _usual_control(likely[regime])
        control = usual[0] if usual else max(values, key=lambda v: values[v])
        others = {name: c for name, c in self.columns.items() if name != regime}
        self.ignored = {name: c.unusable for name, c in others.items() if c.unusable}
        codes = {x for c in others.values() for x in c.codes}
        gaps = any(c.missing for c in others.values() if not c.unusable)
        same = (v for v in values if v != control and label_key(v) == label_key(control))
        drafted = {
            "regime": regime,
            "control": control,
            "rename": dict.fromkeys(same, control),
            "na": sorted(codes),
            "missing": "drop" if codes or gaps else "refuse",
        }
        self.reading = self.reading.model_copy(update=drafted)


def _usual_control(values: Iterable[str]) -> list[str]:
    folded = {v: v.strip().casefold() for v in values}
    plain = [v for v, x in folded.items() if x == "control" or x in USUAL_CONTROLS]
    return plain or [v for v, x in folded.items() if "control" in x]


# -- the manifest ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draft:
    """The text of a draft, tables that it could not tell, those that it could, and notes."""

    text: str
    unread: tuple[InputError, ...]
    tables: tuple[str, ...]
    notes: tuple[str, ...]


def draft_manifest(folder: Path) -> Draft:
    """A draft of the manifest of a folder that has none."""
    if not folder.is_dir():
        raise InputError("it is not a folder", "Name the one with a table per client.", path=folder)
    if (folder / MANIFEST).exists():
        what, remedy = "it is there already and is not overwritten", "Rename it to draft another."
        raise InputError(what, remedy, path=folder / MANIFEST)
    described = describe(folder)
    tables, unread, notes = list[_Table](), list[InputError](), list[str]()
    for reading in described.clients:
        assert reading.path is not None
        if reading.ending not in _DRAFTED:
            notes.append(f"{reading.path.name} is read as it is")
            continue
        try:
            with opened(reading) as own:
                tables.append(_Table(reading, _looked_at(own)))
        except InputError as error:
            unread.append(error.located(client=reading.client, path=reading.path))
    for _ in range(2):
        # Labels of clear tables tell the regime column of others.
        known = {label_key(label) for table in tables for label in table.labels}
        for table in (table for table in tables if not table.reading.regime):
            table.fill(known)
    for table in (table for table in tables if not table.reading.regime):
        likely = {name: c for name, c in table.columns.items() if c.may_be_regime}
        shown = [f"{name!r} holds {few(sorted(c.texts), 4)}" for name, c in likely.items()]
        what = f"it is not clear which column holds the regime ({'; '.join(shown[:6])})"
        what = what if shown else "there is no column of text that may hold the regime"
        where = f"[clients.{_toml(table.reading.client)}] in study.toml"
        unread.append(table.reading.fail(what, f'Write regime = "COLUMN" below {where}.'))
    tables = [table for table in tables if table.reading.regime]
    notes += [f"{error.client}: {error.what}. {error.remedy}" for error in unread]
    readings = [t.reading for t in tables if not _usual_control([t.reading.control])]
    if guesses := [f"{reading.control!r} ({reading.client})" for reading in readings]:
        notes.append(f"the control is a guess, the value with most rows: {', '.join(guesses)}")
    text = "\n".join(_lines(described.name, tables, notes)) + "\n"
    return Draft(text, tuple(unread), tuple(t.reading.client for t in tables), tuple(notes))


def _lines(name: str, tables: Sequence[_Table], notes: Sequence[str]) -> Iterator[str]:
    """The manifest, line by line, with a comment beside every entry.

    What holds for all tables stands above them, else below the client's name.
    """
    yield f"# Drafted by jigsaw init from {pluralise(len(tables), 'table')}: check every line, then"
    yield "# run jigsaw check on this folder. Delete what is wrong; everything is optional."
    yield from (f"# {' '.join(note.split())}" for note in notes)
    yield "# If targets no longer respond to their causes, as with a setpoint that is held:"
    yield '# interventions = "hard"'
    columns = {x: reason for t in reversed(tables) for x, reason in reversed(t.ignored.items())}
    agreed = [x for x in columns if all(x in t.ignored for t in tables if x in t.columns)]
    common: dict[str, Any] = {"name": name}
    for key in ("regime", "control") if tables else ():
        ((common[key], _),) = Counter(getattr(t.reading, key) for t in tables).most_common(1)
    common["na"] = sorted({code for t in tables for code in t.reading.na})
    common["missing"] = "drop" if any(t.reading.missing == "drop" for t in tables) else ""
    common["ignore"] = {x: columns[x] for x in reversed(agreed)}
    yield from _entries(common)
    units = {
        column: found.group(1).strip()
        for t in tables
        for column, about in t.columns.items()
        if (found := _BRACKETS.search(column)) and about.is_number and column not in t.ignored
    }
    renames = {x: y for own in respelt(t.labels for t in tables) for x, y in own.items()}
    slips = misspelt([renames.get(x, x) for x in t.labels] for t in tables)
    for key, drafted in (("units", units), ("rename", renames | slips)):
        if drafted:
            yield f"\n[{key}]  # {_COMMENTS[key]}"
            for x, y in drafted.items():
                entry = f"{_toml(x)} = {_toml(y)}"
                asked = key == "rename" and x in slips
                yield f"# {entry}  # is it a misspelling?" if asked else entry
    for t in tables:
        own = {key: getattr(t.reading, key) for key in ("regime", "control", "rename")}
        own["ignore"] = t.ignored if set(t.ignored) - set(agreed) else {}
        if lines := list(_entries({key: x for key, x in own.items() if x != common.get(key)})):
            yield from ("", f"[clients.{_toml(t.reading.client)}]", *lines)


def _entries(fields: Mapping[str, Any]) -> Iterator[str]:
    """The fields of a manifest that have a value; columns to ignore with their reasons."""
    for key, value in fields.items():
        about = f"  # {_COMMENTS[key]}" if key in _COMMENTS else ""
        if key == "ignore" and value:
            yield "ignore = ["
            yield from (f"  {_toml(column)},  # {reason}" for column, reason in value.items())
            yield f"]{about}"
        elif isinstance(value, dict) and value:
            yield f"{key} = {{ {', '.join(f'{_toml(x)} = {_toml(y)}' for x, y in value.items())} }}"
        elif value:
            yield f"{key} = {_toml(value)}{about}"


def _toml(value: object) -> str:
    """A value as TOML, whose basic strings, numbers and lists are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
