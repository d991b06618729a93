"""A draft of `study.toml` from the tables of a folder, for `jigsaw init`.

Text files, Parquet tables and Excel sheets are read twice. The first read looks at all values of
every column: which column holds the regime and what its control is called, and which values stand
for missing ones. The second is the reader of all commands, with what the first found: its own
reasons say which columns are no features. Files of other formats are left as they are. What an
earlier `study.toml` says is kept.

- *Regime*: a column of text with few values. One that holds a usual name of the control comes
  first, then one with a usual name of its own, then the only one, then the one whose values are
  labels of other tables.
- *Missing*: texts among the numbers of a column, and a number that is repeated and lies farther
  from all others than these lie from one another, as −9999 does.
- *Units*: what stands in brackets at the end of a column's name ("temp [C]"), or behind its last
  underscore if it is the name of a unit ("flow_m3h").
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, write_text
from jigsaw_crl.base.labels import label_key
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.study.arrow import excel_sheet
from jigsaw_crl.study.collected import USUAL_CONTROLS
from jigsaw_crl.study.data_file import DataFile, open_data, parquet_parts
from jigsaw_crl.study.delimited import csv_texts, is_missing
from jigsaw_crl.study.manifest import MANIFEST, Reading, describe
from jigsaw_crl.study.problems import parts_of
from jigsaw_crl.study.reading import read_study, table_of
from jigsaw_crl.study.regimes import collect, varying_columns
from jigsaw_crl.study.table import MOST_CANDIDATE_VALUES, ON_REQUEST, ROWS_EACH

# How a draft begins.
HEAD = "# Drafted by jigsaw init"
# Usual names of a column with the regime of a row.
REGIMES = re.compile(r"regime|arm|condition|perturb|interven|treatment|experiment|setting|mode")
# A code is written more than once, and few texts of a column are codes.
FEWEST_CODED, MOST_CODES = 3, 5
_DRAFTED = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".xlsx")
_BRACKETS = re.compile(r"[\[(]([^\[\]()]{1,12})[\])]\s*$")
_UNIT = re.compile(
    r"_(degc|degf|[ck]|bar|mbar|k?pa|psi|m3h|m3_h|lpm|l_min|l_h|kg_?h|k?g|mg_?l|rpm|m?v|m?a|k?w|hz|pct|"
    r"percent|ppm|ppb|mm|cm|m|ms|s|min|h|ntu|us_cm)$",
    re.IGNORECASE,
)
_COMMENTS = {
    "regime": "column with the regime of each row",
    "control": "its value on rows without an intervention",
    "na": "values that seem to stand for a missing one",
    "missing": 'leaves out rows with a missing value; "em" uses their other values',
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
    # Words for a missing value, such as "none", which may be the name of a regime too.
    words: Counter[str] = field(default_factory=Counter)
    # The two smallest and the two largest numbers, and how often they occur.
    ends: Counter[float] = field(default_factory=Counter)

    def add(self, values: Any, decimal: str = ".") -> None:
        """Take further values, an array of pyarrow."""
        self.rows += len(values)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if pa.types.is_null(values.type):
            values = values.cast(pa.string())
        counted = pc.value_counts(values)
        unique, counts = counted.field(0), np.asarray(counted.field(1))
        if pa.types.is_string(unique.type) or pa.types.is_large_string(unique.type):
            numbers: FloatArray = self._numbers(unique.to_pandas(), counts, decimal)
        elif pa.types.is_floating(unique.type) or pa.types.is_integer(unique.type):
            numbers = np.asarray(unique.cast(pa.float64(), safe=False).fill_null(np.nan))
        else:
            return
        self.missing += int(counts[np.isnan(numbers)].sum())
        known = np.isfinite(numbers)
        self.numbers += int(counts[known].sum())
        order = np.argsort(numbers[known])
        for i in {*order[:2].tolist(), *order[-2:].tolist()}:
            self.ends[float(numbers[known][i])] += int(counts[known][i])
        for value in sorted(self.ends)[2:-2]:
            del self.ends[value]

    def _numbers(self, unique: Any, counts: FloatArray, decimal: str) -> FloatArray:
        """Unique texts as numbers: NaN for a missing value, infinite for others, which are kept."""
        written = unique.str.replace(decimal, ".", regex=False)
        numbers = np.array(pd.to_numeric(written, errors="coerce"), dtype=np.float64)
        for i in np.flatnonzero(np.isnan(numbers)).tolist():
            text, count = unique[i], int(counts[i])
            if text is None or is_missing(text):
                if text and text.strip():
                    self.words[text] += count
            elif text.strip().casefold() != "nan":
                with suppress(ValueError):
                    # Numbers that Python reads and pandas does not, such as 1_000.
                    numbers[i] = float(written[i])
                    continue
                numbers[i] = np.inf
                if text in self.texts or len(self.texts) <= MOST_CANDIDATE_VALUES:
                    self.texts[text] += count
        return numbers

    @property
    def is_number(self) -> bool:
        """Are most values numbers?"""
        return self.numbers > 0 and self.numbers >= self.texts.total()

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

    @property
    def unusable(self) -> str:
        """Why it is no feature, if it is empty or holds numbers and more texts than codes."""
        if self.missing == self.rows and not self.words:
            return "empty"
        most = MOST_CODES if self.is_number else 0
        return "text among numbers" if self.numbers and len(self.texts) > most else ""

    def codes(self) -> list[str]:
        """Values that seem to stand for a missing one."""
        if not self.is_number:
            return []
        found, ends = sorted(self.texts) if len(self.texts) <= MOST_CODES else [], sorted(self.ends)
        # Both ends are tried first, so that one code hides no other.
        for codes in ((ends[0], ends[-1]), (ends[-1],), (ends[0],)) if len(ends) > 2 else ():
            inner = [x for x in ends if x not in codes]
            width = inner[-1] - inner[0]
            far = (max(inner[0] - x, x - inner[-1]) > width > 0 for x in codes)
            if all(far) and all(self.ends[x] >= FEWEST_CODED for x in codes):
                return [*found, *(f"{x:.15g}" for x in codes)]
        return found


def _looked_at(data: DataFile, reading: Reading) -> dict[str, _Column]:
    """What the columns of a text file, a Parquet table or an Excel sheet hold."""
    found: dict[str, _Column] = {}
    try:
        with readable(data.path):
            for batch, decimal in _batches(data, reading):
                for name, values in zip(batch.schema.names, batch.columns, strict=True):
                    found.setdefault(name, _Column()).add(values, decimal)
    except pa.ArrowException as error:
        what = f"the file cannot be read ({str(error)[:100]})"
        raise reading.fail(what, "Write it again, or leave it out of the folder.") from None
    return found


def _batches(data: DataFile, reading: Reading) -> Iterator[tuple[Any, str]]:
    """All columns of a table, in record batches, and the decimal mark of its texts."""
    folded = data.path.name.casefold()
    if folded.endswith(".xlsx"):
        sheet = excel_sheet(data, reading)
        yield pa.table({str(name): _cells(sheet[name]) for name in sheet}), "."
    elif data.handle is not None and not folded.endswith(".parquet"):
        decimal, texts = csv_texts(data, reading)
        yield from ((batch, decimal) for batch in texts)
    else:
        # One file after the other: a column may hold whole numbers in one and decimals in the next.
        for path, keys in parquet_parts(data.path) if data.handle is None else [(data.path, {})]:
            with parquet.ParquetFile(path) as file:
                yield from ((batch, ".") for batch in file.iter_batches())
                rows = file.metadata.num_rows
                same = {name: pa.repeat(value, rows) for name, value in keys.items()}
                yield from ((batch, ".") for batch in pa.table(same).to_batches())


def _cells(column: Any) -> Any:
    """A column of a data frame as an array of pyarrow; numbers and texts together are texts."""
    with suppress(pa.ArrowException):
        return pa.array(column, from_pandas=True)
    return pa.array(column.astype(str).where(column.notna(), None), pa.string())


# -- one table ------------------------------------------------------------------------------------


@dataclass
class _Table:
    """What is drafted for one client, and why; `said` is what an earlier manifest says of it."""

    reading: Reading
    said: Mapping[str, Any]
    columns: Mapping[str, _Column]
    # Columns that are no features, and the reason.
    ignored: dict[str, str] = field(default_factory=dict)
    lost: str = ""
    # Is the control only the value with most rows?
    guessed: bool = False

    @property
    def values(self) -> Counter[str]:
        """Values of the regime column but the control, and their rows."""
        own = self.columns[self.reading.regime].named
        return Counter({v: n for v, n in own.items() if v != self.reading.control})

    def choose_regime(self, known: set[str]) -> str:
        """The column that holds the regime; empty if it cannot be told from all known labels."""
        if self.said.get("regime") in self.columns:
            return str(self.said["regime"])
        likely = [name for name, column in self.columns.items() if column.may_be_regime]
        shared = {x: sum(label_key(v) in known for v in self.columns[x].named) for x in likely}
        for choice in (
            [name for name in likely if name == "regime"],
            [name for name in likely if _usual_control(self.columns[name].named)],
            [name for name in likely if REGIMES.search(name.casefold())],
            likely if len(likely) == 1 else [],
            [name for name in likely if shared[name] > 0 and shared[name] == max(shared.values())],
        ):
            if choice:
                return choice[0]
        return ""

    def fill(self, regime: str) -> None:
        """Draft how the table is read, from its values and from what the reader says of it."""
        values, said = self.columns[regime].named, self.said
        control = said.get("control") or next(iter(_usual_control(values)), "")
        self.guessed = not control
        others = {name: c for name, c in self.columns.items() if name != regime}
        ignore = said.get("ignore", [])
        codes = {x for name, c in others.items() if name not in ignore for x in c.codes()}
        gaps = any(c.missing for c in others.values() if c.is_number)
        unusable = {name: c.unusable for name, c in others.items() if c.unusable}
        self.reading = self.reading.but(
            regime=regime,
            control=control or max(values, key=lambda v: values[v]),
            na=sorted(codes | {str(x) for x in said.get("na", [])}),
            ignore=[*ignore, *unusable],
            strict_ignore=False,
            missing=said.get("missing") or ("drop" if codes or gaps else "refuse"),
        )
        assert self.reading.path is not None
        with open_data(self.reading.path) as data:
            table = table_of(data, self.reading)
            self.ignored = {**table.ignored, **unusable}
            if table.is_wide:
                return
            collected = collect(table)
        first, others_of = collected.moments()
        _, constant, ignored = collected.used(varying_columns(first, others_of), self.ignored)
        self.ignored = {**dict.fromkeys(constant, "constant"), **ignored}
        if collected.bad.dropped is not None:
            lost = f"{collected.bad.dropped.n_rows:,} of {collected.bad.n_rows:,} rows"
            self.lost = f"{self.reading.client}: {lost}"


def _usual_control(values: Iterable[str]) -> list[str]:
    folded = {v: v.strip().casefold() for v in values}
    plain = [v for v, x in folded.items() if x == "control" or x in USUAL_CONTROLS]
    return plain or [v for v, x in folded.items() if "control" in x]


# -- the manifest ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Draft:
    """The text of a draft, problems that are left, tables that were looked at, and notes."""

    text: str
    problems: tuple[InputError, ...]
    tables: tuple[str, ...]
    notes: tuple[str, ...] = ()


def draft_manifest(folder: Path) -> Draft:
    """A draft of the manifest of a folder; it is read with the draft, which is then valid."""
    if not folder.is_dir():
        raise InputError("it is not a folder", "Name the one with a table per client.", path=folder)
    path = folder / MANIFEST
    described = describe(folder, {}, elsewhere=True)
    said = tomllib.loads(path.read_text("utf-8")) if path.exists() else {}
    left, notes, unread = list[_Table](), list[str](), list[InputError]()
    for reading in described.clients:
        assert reading.path is not None
        if not reading.path.is_dir() and not reading.path.name.casefold().endswith(_DRAFTED):
            notes.append(f"{reading.path.name} is read as it is")
            continue
        own = {**said, **said.get("clients", {}).get(reading.client, {})}
        try:
            with open_data(reading.path) as data:
                left.append(_Table(reading, own, _looked_at(data, reading)))
        except InputError as error:
            unread.append(error.located(client=reading.client, path=reading.path))
    tables = _filled(left, unread)
    notes += [f"{error.client}: {error.what}. {error.remedy}" for error in unread]
    guesses = [f"{t.reading.control!r} ({t.reading.client})" for t in tables if t.guessed]
    if guesses:
        about = f"the control is a guess, the value with most rows: {', '.join(guesses)}"
        notes.insert(0, f"{about}. Correct it if rows without an intervention are called otherwise")
    document = {"name": described.name, **said}
    text = "\n".join(_lines(tables, notes, _drafted(tables, document))) + "\n"
    trial, problems = folder / ".study-draft.toml", tuple[InputError, ...]()
    try:
        write_text(trial, text)
        read_study(trial)
    except InputError as error:
        problems = parts_of(error) if parts_of(error) != (error,) else (error.located(path=folder),)
    finally:
        trial.unlink(missing_ok=True)
    # What the reader says of a table that was not drafted follows from that.
    known_of = {place for error in unread for place in (error.client, error.path)}
    problems = (*unread, *(p for p in problems if not {p.client, p.path} & known_of))
    told = tuple(notes[: bool(guesses)])
    return Draft(text, problems, tuple(t.reading.client for t in tables), told)


def _filled(left: list[_Table], unread: list[InputError]) -> list[_Table]:
    """The tables whose regime column is clear; labels of clear tables tell that of others."""
    tables, known, order = list[_Table](), set[str](), [t.reading.client for t in left]
    while chosen := [(table, column) for table in left if (column := table.choose_regime(known))]:
        for table, column in chosen:
            left.remove(table)
            try:
                table.fill(column)
            except InputError as error:
                unread += [e.located(path=table.reading.path) for e in parts_of(error)]
                continue
            tables.append(table)
            known |= {label_key(v) for v in table.values}
    for table in left:
        likely = {name: c for name, c in table.columns.items() if c.may_be_regime}
        shown = [f"{name!r} holds {few(sorted(c.named), 4)}" for name, c in likely.items()]
        what = f"it is not clear which column holds the regime ({'; '.join(shown[:6])})"
        what = what if shown else "there is no column of text that may hold the regime"
        above = f"[clients.{_toml(table.reading.client)}] and below it"
        remedy = f'Write {above} regime = "COLUMN", then run jigsaw init again.'
        unread.append(table.reading.fail(what, remedy))
    return sorted(tables, key=lambda t: order.index(t.reading.client))


def _drafted(tables: Sequence[_Table], said: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the manifest: what was said before, and what is drafted beside it.

    What holds for all tables stands above them, else below the client's name.
    """
    top: dict[str, Any] = {"clients": {}, **said}
    clients = {t.reading.client: dict(top["clients"].get(t.reading.client, {})) for t in tables}
    top["clients"] = {**top["clients"], **clients}
    for key in ("regime", "control") if tables else ():
        each = {t.reading.client: getattr(t.reading, key) for t in tables}
        top.setdefault(key, Counter(each.values()).most_common(1)[0][0])
        for client, value in each.items():
            if value != top[key]:
                clients[client].setdefault(key, value)
    codes = sorted({code for t in tables for code in t.reading.na})
    missing = {t.reading.missing for t in tables if "missing" not in t.said} - {"refuse"}
    for key, value in (("na", codes), ("missing", next(iter(missing), ""))):
        if value:
            top.setdefault(key, value)
    why = {column: reason for t in reversed(tables) for column, reason in t.ignored.items()}
    why = {column: "" if reason == ON_REQUEST else reason for column, reason in why.items()}
    agreed = [c for c in why if all(c in t.ignored for t in tables if c in t.columns)]
    if agreed:
        earlier = dict.fromkeys(top.get("ignore", []), "")
        top["ignore"] = {**earlier, **{c: why[c] for c in reversed(agreed)}}
    units: dict[str, str] = {}
    for t in tables:
        own = clients[t.reading.client]
        if set(t.ignored) - set(agreed):
            own["ignore"] = t.ignored
        control = label_key(t.reading.control)
        twins = {v: t.reading.control for v in t.values if label_key(v) == control}
        if twins:
            own["rename"] = {**twins, **own.get("rename", {})}
        for column, about in t.columns.items():
            unit = _BRACKETS.search(column) or _UNIT.search(column.strip())
            if unit and about.is_number and column not in t.ignored:
                units[column] = unit.group(1).strip()
    for key, drafted in (("units", units), ("rename", _renames(tables))):
        if drafted or key in top:
            top[key] = {**drafted, **top.get(key, {})}
    return top


