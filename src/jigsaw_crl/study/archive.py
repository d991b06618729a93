"""NumPy archives; nothing in them is ever unpickled.

Two layouts are supported:

- `X` (rows, features) with `regime` (one text per row), and a batch and a group likewise if named;
- one array (rows, features) per regime, under the regime's name.

In both, `features` or `columns` may name the columns.

What the header of an array claims is compared with the size of the file before anything is
allocated. Arrays that are not compressed are mapped into memory, and their rows read some at a
time; compressed ones are read as a whole.
"""

from __future__ import annotations

import math
import os
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO

import numpy as np
from numpy.lib import format as npy

from jigsaw_crl.base.arrays import AnyArray
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.checks import check_features
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.files import fits, reading_as
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import Chunk, Table, choose_columns, chunk_rows

Arrays = Mapping[str, AnyArray]

# As many as there may be regimes, and a few more.
_MOST_ARRAYS = 5_100
# Bytes of one text, which has four for each character; and of the texts that are read at a time.
_MOST_TEXT_BYTES, _TEXT_CHUNK = 4_000, 1 << 24
# Kinds of numpy types and dimensions of an array, and what it is.
_Kind = tuple[str, int, str]
_ROWS = "fiu", 2, "matrix of real numbers, one column per feature; leave out a regime with no rows"
_TEXTS = "UiuS", 1, "list, one text per row or feature"
# The kind of file, and what to do about a broken one.
_AS = "a NumPy archive", "Write it again with numpy.savez"


def read_arrays(reading: Reading) -> dict[str, AnyArray]:
    """The arrays of an archive; errors while reading it become an `InputError`."""
    # zipfile, its decompressors and numpy raise many types for a broken archive.
    with reading_as(*_AS, reading), zipfile.ZipFile(reading.handle) as archive:
        infos, found = archive.infolist(), dict[str, AnyArray]()
        if len(infos) > _MOST_ARRAYS:
            raise reading.fail(
                f"the archive has more than {_MOST_ARRAYS} arrays", "Check the file."
            )
        for info in infos:
            with archive.open(info) as file:
                name = info.filename.removesuffix(".npy")
                found[name] = _array(name, file, info, reading)
        return found


def _array(name: str, file: IO[bytes], info: zipfile.ZipInfo, reading: Reading) -> AnyArray:
    version = npy.read_magic(file)
    # Later versions are for headers of more than 64 kB, which numbers and texts never need.
    if version != (1, 0):
        raise ValueError(f"array version {version}")
    shape, fortran, dtype = npy.read_array_header_1_0(file)
    if dtype.itemsize == 0:
        # Such entries take no bytes, so that any number of them could be claimed.
        raise ValueError(f"the entries of the array {name!r} are empty")
    if dtype.hasobject:
        raise reading.fail(
            f"the array {name!r} is pickled and will not be opened",
            "Pickled data can run code: save plain arrays (numbers, or text of fixed width).",
        )
    size, start = math.prod(shape) * dtype.itemsize, file.tell()
    stored = info.compress_type == zipfile.ZIP_STORED
    # Neither the directory of the archive nor the array's header is to be believed.
    held = min(info.file_size, reading.size) if stored else info.file_size
    if min(shape, default=0) < 0 or size > held - start or not (stored or fits(size, reading.size)):
        raise reading.fail(
            f"the array {name!r} claims shape {shape} and type {dtype}: {size >> 20} MB of memory, "
            f"from a file of {reading.size} bytes",
            "Write it again with numpy.savez, not compressed; it may be truncated.",
        )
    content = _mapped(info, reading)[start:] if stored else np.frombuffer(file.read(), np.uint8)
    return content[:size].view(dtype).reshape(shape, order="F" if fortran else "C")


def _mapped(info: zipfile.ZipInfo, reading: Reading) -> AnyArray:
    """The bytes of a part of an archive that is not compressed, of which the checksum is right."""
    handle = reading.handle
    # The header of a part ends with the lengths of its name and of an extra field, then these.
    lengths = struct.unpack("<HH", os.pread(handle.fileno(), 30, info.header_offset)[26:])
    at = info.header_offset + 30 + sum(lengths)
    mapped = np.memmap(handle, np.uint8, "r", at, (info.file_size,))
    if zlib.crc32(mapped.data) != info.CRC:
        raise ValueError(f"Bad CRC-32 for file {info.filename!r}")
    return mapped


