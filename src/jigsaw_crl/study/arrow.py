"""Parquet files, and what they share with text files: record batches of pyarrow become rows.

Imported only for such files, because pyarrow takes a tenth of a second to load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types
from pyarrow import parquet

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.study.columns import BOOLEAN, feature_columns
from jigsaw_crl.study.data_file import DataFile
from jigsaw_crl.study.limits import check_columns, parquet_parts
from jigsaw_crl.study.problems import passable
from jigsaw_crl.study.source import Chunk, Codes, Naming, Reading, Source, chunk_rows

__all__ = ["arrow_source", "parquet_source", "unreadable"]

Fail = Callable[..., InputError]
# Record batches, each with the values of columns that it lacks.
Tables = Iterator[tuple[Any, Mapping[str, str]]]


def arrow_source(
    features: tuple[str, ...],
    ignored: Mapping[str, str],
    tables: Callable[[], Tables],
    reading: Reading,
    *,
    lacking: tuple[str, ...],
) -> Source:
    """A source of pyarrow record batches, each with the values of columns that it lacks."""

    def chunks() -> Iterator[Chunk]:
        with readable(reading.path or Path()):
            try:
                for table, constant in tables():
                    yield _chunk(table, features, reading.naming, constant)
            except pa.ArrowException as error:
                raise unreadable(error, reading.fail) from None

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


def unreadable(
    error: Exception,
    fail: Fail,
    header: Sequence[str] = (),
    ignored: tuple[str, ...] = (),
) -> InputError:
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
        spoilt = fail(
            f"column {name}{row} holds {value.group(3)[:60]!r} among numbers",
            "Correct such values, or leave the column out with --ignore.",
        )
        return passable(spoilt, ignore=(*ignored, header[column])) if known else spoilt
    if "straddling object" in text:
        return fail(
            "a line is longer than the first ones let expect",
            "Check that every quote is closed, and that there is one row per line.",
        )
    text = re.sub(r"Row #(\d+)", lambda found: f"row {int(found.group(1)) - 1}", text)
    return fail(
        f"the file cannot be read ({text[:200]})",
        "Write it again; it may be truncated or of another format.",
    )


# -- Parquet ------------------------------------------------------------------------------------


def parquet_source(data: DataFile, reading: Reading, *, only: Path | None = None) -> Source:
    """A Parquet file, or a folder of them, which may be partitioned by `regime=value`.

    With `only`, the rows of this file of the folder, with the features of the whole.
    """
    path, naming, fail = data.path, reading.naming, reading.fail
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
                raise unreadable(error, replace(reading, path=file).fail) from None
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
    features, ignored = feature_columns(columns, not_numbers, ignore, replace(reading, path=first))
    for file, found, other in layouts:
        _check_part(other, found, features, named, replace(reading, path=file).fail)

    def tables() -> Tables:
        step = chunk_rows(len(features))
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
                for table in reader.iter_batches(step, columns=wanted):
                    yield table, constant

    return arrow_source(features, ignored, tables, reading, lacking=lacking)


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