def _renames(tables: Sequence[_Table]) -> dict[str, str]:
    """One spelling for each label: the one that most clients write."""
    seen: dict[str, Counter[str]] = {}
    for t in tables:
        for value in t.values:
            if label_key(value) != label_key(t.reading.control) and value not in t.reading.rename:
                seen.setdefault(label_key(value), Counter())[value] += 1
    return {
        value: best
        for found in seen.values()
        for best in [max(sorted(found), key=lambda v: (found[v], v.islower(), not v.isupper()))]
        for value in sorted(found)
        if value != best
    }


def _lines(
    tables: Sequence[_Table], notes: Sequence[str], fields: Mapping[str, Any]
) -> Iterator[str]:
    """The manifest, line by line, with a comment beside what was drafted."""
    yield f"{HEAD} from {pluralise(len(tables), 'table')}: check every line, then"
    yield "# run jigsaw check on this folder. Delete what is wrong; everything is optional."
    yield from (f"# {' '.join(note.split())}" for note in notes)
    if "interventions" not in fields:
        yield "# If targets no longer respond to their causes, as with a setpoint that is held:"
        yield '# interventions = "hard"'
    lost = [t.lost for t in tables if t.lost]
    comments = {**_COMMENTS, "missing": _COMMENTS["missing"] + f" ({few(lost)})" * bool(lost)}

    def entry(key: str, value: Any) -> Iterator[str]:
        about = f"  # {comments[key]}" if key in comments else ""
        if key == "ignore" and isinstance(value, dict):
            # One by one, each with its reason.
            yield "ignore = ["
            yield from (f"  {_toml(c)},  # {why}".removesuffix("  # ") for c, why in value.items())
            yield "]  # columns that are no measurements"
        elif isinstance(value, dict):
            yield f"\n[{key}]{about}"
            yield from (f"{_toml(x)} = {_toml(y)}" for x, y in value.items())
        else:
            yield f"{key} = {_toml(value)}{about}"

    top = {key: value for key, value in fields.items() if key != "clients"}
    for key in sorted(top, key=lambda key: isinstance(top[key], dict) and key != "ignore"):
        yield from entry(key, top[key])
    for client, own in fields["clients"].items():
        if own:
            yield f"\n[clients.{_toml(client)}]"
            for key, value in own.items():
                as_table = isinstance(value, dict) and key != "ignore"
                yield from [f"{key} = {_toml(value)}"] if as_table else entry(key, value)


def _toml(value: object) -> str:
    """A value as TOML, whose basic strings, numbers and lists are those of JSON."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(x)} = {_toml(y)}" for x, y in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
