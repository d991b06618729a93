"""Parquet files, sheets of Excel and tables in memory: record batches of pyarrow become rows.

Imported only for such tables, because pyarrow takes a tenth of a second to load.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types
from pyarrow import csv, parquet

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.data_file import DataFile, fits, parquet_parts
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import BOOLEAN, HEAD_ROWS, Chunk, Table, choose_columns, chunk_rows

# What pyarrow takes as a missing number.
NULLS = csv.ConvertOptions().null_values
# What pyarrow raises for a broken file, whose names may not be UTF-8.
BROKEN = (pa.ArrowException, UnicodeDecodeError)
# A page of a Parquet file may claim so many bytes.
_LARGEST_PAGE = 1 << 31


class Spoilt(InputError):
    """A column holds a text among numbers; the file can be read without it."""

    column: str = ""


def chunks_of(
    table: Table, batches: Iterable[tuple[Any, Mapping[str, str]]], header: Sequence[str] = ()
) -> Iterator[Chunk]:
    """The rows of record batches; errors of pyarrow become an `InputError`.

    Each batch comes with the values of the columns that it lacks. `header` names the columns of a
    text file, whose first row is the header to pyarrow.
    """
    with readable(table.reading.path or Path()):
        try:
            for batch, constant in batches:
                yield _chunk(batch, table, constant)
        except BROKEN as error:
            raise unreadable(error, table.reading, header) from None


def _chunk(batch: Any, table: Table, constant: Mapping[str, str]) -> Chunk:
    """A record batch as numbers: missing values become NaN, missing regimes the code -1."""
    # By position: a name is looked for among all columns.
    position = {name: i for i, name in enumerate(batch.schema.names)}
    columns = [batch.column(position[name]) for name in table.features]
    # float32 if every column is; sums are in float64 anyway.
    single = all(types.is_float32(column.type) for column in columns)
    shape = (batch.num_rows, len(columns))
    rows = np.empty(shape, np.float32 if single else np.float64, order="F")
    for i, column in enumerate(columns):
        if types.is_decimal(column.type):
            column = column.cast(pa.float64())
        rows[:, i] = column.to_numpy(zero_copy_only=False)
    own: dict[str, Coded] = {}
    for what, name in table.reading.columns().items():
        if name in constant:
            own[what] = [constant[name]], np.zeros(batch.num_rows, dtype=np.int32)
            continue
        encoded = batch.column(position[name])
        if not types.is_dictionary(encoded.type):
            encoded = pc.dictionary_encode(encoded.cast(pa.string()))
        # Of a broken file, codes may lie outside the dictionary, and texts may not be UTF-8.
        encoded.validate(full=True)
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        own[what] = encoded.dictionary.cast(pa.string()).to_pylist(), codes
    return Chunk(rows, own)


def unreadable(error: Exception, reading: Reading, header: Sequence[str] = ()) -> InputError:
    """The error of a broken file, or of a value that is not a number."""
    text = " ".join(str(error).split())
    value = re.search(r"In CSV column #(\d+):(?: Row #(\d+):)? .*invalid value '(.*)'", text)
    if value:
        row = f", row {int(value.group(2)) - 1}" if value.group(2) else ""
        column, said = int(value.group(1)), value.group(3)[:60]
        if column < len(header):
            what = f"column {header[column]!r}{row} holds {said!r} among numbers"
            return spoilt(reading, header[column], what, said)
    if "straddling object" in text:
        return reading.fail(
            "a line is longer than the first ones let expect",
            "Check that every quote is closed, and that there is one row per line.",
        )
    text = re.sub(r"Row #(\d+)", lambda found: f"row {int(found.group(1)) - 1}", text)
    return reading.fail(
        f"the file cannot be read ({text[:200]})",
        "Write it again; it may be truncated or of another format.",
    )


def spoilt(reading: Reading, column: str, what: str, value: str) -> Spoilt:
    """The error of a text among the numbers of a column."""
    meant = f"If it stands for a missing value, name it with na=[{value!r}]"
    remedy = f"Correct such values, or leave the column out with ignore=[…]. {meant}."
    if reading.path is not None:
        meant += f' (on the command line --na "{value}", in study.toml na = ["{value}"])'
        remedy = f"Correct such values, or leave the column out with --ignore. {meant}."
    error = Spoilt(what, remedy, client=reading.client, path=reading.path)
    error.column = column
    return error


def _why_not_numeric(kind: Any) -> str:
    if types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return ""
    return BOOLEAN if types.is_boolean(kind) else f"of type {kind}"[:80]


def _is_text(kind: Any) -> bool:
    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value))


# -- Parquet ------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A Parquet file, the `key=value` pairs of its path, and its schema."""

    path: Path
    keys: Mapping[str, str]
    schema: Any


