"""CSV and Parquet files, read in batches by pyarrow.

Imported only for such files, because pyarrow takes a tenth of a second to load.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.study.columns import BOOLEAN, feature_columns, few_valued
from jigsaw_crl.study.data_file import DataFile
from jigsaw_crl.study.limits import check_columns, parquet_parts
from jigsaw_crl.study.problems import passable
from jigsaw_crl.study.source import Chunk, Codes, Naming, Source, chunk_rows

__all__ = ["csv_source", "parquet_source"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|[+-]?nan", re.I)
# A number with a fraction after a comma or point; one with a comma that may separate thousands.
_FRACTION = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b|\d{1,2}:\d{2}\b")
_MISSING = {"", "na", "n/a", "#n/a", "null", "none"}
_HEAD_BYTES = 1 << 20
_HEAD_ROWS = 1_000
# A row of 100,000 columns takes two megabytes.
_HEAD_LINES, _MOST_HEAD_BYTES = 4, 1 << 26
_CSV_BLOCK = 1 << 22

Fail = Callable[..., InputError]


def _arrow_source(
    features: tuple[str, ...],
    ignored: Mapping[str, str],
    naming: Naming,
    tables: Callable[[], Iterator[tuple[Any, Mapping[str, str]]]],
    path: Path,
    client: str,
    *,
    lacking: tuple[str, ...],
    header: Sequence[str] = (),
) -> Source:
    """A source of pyarrow record batches, each with the values of columns that it lacks."""

    def chunks() -> Iterator[Chunk]:
        with readable(path):
            try:
                for table, constant in tables():
                    yield _chunk(table, features, naming, constant)
            except pa.ArrowException as error:
                raise _unreadable(error, path, client, header, naming.ignore) from None

    return Source(features, chunks, ignored, lacking)


def _chunk(
    table: Any, features: Sequence[str], naming: Naming, constant: Mapping[str, str]
) -> Chunk:
    """A record batch as numbers: missing values become NaN, missing regimes the code -1."""
    n = table.num_rows
    # float32 if every column is; sums are in float64 anyway.
    position = {name: i for i, name in enumerate(table.schema.names)}
    # By position: a name is looked for among all columns.
    columns = [table.column(position[name]) for name in features]
    single = all(types.is_float32(column.type) for column in columns)
    rows = np.empty((n, len(features)), np.float32 if single else np.float64, order="F")
    for i, column in enumerate(columns):
        if types.is_decimal(column.type):
            column = column.cast(pa.float64())
        rows[:, i] = column.to_numpy(zero_copy_only=False)
    regimes, codes = _coded(table, naming.column(), constant)
    own = {what: _coded(table, name, constant) for what, name in naming.beside.items()}
    return Chunk(regimes, codes, rows, own.get("batch"), own.get("group"))


def _coded(table: Any, name: str, constant: Mapping[str, str]) -> tuple[list[str], Codes]:
    """The values of a column as text, and the code of each row; -1 where it is missing."""
    if name in constant:
        return [constant[name]], np.zeros(table.num_rows, dtype=np.int32)
    column = table.column(name)
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    encoded = pc.dictionary_encode(column.cast(pa.string()))
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.to_pylist(), codes


def _unreadable(
    error: Exception,
    path: Path,
    client: str,
    header: Sequence[str] = (),
    ignored: tuple[str, ...] = (),
) -> InputError:
    """The error of a broken file, or of a value that is not a number."""
    fail = partial(InputError, client=client, path=path)
    text = " ".join(str(error).split())
    value = re.search(r"In CSV column #(\d+):(?: Row #(\d+):)? .*invalid value '(.*)'", text)
    if value:
        row = f", row {int(value.group(2)) - 1}" if value.group(2) else ""
        column = int(value.group(1))
        known = column < len(header)
        name = repr(header[column]) if known else str(column + 1)
        spoilt = fail(
            f"column {name}{row} holds {value.group(3)[:60]!r} among numbers",
            "Correct such values, or leave the column out with --ignore.",
        )
        return passable(spoilt, ignore=(*ignored, header[column])) if known else spoilt
    return fail(
        f"the file cannot be read ({text[:200]})",
        "Write it again; it may be truncated or of another format.",
    )


# -- CSV ----------------------------------------------------------------------------------------


def csv_source(data: DataFile, naming: Naming, client: str) -> Source:
    """A text file with commas, semicolons or tabs; the first line names the columns."""
    fail = partial(InputError, client=client, path=data.path)
    regime = naming.column()
    with readable(data.path):
        header, sample, delimiter, longest = _head(data, regime, fail)
    check_columns(len(header), fail)
    named = [regime, *naming.beside.values()]
    ignore, lacking = naming.ignored_among(header)
    cells = _cells(header, sample, {*named, *ignore})
    decimal = _decimal_point(cells, delimiter, fail)
    not_numbers = _text_columns(cells, decimal)
    if regime not in header:
        # Only columns with the control in them are suggested as the regime, or of few values.
        held = [n for n in not_numbers if naming.control in cells[n]]
        likely = held or few_valued({n: cells[n] for n in not_numbers}) or not_numbers
        not_numbers = {n: not_numbers[n] for n in likely}
    features, ignored = feature_columns(
        header, not_numbers, regime, ignore, path=data.path, client=client, beside=naming.beside
    )
    if not sample:
        raise fail("there are no rows below the header", "Check that the file is complete.")
    column_types = dict.fromkeys(features, pa.float64()) | dict.fromkeys(named, pa.string())

    # A block must hold a whole line; later lines may be longer than the first ones.
    block = max(_CSV_BLOCK, 4 * longest)

    def tables() -> Iterator[tuple[Any, Mapping[str, str]]]:
        options = {
            "read_options": arrow_csv.ReadOptions(block_size=block, use_threads=False),
            "parse_options": arrow_csv.ParseOptions(delimiter=delimiter),
            "convert_options": arrow_csv.ConvertOptions(
                column_types=column_types,
                include_columns=[*named, *features],
                strings_can_be_null=True,
                decimal_point=decimal,
            ),
        }
        with data.copy() as file:
            stream = pa.input_stream(file, compression=_compression(data))
            with arrow_csv.open_csv(stream, **options) as reader:
                for table in reader:
                    yield table, {}

    return _arrow_source(
        features, ignored, naming, tables, data.path, client, lacking=lacking, header=header
    )


def _compression(data: DataFile) -> str | None:
    return "gzip" if data.path.suffix.casefold() == ".gz" else None


def _first_bytes(data: DataFile, fail: Fail) -> tuple[bytes, bool]:
    """The first megabyte, or more until a few lines are complete; and is this the whole file?"""
    file: Any = data.from_start()
    if _compression(data):
        file = gzip.GzipFile(fileobj=file)
    first = b""
    while len(first) < _MOST_HEAD_BYTES:
        more = file.read(_HEAD_BYTES)
        first += more
        if len(more) < _HEAD_BYTES:
            return first, True
        if first.count(b"\n") >= _HEAD_LINES:
            return first, False
    raise fail(
        f"the first {_HEAD_LINES} lines are longer than {_MOST_HEAD_BYTES >> 20} MB",
        "Check that this is a table, with one row per line.",
    )


def _delimiter(first: str, regime: str) -> str:
    """The delimiter that makes the regime a column of the header, or else most columns."""
    columns: dict[str, list[str]] = {}
    for delimiter in ",;\t":
        try:
            columns[delimiter] = next(csv.reader([first], delimiter=delimiter), [])
        except csv.Error:
            # A line of 128 kB without this delimiter.
            columns[delimiter] = []
    return max(columns, key=lambda d: (regime in columns[d], len(columns[d])))


def _head(data: DataFile, regime: str, fail: Fail) -> tuple[list[str], list[list[str]], str, int]:
    """Header, first rows, delimiter, and the bytes of the longest of these lines."""
    first_bytes, complete = _first_bytes(data, fail)
    try:
        # The data may end inside a character.
        text = first_bytes.decode("utf-8-sig", errors="strict" if complete else "ignore")
    except UnicodeDecodeError:
        raise fail("the file is not text in UTF-8", "Save it as CSV in UTF-8.") from None
    if not text.strip():
        raise fail("the file is empty", "Check the file.")
    if "\0" in text:
        raise fail("the file is not text", "Save it as CSV, or use its own ending.")
    delimiter = _delimiter(text.splitlines()[0], regime)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        header = next(reader)
        sample = [row for row, _ in zip(reader, range(_HEAD_ROWS), strict=False) if row]
    except csv.Error as error:
        raise fail(f"the file is not CSV ({error})", "Save it again as CSV.") from None
    longest = max(map(len, first_bytes.splitlines()))
    return header, sample[:-1] if sample and not complete else sample, delimiter, longest


def _cells(header: list[str], sample: list[list[str]], skipped: set[str]) -> dict[str, list[str]]:
    """The first values of each column that may be a feature, without missing ones."""
    columns = {}
    for i, name in enumerate(header):
        if name not in skipped:
            cells = (row[i].strip() for row in sample if i < len(row))
            columns[name] = [c for c in cells if c.casefold() not in _MISSING]
    return columns


def _decimal_point(columns: Mapping[str, list[str]], delimiter: str, fail: Fail) -> str:
    """The sign before the decimals of a number: a point, or a comma where no number has a point."""
    seen: dict[str, tuple[str, str]] = {}
    thousands = delimiter != ";"
    for name, cells in columns.items():
        for cell in cells:
            match = _FRACTION.fullmatch(cell)
            if match:
                seen.setdefault(match.group(1), (name, cell))
                thousands &= match.group(1) == "." or bool(_THOUSANDS.fullmatch(cell))
    if "," not in seen:
        return "."
    name, cell = seen[","]
    if "." in seen:
        other, point = seen["."]
        raise fail(
            f"the column {name!r} has decimal commas ({cell!r}) and {other!r} decimal points "
            f"({point!r})",
            "Write all numbers of a file in one way.",
        )
    if thousands:
        raise fail(
            f"the commas in the column {name!r} ({cell!r}) may be decimal commas or separate "
            "thousands",
            "Write numbers with a decimal point and without separators.",
        )
    return ","


def _text_columns(columns: Mapping[str, list[str]], decimal: str) -> dict[str, str]:
    """Columns whose first values are not numbers, and what they are instead."""
    text = {}
    for name, cells in columns.items():
        if not cells or any(_NUMBER.fullmatch(c.replace(decimal, ".")) for c in cells):
            continue
        boolean = all(c.casefold() in ("true", "false") for c in cells)
        date = all(_DATE.match(c) for c in cells)
        text[name] = BOOLEAN if boolean else "a date or time" if date else "text"
    return text


# -- Parquet ------------------------------------------------------------------------------------


def parquet_source(
    data: DataFile, naming: Naming, client: str, *, only: Path | None = None
) -> Source:
    """A Parquet file, or a folder of them, which may be partitioned by `regime=value`.

    With `only`, the rows of this file of the folder, with the features of the whole.
    """
    path = data.path
    fail = partial(InputError, client=client, path=path)
    regime = naming.column()
    with readable(path):
        files = [(path, {})] if data.handle is not None else parquet_parts(path)
    if only is not None:
        # The first file says what the features are.
        files = files[:1] + [part for part in files[1:] if part[0] == only]
    if not files:
        raise fail("the folder holds no Parquet file", "Check the path.")

    def opened(part: Path) -> Any:
        """The client's one open file, or the path of a part of its folder."""
        return part if data.handle is None else data.from_start()

    layouts = []
    for file, keys in files:
        with readable(file):
            try:
                schema = parquet.read_schema(opened(file))
            except pa.ArrowException as error:
                raise _unreadable(error, file, client) from None
        layouts.append((file, keys, schema))
    first, keys, schema = layouts[0]
    columns = [*schema.names, *(k for k in keys if k not in schema.names)]
    check_columns(len(columns), fail)
    named = {"regime": regime, **naming.beside}
    not_numbers = {
        f.name: why
        for f in schema
        if (why := _why_not_numeric(f.type)) and f.name not in named.values()
    } | {k: "a partition" for k in keys if k not in named.values()}
    ignore, lacking = naming.ignored_among(columns)
    features, ignored = feature_columns(
        columns, not_numbers, regime, ignore, path=first, client=client, beside=naming.beside
    )
    for file, found, other in layouts:
        _check_part(other, found, features, named, partial(fail, path=file))

    def tables() -> Iterator[tuple[Any, Mapping[str, str]]]:
        for file, keys, schema in layouts:
            if only is not None and file != only:
                continue
            inside = [name for name in named.values() if name in schema.names]
            constant = {name: keys[name] for name in named.values() if name not in inside}
            wanted = [*features, *inside]
            # Neither mapped nor pre-fetched, so that memory does not grow with the row groups.
            with parquet.ParquetFile(
                opened(file), buffer_size=1 << 16, pre_buffer=False, page_checksum_verification=True
            ) as reader:
                for table in reader.iter_batches(chunk_rows(len(features)), columns=wanted):
                    yield table, constant

    return _arrow_source(features, ignored, naming, tables, path, client, lacking=lacking)


