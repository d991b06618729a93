"""Parquet files and tables in memory; record batches of pyarrow become rows.

Imported only for such tables, because pyarrow takes a tenth of a second to load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types
from pyarrow import parquet

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.columns import BOOLEAN, check_once, choose_columns
from jigsaw_crl.study.data_file import DataFile, fits, parquet_parts
from jigsaw_crl.study.problems import Problems, passable
from jigsaw_crl.study.source import Chunk, Reading, Source, chunk_rows

__all__ = ["arrow_chunks", "parquet_source", "table_source", "unreadable"]

# Record batches, each with the values of columns that it lacks.
Batches = Iterator[tuple[Any, Mapping[str, str]]]


def arrow_chunks(
    batches: Callable[[], Batches], features: Sequence[str], reading: Reading
) -> Callable[[], Iterator[Chunk]]:
    """Rows of record batches; errors of pyarrow become an `InputError`."""

    def chunks() -> Iterator[Chunk]:
        with readable(reading.path or Path()):
            try:
                for batch, constant in batches():
                    yield _chunk(batch, features, reading, constant)
            except pa.ArrowException as error:
                raise unreadable(error, reading) from None

    return chunks


def _chunk(
    batch: Any, features: Sequence[str], reading: Reading, constant: Mapping[str, str]
) -> Chunk:
    """A record batch as numbers: missing values become NaN, missing regimes the code -1."""
    # By position: a name is looked for among all columns.
    position = {name: i for i, name in enumerate(batch.schema.names)}
    columns = [batch.column(position[name]) for name in features]
    # float32 if every column is; sums are in float64 anyway.
    single = all(types.is_float32(column.type) for column in columns)
    rows = np.empty(
        (batch.num_rows, len(features)), np.float32 if single else np.float64, order="F"
    )
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
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        if not types.is_dictionary(encoded.type):
            encoded = pc.dictionary_encode(encoded.cast(pa.string()))
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        own[what] = encoded.dictionary.cast(pa.string()).to_pylist(), codes
    return Chunk(rows, own)


def unreadable(error: Exception, reading: Reading, header: Sequence[str] = ()) -> InputError:
    """The error of a broken file, or of a value that is not a number.

    `header` names the columns of a text file, whose first row is the header to pyarrow.
    """
    text = " ".join(str(error).split())
    value = re.search(r"In CSV column #(\d+):(?: Row #(\d+):)? .*invalid value '(.*)'", text)
    if value:
        row = f", row {int(value.group(2)) - 1}" if value.group(2) else ""
        column = int(value.group(1))
        known = column < len(header)
        name = repr(header[column]) if known else str(column + 1)
        spoilt = reading.fail(
            f"column {name}{row} holds {value.group(3)[:60]!r} among numbers",
            "Correct such values, or leave the column out with --ignore.",
        )
        return passable(spoilt, ignore=(*reading.ignore, header[column])) if known else spoilt
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


def _why_not_numeric(kind: Any) -> str:
    if types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind):
        return ""
    return BOOLEAN if types.is_boolean(kind) else f"of type {kind}"[:80]


def _check_texts(schema: Any, keys: Mapping[str, str], reading: Reading) -> None:
    """Raise an `InputError` unless regime, batch and group are given, as texts or whole numbers."""
    for what, name in reading.columns().items():
        if name in schema.names:
            kind = schema.field(name).type
            value = kind.value_type if types.is_dictionary(kind) else kind
            text = types.is_string(value) or types.is_large_string(value)
            if not (text or types.is_integer(value)):
                raise reading.fail(
                    f"the {what} column {name!r} is of type {kind}", "Store it as text."
                )
        elif keys.get(name) in (None, "__HIVE_DEFAULT_PARTITION__"):
            raise reading.fail(
                f"no column and no folder of the path gives {name!r}",
                f"Store it as a column or in a folder {name}=VALUE.",
            )


# -- Parquet ------------------------------------------------------------------------------------


def parquet_source(data: DataFile, reading: Reading, *, only: Path | None = None) -> Source:
    """A Parquet file, or a folder of them, which may be partitioned by `regime=value`.

    With `only`, the rows of this file of the folder, with the features of the whole.
    """
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
                schema = parquet.read_schema(file if data.handle is None else data.from_start())
            except pa.ArrowException as error:
                raise unreadable(error, reading.at(file)) from None
        layouts.append((file, keys, schema))
    first, keys, schema = layouts[0]
    named = reading.columns().values()
    columns = [*schema.names, *(k for k in keys if k not in schema.names)]
    not_numbers = {f.name: why for f in schema if (why := _why_not_numeric(f.type))}
    not_numbers |= dict.fromkeys((k for k in keys if k not in schema.names), "a partition")
    not_numbers = {name: why for name, why in not_numbers.items() if name not in named}
    features, ignored, lacking = choose_columns(reading.at(first), columns, not_numbers=not_numbers)
    for file, found, other in layouts:
        _check_part(other, found, features, reading.at(file))

    def batches() -> Batches:
        for file, keys, schema in layouts:
            if only is not None and file != only:
                continue
            wanted = [*features, *(name for name in named if name in schema.names)]
            # Texts stay dictionaries: one that many rows share is held once.
            texts = [n for n in wanted if n in named and types.is_string(schema.field(n).type)]
            # Neither mapped nor pre-fetched, so that memory does not grow with the row groups.
            with parquet.ParquetFile(
                file if data.handle is None else data.from_start(),
                read_dictionary=texts,
                buffer_size=1 << 16,
                pre_buffer=False,
                page_checksum_verification=True,
            ) as reader:
                size = data.size if data.handle is not None else file.stat().st_size
                _check_sizes(reader.metadata, {*wanted}, size, reading.at(file))
                constant = {name: key for name, key in keys.items() if name not in wanted}
                for batch in reader.iter_batches(chunk_rows(len(features)), columns=wanted):
                    yield batch, constant

    return Source(features, arrow_chunks(batches, features, reading), ignored, lacking)


def _check_part(
    schema: Any, keys: Mapping[str, str], features: Sequence[str], reading: Reading
) -> None:
    """Raise an `InputError` unless a file has all features and what else is said of rows."""
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
    _check_texts(schema, keys, reading)


def _check_sizes(metadata: Any, wanted: set[str], size: int, reading: Reading) -> None:
    """Refuse a column that would unpack to far more than the file holds, before it is read."""
    for i in range(metadata.num_row_groups):
        group = metadata.row_group(i)
        for j in range(group.num_columns):
            column = group.column(j)
            unpacked = column.total_uncompressed_size
            if column.path_in_schema in wanted and not fits(unpacked, size):
                raise reading.fail(
                    f"the column {column.path_in_schema!r} would take {unpacked >> 20} MB of "
                    f"memory, from a file of {size} bytes",
                    "Write it again with shorter texts, or in smaller row groups.",
                )


# -- tables in memory ---------------------------------------------------------------------------


def table_source(frame: Any, reading: Reading) -> Source:
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
    columns = [str(column) for column in table.columns]
    check_once(columns, reading)
    if columns != list(table.columns):
        # pandas numbers the columns of a plain array.
        table = table.rename(dict(zip(table.columns, columns, strict=True)))
    problems, spoilt = Problems(), reading.ignore
    named, whole, kinds = reading.columns(), dict[str, Any](), dict[str, str]()
    for name, kind in table.schema.items():
        if name in named.values():
            whole[name] = _texts(table[name])
        elif not kind.is_numeric() and name not in spoilt:
            try:
                whole[name] = table[name].to_arrow()
                kinds[name] = _why_not_numeric(whole[name].type)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                kinds[name] = "of no single type"
                fault = _numbers_among_text(table[name].to_list(), name, reading)
                if fault is not None:
                    spoilt = (*spoilt, name)
                    problems.note(passable(fault, ignore=spoilt))
    for what, name in named.items():
        if name in whole and table.schema[name].is_float():
            remedy = f"Store {what}{'es' if what == 'batch' else 's'} as text."
            said = f"the {what} column {name!r} holds decimal numbers"
            problems.note(reading.fail(said, remedy))
    not_numbers = {name: why for name, why in kinds.items() if why}
    with problems.noted():
        features, ignored, _ = choose_columns(reading, columns, not_numbers=not_numbers)
    problems.raise_all(client=reading.client)

    def batches() -> Batches:
        step = chunk_rows(len(features))
        for start in range(0, len(table), step):
            part = table[start : start + step]
            yield (
                pa.table(
                    {
                        name: whole[name][start : start + step]
                        if name in whole
                        else part[name].to_arrow()
                        for name in (*features, *named.values())
                    }
                ).combine_chunks(),
                {},
            )

    return Source(features, arrow_chunks(batches, features, reading), ignored)


def _texts(column: Any) -> Any:
    """A column as texts; null where a value is missing."""
    missing = column.is_null().to_list()
    values = zip(column.to_list(), missing, strict=True)
    return pa.array([None if gap else str(value) for value, gap in values], pa.string())


def _numbers_among_text(values: list[Any], name: str, reading: Reading) -> InputError | None:
    """The error of a column that mixes numbers with others: it is a spoilt feature."""
    if any(isinstance(v, complex) for v in values):
        return reading.fail(
            f"the column {name!r} holds complex numbers",
            "Store the real and the imaginary part as two columns, or drop the column.",
        )
    if not any(isinstance(v, int | float) and not isinstance(v, bool) and v == v for v in values):
        return None
    strange = next((v for v in values if isinstance(v, str)), None)
    what = "objects" if strange is None else repr(strange[:60])
    return reading.fail(
        f"the column {name!r} holds {what} among numbers",
        "Convert the column to numbers, or drop it.",
    )
