"""CSV and Parquet, read in batches through pyarrow."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.study.regimes import (
    TRUTHS,
    Chunk,
    Naming,
    Source,
    chunk_rows,
    feature_columns,
)

__all__ = ["arrow_chunks", "csv_source", "is_partitioned", "parquet_source"]

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|[+-]?nan", re.I)
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_MISSING = {"", "na", "n/a", "#n/a", "null", "none"}
_HEAD_BYTES = 1 << 20
_HEAD_ROWS = 1_000
_CSV_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class _ArrowSource:
    """Batches of pyarrow, from anything that yields them."""

    features: tuple[str, ...]
    ignored: Mapping[str, str]
    regime: str
    batches: Any
    path: Path
    client: str

    def chunks(self) -> Iterator[Chunk]:
        import pyarrow as pa

        with readable(self.path):
            try:
                for batch, fixed in self.batches():
                    yield arrow_chunks(batch, self.features, self.regime, fixed)
            except pa.ArrowException as error:
                raise _unreadable(error, self.path, self.client) from None


def arrow_chunks(
    batch: Any, features: Sequence[str], regime: str, fixed: str | None = None
) -> Chunk:
    """A batch as numbers: missing values become nan, regimes codes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    n = batch.num_rows
    rows = np.empty((n, len(features)), dtype=_width(batch, features), order="F")
    for i, name in enumerate(features):
        column = batch.column(name)
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.float64())
        rows[:, i] = column.to_numpy(zero_copy_only=False)
    if fixed is not None:
        return Chunk([fixed], np.zeros(n, dtype=np.int32), rows)
    column = batch.column(regime)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    encoded = pc.dictionary_encode(column.cast(pa.string()))
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Chunk(encoded.dictionary.to_pylist(), codes, rows)


def _width(batch: Any, features: Sequence[str]) -> type[np.floating[Any]]:
    """float32 while every column is: the sums widen it later."""
    import pyarrow as pa

    single = all(pa.types.is_float32(batch.schema.field(f).type) for f in features)
    return np.float32 if single else np.float64


def _unreadable(error: Exception, path: Path, client: str) -> InputError:
    text = " ".join(str(error).split())
    value = re.search(r"In CSV column #(\d+):(?: Row #(\d+):)? .*invalid value '(.*)'", text)
    if value:
        row = f", row {int(value.group(2)) - 1}" if value.group(2) else ""
        return InputError(
            f"column {int(value.group(1)) + 1}{row} holds {value.group(3)[:60]!r} among numbers",
            "Mend that value, or leave the column out with --ignore.",
            client=client,
            path=path,
        )
    return InputError(
        f"the file cannot be read ({text[:200]})",
        "Write it again; it may be truncated or of another format.",
        client=client,
        path=path,
    )


# -- CSV ----------------------------------------------------------------------------------------


def csv_source(path: Path, naming: Naming, client: str) -> Source:
    """A table of text: commas, semicolons or tabs, the first line names the columns."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    regime = naming.column()
    with readable(path):
        header, sample, delimiter = _head(path, regime, client)
    not_numbers = _text_columns(header, sample, regime, naming, path, client)
    features, ignored = feature_columns(
        header, not_numbers, naming, regime, path=path, client=client
    )
    if not sample:
        raise InputError(
            "there are no rows below the header",
            "Check that the file is complete.",
            client=client,
            path=path,
        )
    types = {**{f: pa.float64() for f in features}, regime: pa.string()}

    def batches() -> Iterator[tuple[Any, None]]:
        reader = arrow_csv.open_csv(
            str(path),
            read_options=arrow_csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter),
            convert_options=arrow_csv.ConvertOptions(
                column_types=types, include_columns=[regime, *features], strings_can_be_null=True
            ),
        )
        with reader:
            for batch in reader:
                yield batch, None

    return _ArrowSource(features, ignored, regime, batches, path, client)


def _head(path: Path, regime: str, client: str) -> tuple[list[str], list[list[str]], str]:
    """Header, some rows and the delimiter."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        data = file.read(_HEAD_BYTES)
    complete = len(data) < _HEAD_BYTES
    try:
        # The cut may fall inside a character.
        text = data.decode("utf-8-sig", errors="strict" if complete else "ignore")
    except UnicodeDecodeError:
        raise InputError(
            "the file is not text in UTF-8", "Save it as CSV in UTF-8.", client=client, path=path
        ) from None
    if not text.strip():
        raise InputError("the file is empty", "Check the file.", client=client, path=path)
    if "\0" in text:
        raise InputError(
            "the file is not text",
            "Save it as CSV, or use its own ending.",
            client=client,
            path=path,
        )
    first = text.splitlines()[0]
    splits = {d: next(csv.reader([first], delimiter=d), []) for d in ",;\t"}
    delimiter = next((d for d, names in splits.items() if regime in names), ",")
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        header = next(reader)
        sample = [row for row, _ in zip(reader, range(_HEAD_ROWS), strict=False) if row]
    except csv.Error as error:
        raise InputError(
            f"the file is not CSV ({error})", "Save it again as CSV.", client=client, path=path
        ) from None
    return header, sample[:-1] if sample and not complete else sample, delimiter