def parquet_table(data: DataFile, reading: Reading) -> Table:
    """A Parquet file, or a folder of them, which may be partitioned by `regime=value`."""
    with readable(data.path):
        files = [(data.path, {})] if data.handle is not None else parquet_parts(data.path)
    if not files:
        raise reading.fail("the folder holds no Parquet file", "Check the path.")
    parts = []
    for path, keys in files:
        with readable(path):
            try:
                parts.append(Part(path, keys, parquet.read_schema(_source(data, path))))
            except BROKEN as error:
                raise unreadable(error, reading.at(path)) from None
    # The first file says what the features are.
    first = parts[0]
    partitions = [key for key in first.keys if key not in first.schema.names]
    not_numbers = {f.name: why for f in first.schema if (why := _why_not_numeric(f.type))}

    def texts() -> Mapping[str, Sequence[object]]:
        names = [f.name for f in first.schema if _is_text(f.type) and f.name not in reading.ignore]
        head: dict[str, Any] = {}
        # A broken file is refused when its rows are read.
        with (
            suppress(StopIteration, *BROKEN),
            parquet.ParquetFile(_source(data, first.path)) as file,
        ):
            head = next(batch.to_pydict() for batch in file.iter_batches(HEAD_ROWS, columns=names))
        return head | dict.fromkeys(partitions, ())

    table = choose_columns(
        reading.at(first.path),
        [*first.schema.names, *partitions],
        partial(_parquet_rows, data),
        not_numbers=not_numbers | dict.fromkeys(partitions, "a partition"),
        texts=texts,
    )
    for part in parts:
        _check_part(part, table)
    return replace(table, parts=tuple(parts), reading=table.reading.at(data.path))


def _source(data: DataFile, path: Path) -> Any:
    return path if data.handle is None else data.from_start()


def _parquet_rows(data: DataFile, table: Table) -> Iterator[Chunk]:
    return chunks_of(table, _parquet_batches(data, table))


def _parquet_batches(data: DataFile, table: Table) -> Iterator[tuple[Any, Mapping[str, str]]]:
    """Record batches of the table's parts, with the values that their paths give."""
    named = table.reading.columns().values()
    for path, keys, schema in table.parts:
        wanted = [*table.features, *(name for name in named if name in schema.names)]
        constant = {name: key for name, key in keys.items() if name not in wanted}
        # Texts stay dictionaries: one that many rows share is held once.
        texts = [n for n in wanted if n in named and types.is_string(schema.field(n).type)]
        size = data.size if data.handle is not None else path.stat().st_size
        with parquet.ParquetFile(
            _source(data, path),
            read_dictionary=texts,
            # Neither mapped nor pre-fetched, and of a large file not even a row group is held as a
            # whole. A buffer takes what a page claims to hold, so a small file is read without one.
            buffer_size=1 << 16 if fits(_LARGEST_PAGE, size) else 0,
            pre_buffer=False,
            page_checksum_verification=True,
        ) as file:
            _check_sizes(file.metadata, size, table.reading.at(path))
            for batch in file.iter_batches(chunk_rows(len(table.features)), columns=wanted):
                yield batch, constant


def _check_part(part: Part, table: Table) -> None:
    """Raise an `InputError` unless a file has all features, and regime, batch and group as text."""
    reading = table.reading.at(part.path)
    kinds = dict(zip(part.schema.names, part.schema.types, strict=True))
    for name in table.features:
        if name not in kinds:
            raise reading.fail(
                f"the column {name!r} of the client's other files is missing here",
                "Write every part with the same columns.",
            )
        if why := _why_not_numeric(kinds[name]):
            raise reading.fail(
                f"the column {name!r} is {why} here and numeric in the client's other files",
                "Write every part with the same types.",
            )
    for what, name in reading.columns().items():
        if name in kinds:
            kind = kinds[name]
            value = kind.value_type if types.is_dictionary(kind) else kind
            if not (_is_text(kind) or types.is_integer(value)):
                raise reading.fail(
                    f"the {what} column {name!r} is of type {kind}", "Store it as text."
                )
        elif part.keys.get(name) in (None, "__HIVE_DEFAULT_PARTITION__"):
            raise reading.fail(
                f"no column and no folder of the path gives {name!r}",
                f"Store it as a column or in a folder {name}=VALUE.",
            )


