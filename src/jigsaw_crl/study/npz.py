"""NumPy archives, read array by array; nothing in them is ever unpickled.

Two layouts are supported:

- `X` (rows, features) with `regime` (one text per row), and a batch column likewise if named;
- one array (rows, features) per regime, under the regime's name.

In both, `features` or `columns` may name the columns.

The header of every array is read first. What it claims is compared with the size of the file
before anything is allocated.
"""

from __future__ import annotations

import io
import math
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from jigsaw_crl.base.arrays import AnyArray, IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.checks import check_features
from jigsaw_crl.study.columns import check_beside, kept_positions, plain_rows
from jigsaw_crl.study.data_file import DataFile
from jigsaw_crl.study.limits import check_columns, fits
from jigsaw_crl.study.source import Chunk, Reading, Source, chunk_rows

__all__ = ["Member", "archive_members", "npz_source", "read_array"]

Fail = Callable[..., InputError]

# By version of the array's header: bytes of its length, and numpy's reader.
_HEADERS = {(1, 0): (2, npy.read_array_header_1_0), (2, 0): (4, npy.read_array_header_2_0)}
_MOST_HEADER_BYTES = 1 << 16
# As many as there may be regimes, and a few more.
_MOST_ARRAYS = 5_100
# Deflate, the usual compression of archives, cannot shrink data further.
_DEFLATE = 1_032
# Bytes of one text, which has four for each character; and of the texts that are read at a time.
_MOST_TEXT_BYTES, _TEXT_CHUNK = 4_000, 1 << 24


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


@contextmanager
def _opened(data: DataFile, fail: Fail) -> Iterator[zipfile.ZipFile]:
    """The open archive; errors while reading it become an `InputError`."""
    try:
        with readable(data.path), zipfile.ZipFile(data.from_start()) as archive:
            yield archive
    except InputError:
        raise
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        # zipfile, its decompressors and numpy raise many types for a broken archive.
        raise fail(
            f"the archive cannot be read ({str(error)[:150]})",
            "Write it again with numpy.savez; it may be truncated.",
        ) from None


def archive_members(data: DataFile, client: str) -> dict[str, Member]:
    """The arrays of an archive, from their headers alone."""
    fail = partial(InputError, client=client, path=data.path)
    members = {}
    with _opened(data, fail) as archive:
        infos = archive.infolist()
        if len(infos) > _MOST_ARRAYS:
            raise fail(f"the archive has more than {_MOST_ARRAYS} arrays", "Check the file.")
        for info in infos:
            name = info.filename.removesuffix(".npy")
            with archive.open(info) as file:
                member = members[name] = _header(file, name, fail)
                _check_claim(info, member, file.tell(), data.size, fail)
    if not members:
        raise fail("the archive is empty", "Write it again.")
    return members


def npz_source(data: DataFile, reading: Reading) -> Source:
    """Rows from an archive in either layout."""
    naming, fail = reading.naming, reading.fail
    members = archive_members(data, reading.client)
    # Names to ignore may be arrays or features.
    left = {name: m for name, m in members.items() if name not in naming.ignore}
    regime = naming.column()
    # The regime, the batch and the group of each row.
    texts: dict[str, Member] = {}
    if "X" in members and regime in members:
        check_beside(members, naming.beside, regime, fail)
        texts = {"regime": members[regime]}
        texts |= {what: left.pop(n, members[n]) for what, n in naming.beside.items()}
        matrices = [members["X"]]
        _check_long_layout(left, members["X"], texts, fail)
    else:
        for what, column in naming.beside.items():
            raise fail(
                f"an archive with one array per regime has no {what} column",
                f"Store the rows in X, with {regime} and {column}: one text per row each.",
            )
        matrices = _array_per_regime(left, fail)
    width = matrices[0].shape[1]
    check_columns(width, fail)
    for member in matrices:
        if member.fortran:
            _check_fits(member, data, fail)
    named = next((m for m in left.values() if _names_columns(m)), None)
    given = None if named is None else _text(data, named, fail).tolist()
    try:
        features = check_features(reading.client, given, width)
    except InputError as error:
        raise error.located(path=data.path) from None
    ignore, lacking = naming.ignored_among([*members, *features])
    kept = kept_positions(features, [name for name in ignore if name not in members], fail)
    chunks = partial(_chunks, data, kept, matrices, texts, fail)
    return Source(tuple(features[i] for i in kept), chunks, lacking=lacking)