def _text_columns(
    header: list[str],
    sample: list[list[str]],
    regime: str,
    naming: Naming,
    path: Path,
    client: str,
) -> dict[str, str]:
    """Columns none of whose first values is a number."""
    text = {}
    for i, name in enumerate(header):
        if name == regime or name in naming.ignore:
            continue
        cells = [row[i].strip() for row in sample if i < len(row)]
        cells = [c for c in cells if c.casefold() not in _MISSING]
        if not cells or any(_NUMBER.fullmatch(c) for c in cells):
            continue
        if all(_DECIMAL_COMMA.fullmatch(c) for c in cells):
            raise InputError(
                f"the column {name!r} has decimal commas ({cells[0]!r})",
                "Write numbers with a decimal point.",
                client=client,
                path=path,
            )
        truths = all(c.casefold() in ("true", "false") for c in cells)
        text[name] = TRUTHS if truths else "text"
    return text


# -- Parquet ------------------------------------------------------------------------------------


def is_partitioned(folder: Path) -> bool:
    """Does the folder hold one client's table, cut up by `column=value` sub-folders?"""
    return any(p.is_dir() and "=" in p.name for p in folder.iterdir())


def parquet_source(path: Path, naming: Naming, client: str) -> Source:
    """A Parquet file, or a folder of them (also partitioned by `regime=value`)."""
    import pyarrow as pa
    from pyarrow import parquet

    regime = naming.column()
    with readable(path):
        files = _parts(path) if path.is_dir() else [(path, {})]
    if not files:
        raise InputError(
            "the folder holds no Parquet file", "Check the path.", client=client, path=path
        )
    layouts = []
    for file, keys in files:
        with readable(file):
            try:
                schema = parquet.read_schema(file)
            except pa.ArrowException as error:
                raise _unreadable(error, file, client) from None
        layouts.append((file, keys, schema))
    first, keys, schema = layouts[0]
    columns = [*schema.names, *(k for k in keys if k not in schema.names)]
    not_numbers = {
        f.name: why for f in schema if (why := _why_not_numeric(f.type)) and f.name != regime
    } | {k: "a partition" for k in keys if k != regime}
    features, ignored = feature_columns(
        columns, not_numbers, naming, regime, path=first, client=client
    )
    for file, found, other in layouts:
        _same_columns(other, found, features, regime, file, client)

    def batches() -> Iterator[tuple[Any, str | None]]:
        for file, keys, schema in layouts:
            inside = regime in schema.names
            wanted = [*features, regime] if inside else list(features)
            # Buffered, not mapped or pre-fetched: memory then does not grow with a row group.
            with parquet.ParquetFile(
                file, buffer_size=1 << 16, pre_buffer=False, page_checksum_verification=True
            ) as reader:
                for batch in reader.iter_batches(chunk_rows(len(features)), columns=wanted):
                    yield batch, None if inside else keys[regime]

    return _ArrowSource(features, ignored, regime, batches, path, client)


def _parts(folder: Path) -> list[tuple[Path, dict[str, str]]]:
    """Files of a folder with the `key=value` pairs of their paths, in a fixed order."""
    parts = []
    for file in sorted(folder.rglob("*.parquet")):
        inner = file.relative_to(folder).parts
        if any(p.startswith((".", "_")) for p in inner):
            continue
        keys = dict(p.split("=", 1) for p in inner[:-1] if "=" in p)
        parts.append((file, {k: unquote(v) for k, v in keys.items()}))
    return parts


def _why_not_numeric(kind: Any) -> str:
    import pyarrow.types as t

    if t.is_floating(kind) or t.is_integer(kind) or t.is_decimal(kind):
        return ""
    return TRUTHS if t.is_boolean(kind) else f"of type {kind}"[:80]


def _same_columns(
    schema: Any, keys: dict[str, str], features: Sequence[str], regime: str, file: Path, client: str
) -> None:
    import pyarrow.types as t

    for name in features:
        if name not in schema.names:
            raise InputError(
                f"the column {name!r} of the client's other files is missing here",
                "Write every part with the same columns.",
                client=client,
                path=file,
            )
        why = _why_not_numeric(schema.field(name).type)
        if why:
            raise InputError(
                f"the column {name!r} is {why} here and numeric in the client's other files",
                "Write every part with the same types.",
                client=client,
                path=file,
            )
    if regime not in schema.names and keys.get(regime) in (None, "__HIVE_DEFAULT_PARTITION__"):
        raise InputError(
            f"no column and no folder of the path gives {regime!r}",
            f"Store it as a column or in a folder {regime}=VALUE.",
            client=client,
            path=file,
        )
    if regime in schema.names:
        kind = schema.field(regime).type
        value = kind.value_type if t.is_dictionary(kind) else kind
        if not (t.is_string(value) or t.is_large_string(value) or t.is_integer(value)):
            raise InputError(
                f"the regime column {regime!r} is of type {kind}",
                "Store regimes as text.",
                client=client,
                path=file,
            )