def _check_sizes(metadata: Any, size: int, reading: Reading) -> None:
    """Refuse rows that would unpack to far more than the file holds, before they are read."""
    for i in range(metadata.num_row_groups):
        # Not of each column: of some broken files, asking for one ends the process.
        unpacked = metadata.row_group(i).total_byte_size
        if not fits(unpacked, size):
            raise reading.fail(
                f"the row group {i + 1} would take {unpacked >> 20} MB of memory, from a file of "
                f"{size} bytes",
                "Write it again with shorter texts, or in smaller row groups.",
            )


# -- tables in memory ---------------------------------------------------------------------------


def excel_table(data: DataFile, reading: Reading) -> Table:
    """The first sheet of an Excel file."""
    return frame_table(excel_sheet(data, reading), reading)


def excel_sheet(data: DataFile, reading: Reading) -> Any:
    """The first sheet of an Excel file as a data frame, which pandas reads as a whole."""
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    try:
        with zipfile.ZipFile(data.from_start()) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
        if not fits(unpacked, data.size):
            raise ValueError(f"it would unpack to {unpacked >> 20} MB")
        gaps = [*NULLS, *reading.na]
        return pd.read_excel(
            data.from_start(), keep_default_na=False, na_values=gaps, engine="openpyxl"
        )
    except ImportError:
        raise reading.fail(
            "openpyxl, which reads Excel files, is not installed",
            "Run pip install openpyxl, or save the sheet as CSV.",
        ) from None
    except Exception as error:
        # openpyxl raises many types for a broken file.
        raise reading.fail(
            f"the file cannot be read as Excel ({str(error)[:150]})", "Save the sheet as CSV."
        ) from None


def frame_table(frame: Any, reading: Reading) -> Table:
    """The rows of a pandas, polars or pyarrow table, or of another that narwhals supports."""
    # Imported here because narwhals takes a tenth of a second to load.
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    try:
        given = nw.from_native(frame)
    except (TypeError, NarwhalsError) as error:
        raise reading.fail(
            f"the {type(frame).__name__} cannot be used as a table ({str(error)[:100]})",
            "Pass a pandas, polars or pyarrow table with one name per column.",
        ) from None
    if isinstance(given, nw.LazyFrame):
        given = given.collect()
    # pandas numbers the columns of a plain array.
    columns = [str(column) for column in given.columns]
    named = {name: what for what, name in reading.columns().items()}
    whole, not_numbers = dict[str, Any](), dict[str, str]()
    for i, name in enumerate(columns):
        own = given[:, i]
        if name in named:
            gaps = zip(own.to_list(), own.is_null().to_list(), strict=True)
            values = [None if gap else str(value) for value, gap in gaps]
            whole[name] = pa.array([None if x in reading.na else x for x in values], pa.string())
            if own.dtype.is_float():
                what = named[name]
                remedy = f"Store {what}{'es' if what == 'batch' else 's'} as text."
                reading.note(f"the {what} column {name!r} holds decimal numbers", remedy)
        elif name not in reading.ignore:
            whole[name], why = _column(own, name, reading)
            not_numbers |= {name: why} if why else {}

    def texts() -> Mapping[str, Sequence[object]]:
        return {
            name: x.to_pylist() for name, x in whole.items() if x is not None and _is_text(x.type)
        }

    def rows(table: Table) -> Iterator[Chunk]:
        wanted = [*table.features, *table.reading.columns().values()]
        batches = pa.table({name: whole[name] for name in wanted})
        step = chunk_rows(len(table.features))
        return chunks_of(table, ((batch, {}) for batch in batches.to_batches(step)))

    return choose_columns(reading, columns, rows, not_numbers=not_numbers, texts=texts)


def _column(own: Any, name: str, reading: Reading) -> tuple[Any, str]:
    """A column of a table in memory, and why it is no feature; a spoilt one is noted."""
    broken = (pa.ArrowException, TypeError, ValueError, OverflowError)
    with suppress(*broken):
        found = own.to_arrow()
        return found, _why_not_numeric(found.type)
    values = [None if isinstance(v, str) and v in reading.na else v for v in own.to_list()]
    if any(isinstance(v, complex) for v in values):
        reading.note(
            f"the column {name!r} holds complex numbers",
            "Store the real and the imaginary part as two columns, or drop the column.",
        )
        return None, "complex"
    with suppress(*broken):
        found = pa.array(values)
        return found, _why_not_numeric(found.type)
    if any(isinstance(v, int | float) and not isinstance(v, bool) and v == v for v in values):
        strange = next((v for v in values if isinstance(v, str)), None)
        what = "objects" if strange is None else repr(strange[:60])
        what = f"the column {name!r} holds {what} among numbers"
        reading.problems.append(spoilt(reading, name, what, strange or "VALUE"))
    return None, "of no single type"
