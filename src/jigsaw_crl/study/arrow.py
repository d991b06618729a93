"""Parquet files, sheets of Excel and tables in memory: record batches of pyarrow become rows.

Imported only for such tables, because pyarrow takes a tenth of a second to load.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types
from pyarrow import csv, parquet

from jigsaw_crl.base.files import readable
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.files import fits, parquet_parts, reading_as
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import BOOLEAN, NUMBER, TEXT, Chunk, Table, choose_columns, chunk_rows

# What pyarrow takes as a missing number.
NULLS = csv.ConvertOptions().null_values
# What pyarrow raises for a broken file, whose names may not be UTF-8.
BROKEN = (pa.ArrowException, UnicodeDecodeError)
# A page of a Parquet file may claim so many bytes.
_LARGEST_PAGE = 1 << 31
# The value in a path of rows that have none.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def chunks_of(table: Table, batches: Iterable[Any], *, decimal: str = "") -> Iterator[Chunk]:
    """The rows of record batches; errors of pyarrow become an `InputError`.

    With a decimal mark, features that are texts are read as numbers.
    """
    reading = table.reading
    with readable(reading.path or Path()):
        try:
            for batch in batches:
                yield _chunk(batch, table, decimal)
        except BROKEN as error:
            # To pyarrow the header is a row.
            text = " ".join(str(error).split())
            text = re.sub(r"Row #(\d+)", lambda x: f"row {int(x.group(1)) - 1}", text)
            what = f"the file cannot be read ({text[:200]})"
            remedy = "Write it again; it may be truncated or of another format."
            if "straddling object" in text:
                what = "a line is much longer than those at the beginning of the file"
                remedy = "Check that every quote is closed, and that there is one row per line."
            raise reading.fail(what, remedy) from None


def _chunk(batch: Any, table: Table, decimal: str) -> Chunk:
    """A record batch as numbers: missing values become NaN, missing regimes the code -1."""
    # By position: a name is looked for among all columns.
    position = {name: i for i, name in enumerate(batch.schema.names)}
    columns: list[Any] = [
        batch.column(position[x]) if x in position else None for x in table.features
    ]
    strange = dict[str, tuple[int, str]]()
    for i, (name, column) in enumerate(zip(table.features, columns, strict=True)):
        why = "missing" if column is None else _held(column.type)
        if why == TEXT and decimal:
            columns[i], found = _numbers(column, decimal)
            strange |= {name: found} if found else {}
        elif why:
            raise table.reading.fail(
                f"the column {name!r} of the client's other files is {why} here",
                "Write every part with the same columns and types.",
            )
        elif types.is_decimal(column.type):
            columns[i] = column.cast(pa.float64())
    rows = np.empty((batch.num_rows, len(columns)), order="F")
    for i, column in enumerate(columns):
        rows[:, i] = column.to_numpy(zero_copy_only=False)
    own: dict[str, Coded] = {}
    for what, name in table.reading.named.items():
        encoded = batch.column(position[name])
        if types.is_floating(encoded.type):
            fault = f"the {what} column {name!r} holds decimal numbers"
            raise table.reading.fail(fault, "Store it as text.")
        if not types.is_dictionary(encoded.type):
            encoded = pc.dictionary_encode(encoded)
        # Of a broken file, codes may lie outside the dictionary, and texts may not be UTF-8.
        encoded.validate(full=True)
        codes = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        own[what] = list(map(str, encoded.dictionary.to_pylist())), codes
    return Chunk(rows, own, strange)


def _numbers(texts: Any, decimal: str) -> tuple[Any, tuple[int, str] | None]:
    """Texts as numbers, and the first that is none, with its row; such texts are read as 0."""
    plain = texts if decimal == "." else pc.replace_substring(texts, decimal, ".")
    with suppress(pa.ArrowInvalid):
        return plain.cast(pa.float64()), None
    plain = pc.utf8_trim_whitespace(plain)
    numbers = pc.match_substring_regex(plain, f"^({NUMBER.pattern})$", ignore_case=True)
    bad = pc.fill_null(pc.invert(numbers), False)
    row = pc.index(bad, True).as_py()
    found = (row, texts[row].as_py()) if row >= 0 else None
    return pc.if_else(bad, "0", plain).cast(pa.float64()), found


def _held(kind: Any) -> str:
    """What a type of columns holds if not numbers."""
    if types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return ""
    value = kind.value_type if types.is_dictionary(kind) else kind
    if types.is_string(value) or types.is_large_string(value):
        return TEXT
    return BOOLEAN if types.is_boolean(kind) else f"of type {kind}"[:80]


# -- Parquet ------------------------------------------------------------------------------------


def parquet_table(reading: Reading) -> Table:
    """A Parquet file, or a folder of them, which may be partitioned by `regime=value`."""
    assert reading.path is not None
    with readable(reading.path):
        parts = parquet_parts(reading)
    if not parts:
        raise reading.fail("the folder holds no Parquet file", "Check the path.")
    # The first file says what the features are.
    first = reading.model_copy(update={"path": parts[0].path, "size": parts[0].size})
    with _file(first) as file:
        schema = file.schema_arrow
    columns = [*schema.names, *(key for key in parts[0].keys if key not in schema.names)]
    held = {f.name: what for f in schema if (what := _held(f.type))}
    held |= dict.fromkeys(columns[len(schema.names) :], TEXT)
    table = choose_columns(first, columns, _parquet_rows, held, parts=parts)
    return replace(table, reading=table.reading.model_copy(update={"path": reading.path}))


def _file(reading: Reading, texts: Sequence[str] = ()) -> Any:
    """A Parquet file; of its columns `texts`, a text that many rows share is held once."""
    if reading.handle is not None:
        reading.handle.seek(0)
    with reading_as("Parquet", "Write it again", reading):
        return parquet.ParquetFile(
            reading.handle or reading.path,
            read_dictionary=list(texts),
            # Neither mapped nor pre-fetched, and of a large file not even a row group is held as a
            # whole. A buffer takes what a page claims to hold, so a small file is read without one.
            buffer_size=1 << 16 if fits(_LARGEST_PAGE, reading.size) else 0,
            pre_buffer=False,
            page_checksum_verification=True,
        )


def _parquet_rows(table: Table) -> Iterator[Chunk]:
    """The rows of the table's parts, with the values that their paths give."""
    for part in table.parts:
        at = {"path": part.path, "size": part.size}
        own = replace(table, reading=table.reading.model_copy(update=at))
        yield from chunks_of(own, _parquet_batches(own, part.keys))


