"""Text files with commas, semicolons or tabs, parsed block by block by pyarrow.

Imported only for such files, because pyarrow takes a tenth of a second to load.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv as arrow_csv

from jigsaw_crl.base.files import readable
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.study.arrow import NULLS, chunks_of, unreadable
from jigsaw_crl.study.data_file import DataFile
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import BOOLEAN, HEAD_ROWS, Chunk, Table, choose_columns

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?|[+-]?nan", re.I)
# A number with a fraction after a comma or point; one with a comma that may separate thousands.
_FRACTION = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}\b|\d{1,2}:\d{2}\b")
_MISSING = {"", "na", "n/a", "#n/a", "null", "none"}
# No text has such characters.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
# A row of 100,000 columns takes two megabytes.
_HEAD_BYTES, _HEAD_LINES, _MOST_HEAD_BYTES = 1 << 20, 4, 1 << 26
# Bytes that are parsed at a time.
_BLOCK = 1 << 20


class _Head(NamedTuple):
    """What the first lines show.

    The header, the first values of each column, without spaces around, the delimiter, the bytes of
    the longest of these lines, and the encoding.
    """

    header: list[str]
    columns: Mapping[str, list[str]]
    delimiter: str
    longest: int
    encoding: str

    def numbers(self, reading: Reading) -> dict[str, list[str]]:
        """The first values of columns that may be features, without missing ones."""
        skipped, na = {*reading.columns().values(), *reading.ignore}, reading.na
        return {
            name: [x for x in cells if not is_missing(x) and x not in na]
            for name, cells in self.columns.items()
            if name not in skipped
        }


def is_missing(cell: str) -> bool:
    """Does a cell of a text file stand for a missing value?"""
    return cell.strip().casefold() in _MISSING


def csv_texts(data: DataFile, reading: Reading) -> tuple[str, Iterator[Any]]:
    """The decimal mark of a text file, and all its columns as texts, in record batches."""
    head = _head(data, reading)
    decimal = _decimal_point(head.numbers(reading.but(na=[])), head.delimiter, reading)
    types = dict.fromkeys(head.header, pa.string())
    options = arrow_csv.ConvertOptions(column_types=types, strings_can_be_null=False)
    return decimal, _batches(data, reading, head, options)


def csv_table(data: DataFile, reading: Reading) -> Table:
    """A text file with commas, semicolons or tabs; the first line names the columns."""
    head = _head(data, reading)
    cells = head.numbers(reading)
    decimal = _decimal_point(cells, head.delimiter, reading)
    not_numbers = _text_columns(cells, decimal)

    def texts() -> Mapping[str, list[str]]:
        # A regime may be called "none".
        return {
            name: [x for x in own if x]
            for name, own in head.columns.items()
            if name not in reading.ignore and any(own)
            if not_numbers.get(name) == "text" or all(map(is_missing, own))
        }

    def rows(table: Table) -> Iterator[Chunk]:
        named = table.reading.columns().values()
        types = dict.fromkeys(table.features, pa.float64()) | dict.fromkeys(named, pa.string())
        options = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            strings_can_be_null=True,
            null_values=[*NULLS, *reading.na],
            decimal_point=decimal,
        )
        batches = _batches(data, reading, head, options)
        return chunks_of(table, ((batch, {}) for batch in batches))

    table = choose_columns(reading, head.header, rows, not_numbers=not_numbers, texts=texts)
    if not any(head.columns.values()):
        raise reading.fail("there are no rows below the header", "Check that the file is complete.")
    return table


def _batches(data: DataFile, reading: Reading, head: _Head, options: Any) -> Iterator[Any]:
    """Record batches of the whole file."""
    read = arrow_csv.ReadOptions(
        column_names=head.header,
        skip_rows_after_names=1,
        # A block must hold a whole line; later lines may be longer than the first ones.
        block_size=max(_BLOCK, 8 * head.longest),
        use_threads=False,
        encoding=head.encoding,
    )
    parse = arrow_csv.ParseOptions(delimiter=head.delimiter, newlines_in_values=True)
    try:
        with data.copy() as file:
            stream = pa.input_stream(file, compression="gzip" if _is_packed(data) else None)
            with arrow_csv.open_csv(stream, read, parse, options) as reader:
                yield from reader
    except pa.ArrowException as error:
        raise unreadable(error, reading, head.header) from None


def _is_packed(data: DataFile) -> bool:
    return data.path.suffix.casefold() == ".gz"


def _head(data: DataFile, reading: Reading) -> _Head:
    with readable(data.path):
        first, complete = _first_bytes(data, reading)
    text, encoding = _decoded(first, reading)
    if not text.strip():
        raise reading.fail("the file is empty", "Check the file.")
    if "\0" in text:
        raise reading.fail("the file is not text", "Save it as CSV, or use its own ending.")
    delimiter = _delimiter(text, reading.columns()["regime"])
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        header = next(lines)
        sample = [line for line, _ in zip(lines, range(HEAD_ROWS), strict=False) if line]
    except csv.Error as error:
        raise reading.fail(f"the file is not CSV ({error})", "Save it again as CSV.") from None
    if not complete:
        # The last line may end in the middle.
        del sample[-1:]
    if sample and len(sample[0]) > len(header):
        raise reading.fail(
            f"the first line names {pluralise(len(header), 'column')}, and the next has "
            f"{len(sample[0])} values",
            "Name every column, and delete lines above these names. Separate columns by semicolons "
            "if numbers have decimal commas.",
        )
    columns = {
        name: [line[i].strip() for line in sample if i < len(line)] for i, name in enumerate(header)
    }
    return _Head(header, columns, delimiter, max(map(len, first.splitlines())), encoding)


def _first_bytes(data: DataFile, reading: Reading) -> tuple[bytes, bool]:
    """The first megabyte, or more until a few lines are complete; and is this the whole file?"""
    file: Any = data.from_start()
    if _is_packed(data):
        file = gzip.GzipFile(fileobj=file)
    first = b""
    while len(first) < _MOST_HEAD_BYTES:
        more = file.read(_HEAD_BYTES)
        first += more
        if len(more) < _HEAD_BYTES:
            return first, True
        if first.count(b"\n") >= _HEAD_LINES:
            return first, False
    raise reading.fail(
        f"the first {_HEAD_LINES} lines are longer than {_MOST_HEAD_BYTES >> 20} MB",
        "Check that this is a table, with one row per line.",
    )


def _decoded(first: bytes, reading: Reading) -> tuple[str, str]:
    """The first bytes as text, and their encoding: UTF-8, or that of Windows in western Europe."""
    # The data may end inside a character.
    with suppress(UnicodeDecodeError):
        return codecs.getincrementaldecoder("utf-8-sig")().decode(first), "utf8"
    with suppress(UnicodeDecodeError):
        text = first.decode("cp1252")
        if not _CONTROL.search(text):
            return text, "cp1252"
    raise reading.fail("the file is not text in UTF-8", "Save it as CSV in UTF-8.")


def _delimiter(text: str, regime: str) -> str:
    """The delimiter that makes the regime a column of the header, or else most columns."""
    columns: dict[str, list[str]] = {mark: [] for mark in ",;\t"}
    for delimiter in columns:
        # An error is a line of 128 kB without this delimiter.
        with suppress(csv.Error):
            lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            columns[delimiter] = next(lines, [])
    return max(columns, key=lambda d: (regime in columns[d], len(columns[d])))


def _decimal_point(columns: Mapping[str, list[str]], delimiter: str, reading: Reading) -> str:
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
        raise reading.fail(
            f"the column {name!r} has decimal commas ({cell!r}) and {other!r} decimal points "
            f"({point!r})",
            "Write all numbers of a file in one way.",
        )
    if thousands:
        raise reading.fail(
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