def _check_long_layout(
    left: Mapping[str, Member], X: Member, texts: Mapping[str, Member], fail: Fail
) -> None:
    """Raise an `InputError` unless the archive has a matrix X and texts for each row alone."""
    regime = texts["regime"]
    known = (X.name, regime.name)
    extra = sorted(n for n, m in left.items() if n not in known and not _names_columns(m))
    if extra:
        raise fail(
            f"the archive has arrays beside X and {regime.name}: {', '.join(extra)[:100]}",
            f"Keep X, {regime.name} and features, or one array per regime.",
        )
    _check_matrix(X, fail)
    for what, member in texts.items():
        _check_text(member, fail)
        if member.shape[0] != X.shape[0]:
            raise fail(
                f"X has {pluralise(X.shape[0], 'row')} and {member.name} "
                f"{pluralise(member.shape[0], 'value')}",
                f"Give every row its {what}.",
            )


def _array_per_regime(left: Mapping[str, Member], fail: Fail) -> list[Member]:
    """The matrices of an archive with one array per regime."""
    matrices = [m for m in left.values() if not _names_columns(m)]
    if not matrices:
        raise fail("the archive has no matrix of rows", "Check the file.")
    for member in matrices:
        _check_matrix(member, partial(fail, regime=member.name))
    first = matrices[0]
    odd = next((m for m in matrices if m.shape[1] != first.shape[1]), None)
    if odd is not None:
        raise fail(
            f"it has {pluralise(odd.shape[1], 'column')} where {first.name!r} has {first.shape[1]}",
            "Use the same columns in every regime.",
            regime=odd.name,
        )
    return matrices


def _names_columns(member: Member) -> bool:
    """Is it a list of texts, not the rows of a regime that happens to have that name?"""
    named = member.name in ("features", "columns")
    return named and member.dtype.kind in "US" and len(member.shape) == 1


def _check_matrix(member: Member, fail: Fail) -> None:
    if member.dtype.kind not in "fiu" or len(member.shape) != 2 or member.shape[1] == 0:
        raise fail(
            f"the array {member.name!r} has type {member.dtype} and shape {member.shape}",
            "Store rows as a matrix of real numbers, one column per feature.",
        )
    if member.shape[0] == 0:
        raise fail(f"the array {member.name!r} has no rows", "Check the file.")


def _header(file: IO[bytes], name: str, fail: Fail) -> Member:
    version = npy.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"array version {version}")
    width, read = _HEADERS[version]
    length = file.read(width)
    # numpy would read a header of any length.
    if int.from_bytes(length, "little") > _MOST_HEADER_BYTES:
        raise ValueError(f"the header of the array {name!r} is too long")
    shape, fortran, dtype = read(io.BytesIO(length + file.read(int.from_bytes(length, "little"))))
    if dtype.itemsize == 0:
        # Such entries take no bytes, so that any number of them could be claimed.
        raise ValueError(f"the entries of the array {name!r} are empty")
    if dtype.hasobject:
        raise fail(
            f"the array {name!r} is pickled and will not be opened",
            "Pickled data can run code: save plain arrays (numbers, or text of fixed width).",
        )
    return Member(name, shape, fortran, dtype)


def _check_claim(
    info: zipfile.ZipInfo, member: Member, start: int, file_size: int, fail: Fail
) -> None:
    """Raise an `InputError` if an array claims more bytes than the archive can hold for it."""
    held = min(info.file_size, _DEFLATE * min(info.compress_size, file_size) + _DEFLATE)
    if min(member.shape, default=0) < 0 or member.size > held - start:
        raise fail(
            f"the array {member.name!r} claims shape {member.shape} and type {member.dtype}, but "
            f"the archive holds at most {held} bytes of it",
            "Write it again with numpy.savez; it may be truncated.",
        )