def _why_not_numeric(kind: Any) -> str:
    if types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return ""
    return BOOLEAN if types.is_boolean(kind) else f"of type {kind}"[:80]


def _check_part(
    schema: Any,
    keys: dict[str, str],
    features: Sequence[str],
    named: Mapping[str, str],
    fail: Fail,
) -> None:
    """Raise an `InputError` unless a file has all features and what else is said of rows."""
    kinds = dict(zip(schema.names, schema.types, strict=True))
    for name in features:
        if name not in kinds:
            raise fail(
                f"the column {name!r} of the client's other files is missing here",
                "Write every part with the same columns.",
            )
        why = _why_not_numeric(kinds[name])
        if why:
            raise fail(
                f"the column {name!r} is {why} here and numeric in the client's other files",
                "Write every part with the same types.",
            )
    for what, name in named.items():
        if name in schema.names:
            kind = schema.field(name).type
            value = kind.value_type if types.is_dictionary(kind) else kind
            text = types.is_string(value) or types.is_large_string(value)
            if not (text or types.is_integer(value)):
                raise fail(f"the {what} column {name!r} is of type {kind}", "Store it as text.")
        elif keys.get(name) in (None, "__HIVE_DEFAULT_PARTITION__"):
            raise fail(
                f"no column and no folder of the path gives {name!r}",
                f"Store it as a column or in a folder {name}=VALUE.",
            )
