"""A draft of `study.toml` from the tables of a folder, for `jigsaw init`.

Text files and Parquet tables are read twice. The first read looks at all values of every column:
which column holds the regime and what its control is called, and which values stand for missing
ones. The second is the reader of all commands, with what the first found: its own reasons say which
columns are no features. Files of other formats are left as they are.

- *Regime*: a column of text with few values. One that holds a usual name of the control comes
  first, then one with a usual name of its own, then the only one.
- *Missing*: texts among the numbers of a column, and a number that is repeated and lies farther
  from all others than these lie from one another, as −9999 does.
- *Units*: what stands in brackets at the end of a column's name ("temp [C]"), or behind its last
  underscore if it is the name of a unit ("flow_m3h").
- *Covariates*: columns whose mean and spread no intervention changes. They are only suggested.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text
from jigsaw_crl.base.labels import label_key
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.client.covariates import unchanged
from jigsaw_crl.study.collected import USUAL_CONTROLS
from jigsaw_crl.study.columns import MOST_CANDIDATE_VALUES, ROWS_EACH
from jigsaw_crl.study.data_file import DataFile, open_data, parquet_parts, table_of
from jigsaw_crl.study.delimited import csv_texts, is_missing
from jigsaw_crl.study.manifest import client_files
from jigsaw_crl.study.reading import read_study
from jigsaw_crl.study.regimes import collect, varying_columns
from jigsaw_crl.study.source import Reading
from jigsaw_crl.study.wide import is_wide

__all__ = ["Draft", "draft_manifest"]

# Usual names of a column with the regime, the batch and the group of a row.
REGIMES = re.compile(r"regime|arm|condition|perturb|interven|treatment|experiment|setting|mode")
BATCHES = re.compile(r"batch|plate|lot|day|week|session|campaign|shift")
GROUPS = re.compile(r"subject|patient|donor|animal|person|run|well|unit")
# A code is written more than once, and few texts of a column are codes.
FEWEST_CODED, MOST_CODES = 3, 5
# Rows from which whole numbers without a repetition are an identifier.
FEWEST_IDENTIFIED = 50
# Probability that a column is not suggested as a covariate although nothing changes it.
NOT_SUGGESTED = 0.01
_BRACKETS = re.compile(r"[\[(]([^\[\]()]{1,12})[\])]\s*$")
_UNIT = re.compile(
    r"_(degc|degf|[ck]|bar|mbar|k?pa|psi|m3h|m3_h|lpm|l_min|l_h|kg_?h|k?g|mg_?l|rpm|m?v|m?a|k?w|hz|pct|"
    r"percent|ppm|ppb|mm|cm|m|ms|s|min|h|ntu|us_cm)$",
    re.IGNORECASE,
)
IDENTIFIER = "a number of its own in every row, as an identifier"


@dataclass
class _Column:
    """What is seen of the values of one column, chunk by chunk."""

    rows: int = 0
    missing: int = 0
    numbers: int = 0
    # Values that are not numbers and how often they occur; a few more than may be regimes.
    texts: Counter[str] = field(default_factory=Counter)
    # Words for a missing value, such as "none", which may be the name of a regime too.
    words: Counter[str] = field(default_factory=Counter)
    # The two smallest and the two largest numbers, and how often they occur.
    low: dict[float, int] = field(default_factory=dict)
    high: dict[float, int] = field(default_factory=dict)
    # Whole numbers, as long as none of them is repeated.
    single: set[float] | None = field(default_factory=set)

    def add(self, values: Any, decimal: str = ".") -> None:
        """Take further values, an array of pyarrow."""
        self.rows += len(values)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        counted = pc.value_counts(values)
        unique, counts = counted.field(0), np.asarray(counted.field(1))
        if pa.types.is_string(unique.type) or pa.types.is_large_string(unique.type):
            numbers = self._numbers(unique, counts, decimal)
        elif pa.types.is_floating(unique.type) or pa.types.is_integer(unique.type):
            numbers = np.asarray(unique.cast(pa.float64(), safe=False).fill_null(np.nan))
        else:
            return
        self.missing += int(counts[np.isnan(numbers)].sum())
        known = np.isfinite(numbers)
        self._take(numbers[known], counts[known])

    def _numbers(self, unique: Any, counts: FloatArray, decimal: str) -> FloatArray:
        """Unique texts as numbers: NaN for a missing value, infinite for others, which are kept."""
        if decimal != ".":
            unique = pc.replace_substring(unique, decimal, ".")
        with suppress(pa.ArrowInvalid):
            return np.asarray(unique.cast(pa.float64()).fill_null(np.nan))
        out = np.full(len(unique), np.inf)
        for i, (text, count) in enumerate(zip(unique.to_pylist(), counts.tolist(), strict=True)):
            if text is None or is_missing(text):
                out[i] = np.nan
                if text and text.strip():
                    self.words[text] += count
                continue
            try:
                out[i] = float(text)
            except ValueError:
                if text in self.texts or len(self.texts) <= MOST_CANDIDATE_VALUES:
                    self.texts[text] += count
        return out

    def _take(self, numbers: FloatArray, counts: FloatArray) -> None:
        self.numbers += int(counts.sum())
        order = np.argsort(numbers)
        for edge, ends, sign in ((self.low, order[:2], 1.0), (self.high, order[-2:], -1.0)):
            for i in ends.tolist():
                value = float(numbers[i])
                edge[value] = edge.get(value, 0) + int(counts[i])
            for value in sorted(edge, key=lambda x: sign * x)[2:]:
                del edge[value]
        if self.single is not None:
            own = set(numbers.tolist())
            new = (counts == 1).all() and (numbers == np.round(numbers)).all()
            self.single = self.single | own if new and not self.single & own else None

    @property
    def is_number(self) -> bool:
        """Are most values numbers?"""
        return self.numbers > 0 and self.numbers >= self.texts.total()

    @property
    def is_identifier(self) -> bool:
        return self.is_number and len(self.single or ()) >= FEWEST_IDENTIFIED

    @property
    def named(self) -> Counter[str]:
        """All values but numbers and empty cells, and how often they occur."""
        return self.texts + self.words

    @property
    def may_be_regime(self) -> bool:
        """Has it few values, which are not numbers, each in several rows?"""
        n = len(self.named)
        few_values = 2 <= n <= MOST_CANDIDATE_VALUES and ROWS_EACH * n <= self.rows
        return not self.is_number and few_values

    def codes(self) -> list[str]:
        """Values that seem to stand for a missing one."""
        if not self.is_number:
            return []
        texts = sorted(self.texts) if len(self.texts) <= MOST_CODES else []
        return [*texts, *(f"{value:.15g}" for value in self._numeric_codes())]

    def _numeric_codes(self) -> list[float]:
        low, high = sorted(self.low), sorted(self.high, reverse=True)
        if len({*low, *high}) < 3:
            return []
        found: list[float] = []
        # With both ends, then with the upper end alone as a code, so that one hides no other.
        for inner in ((low[1], high[1]), (low[0], high[1]), (low[1], high[0])):
            width = inner[1] - inner[0]
            ends = ((low[0], self.low[low[0]]), (high[0], self.high[high[0]]))
            found = [
                x
                for x, count in ends
                if count >= FEWEST_CODED and max(inner[0] - x, x - inner[1]) > width > 0
            ]
            outside = sum(1 for x, _ in ends if x not in inner)
            if len(found) == outside:
                return found
        return []


def _usual_control(values: Iterable[str]) -> list[str]:
    folded = {v: v.strip().casefold() for v in values}
    plain = [v for v, x in folded.items() if x == "control" or x in USUAL_CONTROLS]
    return plain or [v for v, x in folded.items() if "control" in x]


def _looked_at(data: DataFile, reading: Reading) -> dict[str, _Column]:
    """What the columns of a text file or a Parquet table hold."""
    found: dict[str, _Column] = {}

    def look(batches: Iterable[Any], decimal: str = ".") -> None:
        for batch in batches:
            for name, values in zip(batch.schema.names, batch.columns, strict=True):
                found.setdefault(name, _Column()).add(values, decimal)

    if not _is_parquet(data):
        decimal, texts = csv_texts(data, reading)
        look(texts, decimal)
        return found
    parts: Sequence[tuple[Path, Mapping[str, str]]] = [(data.path, {})]
    for path, keys in parquet_parts(data.path) if data.handle is None else parts:
        try:
            with parquet.ParquetFile(path) as file:
                look(file.iter_batches())
                for name, value in keys.items():
                    values = pa.repeat(value, file.metadata.num_rows)
                    found.setdefault(name, _Column()).add(values)
        except pa.ArrowException as error:
            raise reading.fail(f"the file cannot be read ({str(error)[:100]})", "") from None
    return found


def _is_parquet(data: DataFile) -> bool:
    return data.handle is None or data.path.name.casefold().endswith(".parquet")


@dataclass(frozen=True)
class _Table:
    """What is drafted for one client, and why."""

    reading: Reading
    columns: Mapping[str, _Column]
    # Columns that are no features, and the reason.
    ignored: Mapping[str, str] = field(default_factory=dict)
    covariates: tuple[str, ...] = ()
    incomplete: int = 0
    rows: int = 0

    @property
    def values(self) -> Counter[str]:
        """Values of the regime column but the control, and their rows."""
        own = self.columns[self.reading.regime or "regime"].named
        return Counter({v: n for v, n in own.items() if v != self.reading.control})


def _drafted(path: Path) -> _Table:
    """How one table is read, from its values and from what the reader says of its columns."""
    plain = Reading(path)
    with open_data(path) as data:
        columns = _looked_at(data, plain)
        regime = _regime_column(columns, plain)
        values = columns[regime].named
        control = (_usual_control(values) or [max(values, key=lambda v: values[v])])[0]
        codes = sorted({c for name, col in columns.items() if name != regime for c in col.codes()})
        gaps = any(c.missing for c in columns.values() if c.is_number)
        identifiers = tuple(n for n, c in columns.items() if c.is_identifier and n != regime)
        mixed = tuple(
            name
            for name, c in columns.items()
            if name != regime and c.numbers and len(c.texts) > (MOST_CODES if c.is_number else 0)
        )
        reading = replace(
            plain, regime=regime, control=control, na=tuple(codes),
            missing="drop" if codes or gaps else "refuse", ignore=(*identifiers, *mixed),
        )  # fmt: skip
        why = dict.fromkeys(mixed, "text among numbers") | dict.fromkeys(identifiers, IDENTIFIER)
        table = _Table(reading, columns, why, rows=columns[regime].rows)
        source = table_of(data, reading).without(reading.na)
        if is_wide(len(source.features), reading):
            return replace(table, ignored={**source.ignored, **why})
        collected = collect(source, reading, None)
        first, others = collected.moments()
        varying = varying_columns(first, others)
        kept, constant, ignored = collected.used(varying, source.ignored)
        features = [f for f, keep in zip(source.features, kept, strict=True) if keep]
        regimes = [m.select(kept) for ms in others.values() for m in ms]
        same = unchanged(first.select(kept), regimes, NOT_SUGGESTED)
        alike = tuple(f for f, is_same in zip(features, same, strict=True) if is_same)
        reasons = {**dict.fromkeys(constant, "constant"), **ignored, **why}
        return replace(
            table,
            ignored=reasons,
            covariates=() if len(alike) == len(features) else alike,
            incomplete=collected.bad.incomplete.total(),
        )


def _regime_column(columns: Mapping[str, _Column], reading: Reading) -> str:
    likely = [name for name, column in columns.items() if column.may_be_regime]
    named = [name for name in columns if REGIMES.search(name.casefold())]
    for choice in (
        [name for name in likely if name == "regime"],
        [name for name in likely if _usual_control(columns[name].named)],
        [name for name in likely if name in named],
        likely if len(likely) == 1 else [],
    ):
        if choice:
            return choice[0]
    shown = "; ".join(f"{n!r} holds {few(sorted(columns[n].named), 4)}" for n in likely[:6])
    raise reading.fail(
        f"it is not clear which column holds the regime ({shown or 'no text column'})",
        f'Write [clients.{reading.client}] and below it regime = "COLUMN".',
    )


# -- the text -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draft:
    """The text of a draft, problems that are left, and tables that were looked at."""

    text: str
    problems: tuple[InputError, ...]
    tables: tuple[str, ...]


def draft_manifest(folder: Path) -> Draft:
    """A draft of the manifest of a folder; it is read with the draft, which is then valid."""
    if not folder.is_dir():
        raise InputError("it is not a folder", "Name the one with a table per client.", path=folder)
    tables: list[_Table] = []
    notes: list[str] = []
    for path in client_files(folder):
        if not path.is_dir() and not path.name.casefold().endswith(_DRAFTED):
            notes.append(f"{path.name} is read as it is")
            continue
        try:
            tables.append(_drafted(path))
        except InputError as error:
            notes.append(f"{path.name}: {error.what}. {error.remedy}")
    text = "\n".join(_lines(folder.resolve().name, tables, notes)) + "\n"
    trial, problems = folder / ".study-draft.toml", tuple[InputError, ...]()
    try:
        write_text(trial, text)
        read_study(trial)
    except InputError as error:
        problems = getattr(error, "parts", (error.located(path=folder),))
    finally:
        trial.unlink(missing_ok=True)
    return Draft(text, problems, tuple(t.reading.client for t in tables))


_DRAFTED = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def _lines(name: str, tables: Sequence[_Table], notes: Sequence[str]) -> Iterator[str]:
    yield f"# Drafted by jigsaw init from {pluralise(len(tables), 'table')}: check every line, then"
    yield "# run jigsaw check on this folder. Delete what is wrong; everything is optional."
    yield from (f"# {note}" for note in notes)
    yield f"name = {_toml(name)}"
    if not tables:
        return
    readings = [t.reading for t in tables]
    common = {key: _most(getattr(r, key) for r in readings) for key in ("regime", "control")}
    yield f"regime = {_toml(common['regime'])}  # column with the regime of each row"
    yield f"control = {_toml(common['control'])}  # its value on rows without an intervention"
    own: dict[str, list[str]] = {r.client: [] for r in readings}
    for key, value in common.items():
        for r in readings:
            if getattr(r, key) != value:
                own[r.client].append(f"{key} = {_toml(getattr(r, key))}")
    for key, comment in (
        ("na", "values that seem to stand for a missing one"),
        ("missing", 'leaves out rows with a missing value; "em" uses their other values'),
    ):
        each = {r.client: getattr(r, key) for r in readings}
        if len(set(each.values())) == 1:
            value = next(iter(each.values()))
            if value not in ((), "refuse"):
                yield f"{key} = {_toml(value)}  # {comment}"
            continue
        for t in tables:
            value, lost = each[t.reading.client], ""
            if key == "missing" and t.incomplete:
                lost = f": {t.incomplete:,} of {t.rows:,} rows"
            if value not in ((), "refuse"):
                own[t.reading.client].append(f"{key} = {_toml(value)}  # {comment}{lost}")
    yield from _ignored(tables, own)
    yield from _suggestions(tables)
    yield from _units(tables)
    yield from _renames(tables)
    for t in tables:
        twins = [v for v in t.values if label_key(v) == label_key(t.reading.control)]
        if twins:
            named = ", ".join(f"{_toml(v)} = {_toml(t.reading.control)}" for v in twins)
            own[t.reading.client].append(f"rename = {{ {named} }}  # the control, spelt otherwise")
    for client, lines in own.items():
        if lines:
            yield f"\n[clients.{_toml(client)}]"
            yield from lines


def _ignored(tables: Sequence[_Table], own: dict[str, list[str]]) -> Iterator[str]:
    """Columns that are no features: above all tables where all clients agree on them."""
    why: dict[str, str] = {}
    for t in tables:
        for column, reason in t.ignored.items():
            why.setdefault(column, reason)
    shared = [c for c in why if all(c in t.ignored for t in tables if c in t.columns)]
    if shared:
        yield "ignore = ["
        yield from (f"  {_toml(column)},  # {why[column]}" for column in shared)
        yield "]  # columns that are no measurements"
    for t in tables:
        if set(t.ignored) - set(shared):
            own[t.reading.client].append("ignore = [")
            own[t.reading.client] += [f"  {_toml(c)},  # {r}" for c, r in t.ignored.items()]
            own[t.reading.client].append("]")


def _suggestions(tables: Sequence[_Table]) -> Iterator[str]:
    """What only the user can decide, as comments."""
    texts = dict.fromkeys(
        name
        for t in tables
        for name, c in t.columns.items()
        if name != t.reading.regime and len(c.texts) + len(c.low) > 1
    )
    for key, words, meaning in (
        ("batch", BATCHES, "if all rows of one value may be offset together"),
        ("group", GROUPS, "if rows of one value are alike"),
    ):
        for name in texts:
            if words.search(name.casefold()):
                yield f"# {key} = {_toml(name)}  # {meaning}"
    alike = dict.fromkeys(name for t in tables for name in t.covariates)
    if alike:
        yield f"# covariates = {_toml(list(alike))}  # if they are causes that you only measure:"
        yield "#   no intervention changes their mean or spread; also per client"
    yield '# interventions = "hard"  # if targets no longer respond to their causes'


def _units(tables: Sequence[_Table]) -> Iterator[str]:
    """Units that the names of columns tell."""
    found: dict[str, str] = {}
    for t in tables:
        for name, column in t.columns.items():
            unit = _BRACKETS.search(name) or _UNIT.search(name)
            if unit and column.is_number and name not in t.ignored:
                found[name] = unit.group(1).strip()
    if found:
        yield '\n# [up]  # label = "COLUMN": the sensor that a label should raise'
        yield "\n[units]  # from the names of columns"
        yield from (f"{_toml(name)} = {_toml(unit)}" for name, unit in found.items())


def _renames(tables: Sequence[_Table]) -> Iterator[str]:
    """One spelling for each label: the one that most clients write."""
    seen: dict[str, Counter[str]] = {}
    for t in tables:
        for value in t.values:
            if label_key(value) == label_key(t.reading.control):
                continue
            seen.setdefault(label_key(value), Counter())[value] += 1
    lines = [
        f"{_toml(value)} = {_toml(best)}"
        for found in seen.values()
        for best in [max(sorted(found), key=lambda v: (found[v], v.islower(), "_" in v))]
        for value in sorted(found)
        if value != best
    ]
    if lines:
        yield "\n[rename]  # spellings of one label"
        yield from lines


def _most(values: Iterable[Any]) -> Any:
    return Counter(values).most_common(1)[0][0]


def _toml(value: object) -> str:
    """A text or a list of texts as TOML, whose basic strings are those of JSON."""
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
