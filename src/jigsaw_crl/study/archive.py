"""NumPy archives; nothing in them is ever unpickled.

Two layouts are supported:

- `X` (rows, features) with `regime` (one text per row), and a batch and a group likewise if named;
- one array (rows, features) per regime, under the regime's name.

In both, `features` or `columns` may name the columns.

The header of every array is read first. What it claims is compared with the size of the file
before anything is allocated. Arrays are then read side by side, some rows at a time: compressed
ones cannot be mapped into memory.
"""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from jigsaw_crl.base.arrays import AnyArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.checks import check_features
from jigsaw_crl.moments.accumulator import Coded
from jigsaw_crl.study.data_file import DataFile, fits
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.table import Chunk, Table, check_width, choose_columns, chunk_rows, plain_rows

# As many as there may be regimes, and a few more.
_MOST_ARRAYS = 5_100
# Deflate, the usual compression of archives, cannot shrink data further.
_DEFLATE = 1_032
# Bytes of one text, which has four for each character; and of the texts that are read at a time.
_MOST_TEXT_BYTES, _TEXT_CHUNK = 4_000, 1 << 24
_AGAIN = "Write it again with numpy.savez; it may be truncated."


@dataclass(frozen=True)
class Member:
    """Header of one array of an archive."""

    name: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """Bytes of the array, as its header claims."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def names_columns(self) -> bool:
        """Is it a list of texts, not the rows of a regime that happens to have that name?"""
        named = self.name in ("features", "columns")
        return named and self.dtype.kind in "US" and len(self.shape) == 1


@contextmanager
def _opened(data: DataFile, reading: Reading) -> Iterator[zipfile.ZipFile]:
    """The open archive; errors while reading it become an `InputError`."""
    try:
        with readable(data.path), zipfile.ZipFile(data.from_start()) as archive:
            yield archive
    except (InputError, MemoryError, RecursionError):
        raise
    except Exception as error:
        # zipfile, its decompressors and numpy raise many types for a broken archive.
        raise reading.fail(f"the archive cannot be read ({str(error)[:150]})", _AGAIN) from None


def archive_members(data: DataFile, reading: Reading) -> dict[str, Member]:
    """The arrays of an archive, from their headers alone."""
    members = {}
    with _opened(data, reading) as archive:
        infos = archive.infolist()
        if not infos:
            raise reading.fail("the archive is empty", "Write it again.")
        if len(infos) > _MOST_ARRAYS:
            raise reading.fail(
                f"the archive has more than {_MOST_ARRAYS} arrays", "Check the file."
            )
        for info in infos:
            with archive.open(info) as file:
                member = _header(file, info.filename.removesuffix(".npy"), reading)
                before = file.tell()
            # Neither the directory of the archive nor the array's header is to be believed.
            held = min(info.file_size, _DEFLATE * (min(info.compress_size, data.size) + 1))
            if min(member.shape, default=0) < 0 or member.size > held - before:
                raise reading.fail(
                    f"the array {member.name!r} claims shape {member.shape} and type "
                    f"{member.dtype}, but the archive holds at most {held} bytes of it",
                    _AGAIN,
                )
            members[member.name] = member
    return members


def _header(file: IO[bytes], name: str, reading: Reading) -> Member:
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
    return Member(name, shape, fortran, dtype)


def read_array(data: DataFile, member: Member, reading: Reading) -> AnyArray:
    """One array as a whole, if it is not far larger than the file."""
    _check_fits(member, data, reading)
    with _opened(data, reading) as archive, archive.open(f"{member.name}.npy") as file:
        array = npy.read_array(file, allow_pickle=False)
        return _as_text(array) if array.dtype.kind in "US" else array


def _check_fits(member: Member, data: DataFile, reading: Reading) -> None:
    """Refuse an array that is read as a whole and far larger than the file."""
    if not fits(member.size, data.size):
        raise reading.fail(
            f"the array {member.name!r} would take {member.size >> 20} MB of memory, from a file "
            f"of {data.size} bytes",
            "Write it again with numpy.savez, in C order and not compressed.",
        )


def _as_text(texts: AnyArray) -> AnyArray:
    """Texts or whole numbers as Python texts; a `ValueError` if a text is none.

    numpy holds characters beyond Unicode, and would make texts of them that Python cannot hold.
    """
    if texts.dtype.kind == "U" and texts.dtype.itemsize:
        characters = np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder)
        if np.ascontiguousarray(texts).view(characters).max(initial=0) > sys.maxunicode:
            raise ValueError("a text holds a character beyond Unicode")
    return texts.astype(str)


def npz_table(data: DataFile, reading: Reading, members: Mapping[str, Member]) -> Table:
    """Rows from an archive in either layout."""
    named = reading.columns()
    # Names to ignore may be arrays or features.
    left = {name: m for name, m in members.items() if name not in reading.ignore}
    names = next((m for m in left.values() if m.names_columns), None)
    texts: dict[str, Member] = {}
    if "X" in members and named["regime"] in members:
        matrices = [members["X"]]
        texts = {what: members[n] for what, n in named.items() if n in members}
        _check_long_layout(left, members["X"], texts, reading)
    else:
        for what, column in list(named.items())[1:]:
            raise reading.fail(
                f"an archive with one array per regime has no {what} column",
                f"Store the rows in X, with {named['regime']} and {column}: one text per row each.",
            )
        matrices = [m for m in left.values() if not m.names_columns]
        _check_array_per_regime(matrices, reading)
    width = matrices[0].shape[1]
    check_width(width, reading)
    for member in matrices:
        if member.fortran:
            _check_fits(member, data, reading)
    if names is not None:
        _check_text(names, reading)
    given = None if names is None else read_array(data, names, reading).tolist()
    try:
        columns = check_features(reading.client, given, width)
    except InputError as error:
        raise error.located(path=data.path) from None
    # With one array per regime, the regime of a row needs no column.
    known = [*members, *(() if texts else named.values())]
    table = choose_columns(reading, columns, not_numbers={}, texts=known)
    widest = max((member.dtype.itemsize for member in texts.values()), default=1)
    step = min(chunk_rows(width), max(1, _TEXT_CHUNK // widest))

    def chunks() -> Iterator[Chunk]:
        with _opened(data, reading) as archive:
            for member in matrices:
                beside = [_entries(archive, m, step, reading) for m in (member, *texts.values())]
                for rows, *found in zip(*beside, strict=True):
                    codes = np.zeros(len(rows), dtype=np.intp)
                    own: dict[str, Coded] = {"regime": ([member.name], codes)}
                    for what, entries in zip(texts, found, strict=True):
                        values, codes = np.unique(_as_text(entries), return_inverse=True)
                        own[what] = values.tolist(), codes
                    yield Chunk(plain_rows(rows), own)

    return replace(table, features=tuple(columns), chunks=chunks).choose(table.features)


def _entries(
    archive: zipfile.ZipFile, member: Member, step: int, reading: Reading
) -> Iterator[AnyArray]:
    """An array, `step` entries of its first axis at a time."""
    n, rest = member.shape[0], member.shape[1:]
    with archive.open(f"{member.name}.npy") as file:
        if member.fortran and rest:
            # Stored column by column, so no row is complete before the end.
            whole = npy.read_array(file, allow_pickle=False)
            yield from (whole[start : start + step] for start in range(0, n, step))
            return
        _header(file, member.name, reading)
        size = math.prod(rest) * member.dtype.itemsize
        for start in range(0, n, step):
            count = min(step, n - start)
            yield np.frombuffer(file.read(count * size), member.dtype).reshape(count, *rest)


def _check_long_layout(
    left: Mapping[str, Member], X: Member, texts: Mapping[str, Member], reading: Reading
) -> None:
    """Raise an `InputError` unless the archive has a matrix X and texts for each row alone."""
    regime = texts["regime"].name
    known = (X.name, *(member.name for member in texts.values()))
    extra = sorted(n for n, m in left.items() if n not in known and not m.names_columns)
    if extra:
        raise reading.fail(
            f"the archive has arrays beside X and {regime}: {', '.join(extra)[:100]}",
            f"Keep X, {regime} and features, or one array per regime.",
        )
    _check_matrix(X, reading)
    for what, member in texts.items():
        _check_text(member, reading)
        if member.shape[0] != X.shape[0]:
            raise reading.fail(
                f"X has {pluralise(X.shape[0], 'row')} and {member.name} "
                f"{pluralise(member.shape[0], 'value')}",
                f"Give every row its {what}.",
            )


def _check_array_per_regime(matrices: list[Member], reading: Reading) -> None:
    if not matrices:
        raise reading.fail("the archive has no matrix of rows", "Check the file.")
    for member in matrices:
        _check_matrix(member, reading, member.name)
        if member.shape[1] != matrices[0].shape[1]:
            raise reading.fail(
                f"it has {pluralise(member.shape[1], 'column')} where {matrices[0].name!r} has "
                f"{matrices[0].shape[1]}",
                "Use the same columns in every regime.",
                member.name,
            )


def _check_matrix(member: Member, reading: Reading, regime: str | None = None) -> None:
    if member.dtype.kind not in "fiu" or len(member.shape) != 2 or member.shape[1] == 0:
        raise reading.fail(
            f"the array {member.name!r} has type {member.dtype} and shape {member.shape}",
            "Store rows as a matrix of real numbers, one column per feature.",
            regime,
        )
    if member.shape[0] == 0:
        raise reading.fail(f"the array {member.name!r} has no rows", "Check the file.", regime)


def _check_text(member: Member, reading: Reading) -> None:
    if member.dtype.kind not in "UiuS" or len(member.shape) != 1:
        raise reading.fail(
            f"the array {member.name!r} has type {member.dtype} and shape {member.shape}",
            "Store it as one text per entry.",
        )
    if member.dtype.itemsize > _MOST_TEXT_BYTES:
        raise reading.fail(
            f"the texts in the array {member.name!r} take {member.dtype.itemsize} bytes each",
            f"Use texts of at most {_MOST_TEXT_BYTES // 4} characters.",
        )
