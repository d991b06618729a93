"""Parquet files, sheets of Excel and tables in memory: record batches of pyarrow become rows.

Imported only for such tables, because pyarrow takes a tenth of a second to load.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

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
from jigsaw_crl.study.table import (
    BOOLEAN,
    Chunk,
    Table,
    choose_columns,
    chunk_rows,
    few_valued,
)

# Record batches, each with the values of columns that it lacks.
Batches = Iterator[tuple[Any, Mapping[str, str]]]
# Rows that are looked at for a column that may hold the regime.
_HEAD_ROWS = 1_000
# What pyarrow takes as a missing number.
NULLS = csv.ConvertOptions().null_values
# What pyarrow raises for a broken file, whose names may not be UTF-8.
BROKEN = (pa.ArrowException, UnicodeDecodeError)


class Spoilt(InputError):
    """A column holds a text among numbers; the file can be read without it."""

    column: str = ""


def with_batches(table: Table, batches: Callable[[], Batches], header: Sequence[str] = ()) -> Table:
    """The table with the rows of record batches; errors of pyarrow become an `InputError`.

    `header` names the columns of a text file, whose first row is the header to pyarrow.
    """

    def chunks() -> Iterator[Chunk]:
        with readable(table.reading.path or Path()):
            try:
                for batch, constant in batches():
                    yield _chunk(batch, table.features, table.reading, constant)
            except BROKEN as error:
                raise unreadable(error, table.reading, header) from None

    return replace(table, chunks=chunks)


def _chunk(
    batch: Any, features: Sequence[str], reading: Reading, constant: Mapping[str, str]
) -> Chunk:
    """A record batch as numbers: missing values become NaN, missing regimes the code -1."""
    # By position: a name is looked for among all columns.
    position = {name: i for i, name in enumerate(batch.schema.names)}
    columns = [batch.column(position[name]) for name in features]
    # float32 if every column is; sums are in float64 anyway.
    single = all(types.is_float32(column.type) for column in columns)
    shape = (batch.num_rows, len(features))
    rows = np.empty(shape, np.float32 if single else np.float64, order="F")
    for i, column in enumerate(columns):
        if types.is_decimal(column.type):
            column = column.cast(pa.float64())
        rows[:, i] = column.to_numpy(zero_copy_only=False)
    own: dict[str, Coded] = {}
    for what, name in reading.columns().items():
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


# -- Parquet ------------------------------------------------------------------------------------


def parquet_table(data: DataFile, reading: Reading, *, only: Path | None = None) -> Table:
    """A Parquet file, or a folder of them, which may be partitioned by `regime=value`.

    With `only`, the rows of this file of the folder, with the features of the whole.
    """

    def opened(file: Path) -> Any:
        return file if data.handle is None else data.from_start()

    with readable(data.path):
        files = [(data.path, {})] if data.handle is not None else parquet_parts(data.path)
    if only is not None:
        # The first file says what the features are.
        files = files[:1] + [part for part in files[1:] if part[0] == only]
    if not files:
        raise reading.fail("the folder holds no Parquet file", "Check the path.")
    layouts = []
    for file, keys in files:
        with readable(file):
            try:
                layouts.append((file, keys, parquet.read_schema(opened(file))))
            except BROKEN as error:
                raise unreadable(error, reading.at(file)) from None
    first, keys, schema = layouts[0]
    partitions = [key for key in keys if key not in schema.names]
    not_numbers = {f.name: why for f in schema if (why := _why_not_numeric(f.type))}
    not_numbers |= dict.fromkeys(partitions, "a partition")
    named = reading.columns().values()
    columns, likely = [*schema.names, *partitions], None
    if reading.columns()["regime"] not in columns:
        likely = _may_be_regime(opened(first), schema, reading) | dict.fromkeys(partitions, ())
    table = choose_columns(
        reading.at(first),
        columns,
        not_numbers={name: why for name, why in not_numbers.items() if name not in named},
        candidates=likely,
    )
    features, reading = table.features, table.reading.at(data.path)
    named = reading.columns().values()
    for file, keys, schema in layouts:
        _check_part(schema, keys, features, reading.at(file))

    def batches() -> Batches:
        for file, keys, schema in layouts:
            if only is not None and file != only:
                continue
            wanted = [*features, *(name for name in named if name in schema.names)]
            # Texts stay dictionaries: one that many rows share is held once.
            texts = [n for n in wanted if n in named and types.is_string(schema.field(n).type)]
            # Neither mapped nor pre-fetched, so that memory does not grow with the row groups.
            with parquet.ParquetFile(
                opened(file),
                read_dictionary=texts,
                buffer_size=1 << 16,
                pre_buffer=False,
                page_checksum_verification=True,
            ) as reader:
                size = data.size if data.handle is not None else file.stat().st_size
                _check_sizes(reader.metadata, size, reading.at(file))
                constant = {name: key for name, key in keys.items() if name not in wanted}
                for batch in reader.iter_batches(chunk_rows(len(features)), columns=wanted):
                    yield batch, constant

    return with_batches(replace(table, reading=reading), batches)


def _may_be_regime(file: Any, schema: Any, reading: Reading) -> dict[str, Sequence[object]]:
    """Columns of text that may hold the regime, and their first values."""
    texts = [f.name for f in schema if _is_text(f.type) and f.name not in reading.ignore]
    with parquet.ParquetFile(file) as reader:
        first = next(reader.iter_batches(_HEAD_ROWS, columns=texts), None)
    values = {} if first is None else first.to_pydict()
    return few_valued(values, reading.control, fewest=1) or dict.fromkeys(texts, ())


def _is_text(kind: Any) -> bool:
    value = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(value) or types.is_large_string(value))


def _check_part(
    schema: Any, keys: Mapping[str, str], features: Sequence[str], reading: Reading
) -> None:
    """Raise an `InputError` unless a file has all features, and regime, batch and group as text."""
    kinds = dict(zip(schema.names, schema.types, strict=True))
    for name in features:
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
        elif keys.get(name) in (None, "__HIVE_DEFAULT_PARTITION__"):
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
        table = nw.from_native(frame)
    except (TypeError, NarwhalsError) as error:
        raise reading.fail(
            f"the {type(frame).__name__} cannot be used as a table ({str(error)[:100]})",
            "Pass a pandas, polars or pyarrow table with one name per column.",
        ) from None
    if isinstance(table, nw.LazyFrame):
        table = table.collect()
    # pandas numbers the columns of a plain array.
    columns, named = [str(column) for column in table.columns], reading.columns()
    whole, kinds = dict[str, Any](), dict[str, str]()
    for i, name in enumerate(columns):
        own = table[:, i]
        if name in named.values():
            gaps = zip(own.to_list(), own.is_null().to_list(), strict=True)
            texts = [None if gap else str(value) for value, gap in gaps]
            whole[name] = pa.array([None if x in reading.na else x for x in texts], pa.string())
            if own.dtype.is_float():
                what = next(what for what, column in named.items() if column == name)
                remedy = f"Store {what}{'es' if what == 'batch' else 's'} as text."
                reading.note(f"the {what} column {name!r} holds decimal numbers", remedy)
        elif name not in reading.ignore:
            whole[name], kinds[name] = _column(own, name, reading)
    not_numbers = {name: why for name, why in kinds.items() if why}
    likely = None
    if named["regime"] not in columns:
        found = {k: x.to_pylist() for k, x in whole.items() if x is not None and _is_text(x.type)}
        likely = few_valued(found, reading.control) or dict.fromkeys(found, ())
    chosen = choose_columns(reading, columns, not_numbers=not_numbers, candidates=likely)

    def batches() -> Batches:
        wanted = [*chosen.features, *chosen.reading.columns().values()]
        rows = pa.table({name: whole[name] for name in wanted})
        for batch in rows.to_batches(chunk_rows(len(chosen.features))):
            yield batch, {}

    return with_batches(chosen, batches)


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