def _parquet_batches(table: Table, keys: Mapping[str, str]) -> Iterator[Any]:
    """The record batches of a file, with the columns that its path gives."""
    reading, named = table.reading, table.reading.named.values()
    with _file(reading) as file:
        schema, metadata = file.schema_arrow, file.metadata
    for i in range(metadata.num_row_groups):
        # Not of each column: of some broken files, asking for one ends the process.
        unpacked = metadata.row_group(i).total_byte_size
        if not fits(unpacked, reading.size):
            raise reading.fail(
                f"the row group {i + 1} would take {unpacked >> 20} MB of memory, from a file of "
                f"{reading.size} bytes",
                "Write it again with shorter texts, or in smaller row groups.",
            )
    wanted = [name for name in (*table.features, *named) if name in schema.names]
    texts = [x for x in wanted if x in named and types.is_string(schema.field(x).type)]
    with _file(reading, texts) as file:
        for batch in file.iter_batches(chunk_rows(len(table.features)), columns=wanted):
            for name in (x for x in named if x not in schema.names):
                given = keys.get(name)
                value = pa.scalar(None if given == _NO_VALUE else given, pa.string())
                batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
            yield batch


# -- tables in memory ---------------------------------------------------------------------------


def excel_table(reading: Reading) -> Table:
    """The first sheet of an Excel file."""
    return frame_table(reading.model_copy(update={"frame": excel_sheet(reading)}))


def excel_sheet(reading: Reading) -> Any:
    """The first sheet of an Excel file as a data frame, which pandas reads as a whole."""
    # Imported here because pandas takes half a second to load.
    import pandas as pd

    with reading_as("Excel", "Save the sheet as CSV", reading):
        with zipfile.ZipFile(reading.handle) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
        if not fits(unpacked, reading.size):
            raise ValueError(f"it would unpack to {unpacked >> 20} MB")
        reading.handle.seek(0)
        gaps = [*NULLS, *reading.na]
        try:
            return pd.read_excel(
                reading.handle, keep_default_na=False, na_values=gaps, engine="openpyxl"
            )
        except ImportError:
            what = "openpyxl, which reads Excel files, is not installed"
            remedy = "Run pip install openpyxl, or save the sheet as CSV."
            raise reading.fail(what, remedy) from None


def frame_table(reading: Reading) -> Table:
    """The rows of a pandas, polars or pyarrow table, or of another that narwhals supports."""
    # Imported here because narwhals takes a tenth of a second to load.
    import narwhals as nw
    from narwhals.exceptions import NarwhalsError

    try:
        given = nw.from_native(reading.frame)
    except (TypeError, NarwhalsError) as error:
        raise reading.fail(
            f"the {type(reading.frame).__name__} cannot be used as a table ({str(error)[:100]})",
            "Pass a pandas, polars or pyarrow table with one name per column.",
        ) from None
    if isinstance(given, nw.LazyFrame):
        given = given.collect()
    # pandas numbers the columns of a plain array.
    columns, whole, held = list(map(str, given.columns)), dict[str, Any](), dict[str, str]()
    for i, name in enumerate(columns):
        if name not in reading.ignore or name in reading.named.values():
            whole[name], what = _column(given[:, i], name, reading)
            held |= {name: what} if what else {}

    def rows(table: Table) -> Iterator[Chunk]:
        wanted = [*table.features, *table.reading.named.values()]
        batches = pa.table({name: whole[name] for name in wanted})
        own = batches.to_batches(chunk_rows(len(table.features)))
        return chunks_of(table, own, decimal=".")

    return choose_columns(reading, columns, rows, held)


def _column(own: Any, name: str, reading: Reading) -> tuple[Any, str]:
    """A column of a table in memory, and what it holds if not numbers; of several types, texts."""
    broken = (pa.ArrowException, TypeError, ValueError, OverflowError)
    with suppress(*broken):
        found = own.to_arrow()
        return found, _held(found.type)
    gaps = zip(own.to_list(), own.is_null().to_list(), strict=True)
    values = [None if gap or (isinstance(v, str) and v in reading.na) else v for v, gap in gaps]
    with suppress(*broken):
        found = pa.array(values)
        return found, _held(found.type)
    what = ""
    if any(isinstance(v, complex) for v in values):
        what = "complex"
        remedy = "Store the real and the imaginary part as two columns, or drop it."
        reading.note(f"the column {name!r} holds complex numbers", remedy)
    elif not any(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        what = "of no single type"
    return pa.array([None if v is None else str(v) for v in values], pa.string()), what