def _check_fits(member: Member, data: DataFile, fail: Fail) -> None:
    """Refuse an array that is read as a whole and far larger than the file."""
    if not fits(member.size, data.size):
        raise fail(
            f"the array {member.name!r} would take {member.size >> 20} MB of memory, from a file "
            f"of {data.size} bytes",
            "Write it again with numpy.savez, in C order and not compressed.",
        )


def _check_text(member: Member, fail: Fail) -> None:
    if member.dtype.kind not in "UiuS" or len(member.shape) != 1:
        raise fail(
            f"the array {member.name!r} has type {member.dtype} and shape {member.shape}",
            "Store it as one text per entry.",
        )
    if member.dtype.itemsize > _MOST_TEXT_BYTES:
        raise fail(
            f"the texts in the array {member.name!r} take {member.dtype.itemsize} bytes each",
            f"Use texts of at most {_MOST_TEXT_BYTES // 4} characters.",
        )


def read_array(data: DataFile, member: Member, fail: Fail) -> AnyArray:
    """One array as a whole, if it is not far larger than the file."""
    _check_fits(member, data, fail)
    with _opened(data, fail) as archive, archive.open(f"{member.name}.npy") as file:
        array = npy.read_array(file, allow_pickle=False)
        return _as_text(array) if array.dtype.kind in "US" else array


def _as_text(texts: AnyArray) -> AnyArray:
    """Texts or whole numbers as Python texts; a `ValueError` if a text is none.

    numpy holds characters beyond Unicode, and would make texts of them that Python cannot hold.
    """
    if texts.dtype.kind == "U" and texts.dtype.itemsize:
        characters = np.dtype(np.uint32).newbyteorder(texts.dtype.byteorder)
        if np.ascontiguousarray(texts).view(characters).max(initial=0) > sys.maxunicode:
            raise ValueError("a text holds a character beyond Unicode")
    return texts.astype(str)


def _text(data: DataFile, member: Member, fail: Fail) -> AnyArray:
    _check_text(member, fail)
    return read_array(data, member, fail).astype(str)


def _chunks(
    data: DataFile,
    kept: IntArray,
    matrices: list[Member],
    texts: dict[str, Member],
    fail: Fail,
) -> Iterator[Chunk]:
    """Rows of each matrix. `texts` hold the regime, batch and group of each row, if known.

    All arrays are read side by side, so that none is held as a whole.
    """
    widest = max((member.dtype.itemsize for member in texts.values()), default=1)
    with _opened(data, fail) as archive:
        for member in matrices:
            step = min(chunk_rows(member.shape[1]), max(1, _TEXT_CHUNK // widest))
            beside = [_entries(archive, m, step, fail) for m in (member, *texts.values())]
            for rows, *found in zip(*beside, strict=True):
                own = {what: _coded(x) for what, x in zip(texts, found, strict=True)}
                whole = [member.name], np.zeros(len(rows), dtype=np.intp)
                regimes, codes = own.get("regime", whole)
                given = own.get("batch"), own.get("group")
                yield Chunk(regimes, codes, plain_rows(rows, kept), *given)


def _coded(texts: AnyArray) -> tuple[list[str], IntArray]:
    """The different texts, and the code of each entry."""
    found, codes = np.unique(_as_text(texts), return_inverse=True)
    return found.tolist(), codes


def _entries(archive: zipfile.ZipFile, member: Member, step: int, fail: Fail) -> Iterator[AnyArray]:
    """An array, `step` entries of its first axis at a time."""
    n, rest = member.shape[0], member.shape[1:]
    with archive.open(f"{member.name}.npy") as file:
        if member.fortran and rest:
            # Stored column by column, so no row is complete before the end.
            whole = npy.read_array(file, allow_pickle=False)
            yield from (whole[start : start + step] for start in range(0, n, step))
            return
        _header(file, member.name, fail)
        size = math.prod(rest) * member.dtype.itemsize
        for start in range(0, n, step):
            count = min(step, n - start)
            data = file.read(count * size)
            yield np.frombuffer(data, dtype=member.dtype).reshape(count, *rest)
