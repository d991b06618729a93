"""Text files with commas, semicolons or tabs, parsed block by block by pyarrow.

Imported only for such files, because pyarrow takes a tenth of a second to load. All values are read
as texts. The first ones show which columns hold numbers, and how their decimals are written.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv as arrow_csv

from jigsaw_crl.base.files import readable
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.study.arrow import NULLS, chunks_of
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import BOOLEAN, HEAD_ROWS, NUMBER, TEXT, Chunk, Table, choose_columns

# A number with a fraction after a comma or point; one with a comma that may separate thousands.
_FRACTION = re.compile(r"[+-]?\d*([.,])\d+([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
# No text has such characters.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f]")
# A row of 100,000 columns takes two megabytes.
_HEAD_BYTES, _HEAD_LINES, _MOST_HEAD_BYTES = 1 << 20, 4, 1 << 26
# Bytes that are parsed at a time: of long lines 128, if they fit the larger block, because each
# column of a block costs some microseconds; and 8 in any case, because later lines may be longer
# than the first ones.
_BLOCK, _LARGE_BLOCK, _MANY_LINES, _FEW_LINES = 1 << 20, 1 << 24, 128, 8


class _Head(NamedTuple):
    """What the first lines of a text file show.

    Names of all columns, first values of those that may be features, without missing ones and
    spaces around, the sign before decimals, delimiter, encoding, and bytes to parse at a time.
    """

    header: list[str]
    cells: Mapping[str, list[str]]
    decimal: str
    delimiter: str
    encoding: str
    block: int


def csv_table(reading: Reading) -> Table:
    """A text file with commas, semicolons or tabs; the first line names the columns."""
    head, kinds = csv_head(reading), dict[str, str]()
    for name, cells in head.cells.items():
        if cells and not any(NUMBER.fullmatch(x.replace(head.decimal, ".")) for x in cells):
            boolean = all(x.casefold() in ("true", "false") for x in cells)
            kinds[name] = BOOLEAN if boolean else TEXT

    def rows(table: Table) -> Iterator[Chunk]:
        columns = [*table.features, *table.reading.named.values()]
        return chunks_of(table, csv_batches(table.reading, head, columns), decimal=head.decimal)

    return choose_columns(reading, head.header, rows, kinds)


def csv_batches(reading: Reading, head: _Head, columns: Sequence[str]) -> Iterator[Any]:
    """Record batches with these columns of the whole file, as texts."""
    read = arrow_csv.ReadOptions(
        column_names=head.header,
        skip_rows_after_names=1,
        block_size=head.block,
        use_threads=False,
        encoding=head.encoding,
    )
    parse = arrow_csv.ParseOptions(delimiter=head.delimiter, newlines_in_values=True)
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(columns, pa.string()),
        include_columns=list(columns),
        strings_can_be_null=True,
        null_values=[*NULLS, *reading.na],
    )
    reading.handle.seek(0)
    # pyarrow closes what it reads, and the handle is needed again.
    with os.fdopen(os.dup(reading.handle.fileno()), "rb") as file:
        packed = "gzip" if reading.ending.endswith(".gz") else None
        stream = pa.input_stream(file, compression=packed)
        with arrow_csv.open_csv(stream, read, parse, convert) as reader:
            yield from reader


def csv_head(reading: Reading) -> _Head:
    """What the first lines of a text file show."""
    text, encoding, complete = _beginning(reading)
    headers: dict[str, list[str]] = {}
    for mark in ",;\t":
        # An error is a line of 128 kB without this delimiter.
        with suppress(csv.Error):
            headers[mark] = next(csv.reader(io.StringIO(text, newline=""), delimiter=mark))
    # The delimiter makes the regime a column of the header, or else most columns.
    regime = reading.named["regime"]
    mark = max(",;\t", key=lambda x: (regime in headers.get(x, ()), len(headers.get(x, ()))))
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=mark)
    try:
        header = next(lines)
        sample = [line for line, _ in zip(lines, range(HEAD_ROWS), strict=False) if line]
    except csv.Error as error:
        raise reading.fail(f"the file is not CSV ({error})", "Save it again as CSV.") from None
    if not complete:
        # The last line may end in the middle.
        del sample[-1:]
    elif not sample:
        raise reading.fail("there are no rows below the header", "Check that the file is complete.")
    if sample and len(sample[0]) > len(header):
        raise reading.fail(
            f"the first line names {pluralise(len(header), 'column')}, and the next has "
            f"{len(sample[0])} values",
            "Name every column, and delete lines above these names. Separate columns by semicolons "
            "if numbers have decimal commas.",
        )
    beside, missing = {*reading.named.values(), *reading.ignore}, {*NULLS, *reading.na}
    cells = {
        name: [x for line in sample if i < len(line) and (x := line[i].strip()) not in missing]
        for i, name in enumerate(header)
        if name not in beside
    }
    longest = max(map(len, text.split("\n")))
    block = max(_BLOCK, min(_MANY_LINES * longest, _LARGE_BLOCK), _FEW_LINES * longest)
    return _Head(header, cells, _decimal_mark(cells, mark, reading), mark, encoding, block)


def _beginning(reading: Reading) -> tuple[str, str, bool]:
    """The first megabyte, or more until a few lines are complete; its encoding; and is it all?

    The encoding is UTF-8, or that of Windows in western Europe.
    """
    assert reading.path is not None
    reading.handle.seek(0)
    packed = reading.ending.endswith(".gz")
    file: Any = gzip.GzipFile(fileobj=reading.handle) if packed else reading.handle
    first, complete = b"", False
    with readable(reading.path):
        while not complete and (len(first) < _HEAD_BYTES or first.count(b"\n") < _HEAD_LINES):
            if len(first) >= _MOST_HEAD_BYTES:
                raise reading.fail(
                    f"the first {_HEAD_LINES} lines are longer than {_MOST_HEAD_BYTES >> 20} MB",
                    "Check that this is a table, with one row per line.",
                )
            more = file.read(_HEAD_BYTES)
            first, complete = first + more, len(more) < _HEAD_BYTES
    text, encoding = "", "utf8"
    # The data may end inside a character.
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(first)
    except UnicodeDecodeError:
        encoding = "cp1252"
        with suppress(UnicodeDecodeError):
            text = first.decode(encoding)
        if not text or _CONTROL.search(text):
            raise reading.fail(
                "the file is not text in UTF-8", "Save it as CSV in UTF-8."
            ) from None
    if not text.strip():
        raise reading.fail("the file is empty", "Check the file.")
    if "\0" in text:
        raise reading.fail("the file is not text", "Save it as CSV, or use its own ending.")
    return text, encoding, complete


def _decimal_mark(cells: Mapping[str, list[str]], delimiter: str, reading: Reading) -> str:
    """The sign before the decimals of a number: a point, or a comma where no number has a point."""
    seen: dict[str, tuple[str, str]] = {}
    thousands = delimiter != ";"
    for name, own in cells.items():
        for cell in own:
            if match := _FRACTION.fullmatch(cell):
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