def texts_of(array: AnyArray, reading: Reading) -> AnyArray:
    """Texts or whole numbers as Python texts; raises an `InputError` if a text is none.

    numpy holds characters beyond Unicode, and would make texts of them that Python cannot hold.
    """
    with reading_as(*_AS, reading):
        if array.dtype.kind == "U":
            characters = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
            if np.ascontiguousarray(array).view(characters).max(initial=0) > sys.maxunicode:
                raise ValueError("a text holds a character beyond Unicode")
        return array.astype(str)


def npz_table(arrays: Arrays, reading: Reading) -> Table:
    """Rows from the arrays of an archive in either layout."""
    named = reading.named
    # Names to ignore may be arrays or features.
    left = {name: array for name, array in arrays.items() if name not in reading.ignore}
    # A list of texts, not the rows of a regime that happens to have that name.
    lists = {x for x, array in left.items() if array.dtype.kind in "US" and array.ndim == 1}
    header = [x for x in ("features", "columns") if x in lists]
    texts: Arrays = {}
    if "X" in arrays and named["regime"] in arrays:
        matrices = {"X": arrays["X"]}
        texts = {what: arrays[name] for what, name in named.items() if name in arrays}
        extra = sorted(left.keys() - {"X", *named.values(), *header})
        if extra:
            raise reading.fail(
                f"the archive has arrays beside X and {named['regime']}: {', '.join(extra)[:100]}",
                f"Keep X, {named['regime']} and features, or one array per regime.",
            )
    else:
        for what, column in list(named.items())[1:]:
            raise reading.fail(
                f"an archive with one array per regime has no {what} column",
                f"Store the rows in X, with {named['regime']} and {column}: one text per row each.",
            )
        matrices = {name: array for name, array in left.items() if name not in header}
        if not matrices:
            what = "the archive is empty, or has no matrix of rows"
            raise reading.fail(what, "Check the file.")
    first, width = next((name, array.shape[-1:]) for name, array in matrices.items())
    for name, array in matrices.items():
        regime = None if texts else name
        _check(array, name, reading, _ROWS, regime)
        if array.shape[1:] != width:
            raise reading.fail(
                f"it has {pluralise(array.shape[1], 'column')} where {first!r} has {width[0]}",
                "Use the same columns in every regime.",
                regime,
            )
    n = len(matrices[first])
    for what, array in texts.items():
        _check(array, named[what], reading, _TEXTS)
        if len(array) != n:
            raise reading.fail(
                f"X has {pluralise(n, 'row')} and {named[what]} {pluralise(len(array), 'value')}",
                f"Give every row its {what}.",
            )
    names = None
    if header:
        _check(left[header[0]], header[0], reading, _TEXTS)
        names = texts_of(left[header[0]], reading).tolist()
    columns = check_features(reading.client, names, width[0])
    widest = max((array.dtype.itemsize for array in texts.values()), default=1)
    step = min(chunk_rows(width[0]), max(1, _TEXT_CHUNK // widest))

    def rows(table: Table) -> Iterator[Chunk]:
        places = table.places(columns)
        for regime, matrix in matrices.items():
            for start in range(0, len(matrix), step):
                part = matrix[start : start + step]
                own: dict[str, Coded] = {"regime": ([regime], np.zeros(len(part), dtype=np.intp))}
                for what, array in texts.items():
                    some = texts_of(array[start : start + step], reading)
                    values, codes = np.unique(some, return_inverse=True)
                    own[what] = values.tolist(), codes
                yield Chunk(part[:, places], own)

    # With one array per regime, the regime of a row needs no column.
    beside = dict.fromkeys([*arrays, *(() if texts else named.values())], "")
    return choose_columns(reading, columns, rows, {}, beside=beside)


def _check(
    array: AnyArray, name: str, reading: Reading, kind: _Kind, regime: str | None = None
) -> None:
    """Refuse an array of another kind, and texts that are too long."""
    kinds, ndim, stored = kind
    if array.dtype.kind not in kinds or array.ndim != ndim or not array.size:
        what = f"the array {name!r} has type {array.dtype} and shape {array.shape}"
        raise reading.fail(what, f"Store it as a {stored}.", regime)
    if ndim == 1 and array.dtype.itemsize > _MOST_TEXT_BYTES:
        raise reading.fail(
            f"the texts in the array {name!r} take {array.dtype.itemsize} bytes each",
            f"Use texts of at most {_MOST_TEXT_BYTES // 4} characters.",
        )
