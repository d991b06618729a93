"""NumPy archives, read array by array; nothing in them is ever unpickled.

Two layouts are supported:

- `X` (rows, features) with `regime` (one text per row), and a batch column likewise if named;
- one array (rows, features) per regime, under the regime's name.

In both, `features` or `columns` may name the columns.
"""

from __future__ import annotations

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
from jigsaw_crl.study.columns import check_batch_column, kept_positions, plain_rows
from jigsaw_crl.study.data_file import DataFile
from jigsaw_crl.study.regimes import Chunk, Naming, Source, chunk_rows

__all__ = ["archive_members", "npz_source"]

Fail = Callable[..., InputError]


@dataclass(frozen=True)
class _Member:
    """Header of one array of an archive."""

    name: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


@contextmanager
def _opened(data: DataFile, fail: Fail) -> Iterator[zipfile.ZipFile]:
    """The open archive; errors while reading it become an `InputError`."""
    try:
        with readable(data.path), zipfile.ZipFile(data.from_start()) as archive:
            yield archive
    except InputError:
        raise
    except (zipfile.BadZipFile, ValueError) as error:
        raise fail(
            f"the archive cannot be read ({str(error)[:150]})",
            "Write it again with numpy.savez; it may be truncated.",
        ) from None


def archive_members(data: DataFile, client: str) -> dict[str, _Member]:
    """The arrays of an archive, from their headers alone."""
    fail = partial(InputError, client=client, path=data.path)
    members = {}
    with _opened(data, fail) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            with archive.open(info) as file:
                members[name] = _header(file, name, fail)
    if not members:
        raise fail("the archive is empty", "Write it again.")
    return members


def npz_source(data: DataFile, naming: Naming, client: str) -> Source:
    """Rows from an archive in either layout."""
    fail = partial(InputError, client=client, path=data.path)
    members = archive_members(data, client)
    # Names to ignore may be arrays or features.
    left = {name: m for name, m in members.items() if name not in naming.ignore}
    regime = naming.column()
    batches = None
    if "X" in members and regime in members:
        check_batch_column(members, naming.batch, regime, fail)
        if naming.batch is not None:
            batches = left.pop(naming.batch, members[naming.batch])
        matrices, regimes = _long_layout(data, left, members["X"], members[regime], fail)
    else:
        if naming.batch is not None:
            raise fail(
                "an archive with one array per regime has no batch column",
                f"Store the rows in X, with {regime} and {naming.batch}: one text per row each.",
            )
        matrices, regimes = _array_per_regime(left, fail), None
    width = matrices[0].shape[1]
    named = next((m for m in left.values() if _names_columns(m)), None)
    given = None if named is None else _text(data, named, fail).tolist()
    try:
        features = check_features(client, given, width)
    except InputError as error:
        raise error.located(path=data.path) from None
    ignore = [name for name in naming.ignore if name not in members]
    kept = kept_positions(features, ignore, fail)
    own = None if batches is None else _one_per_row(data, batches, matrices[0], "batch", fail)
    chunks = partial(_chunks, data, kept, matrices, regimes, own, fail)
    return Source(tuple(features[i] for i in kept), chunks)


def _long_layout(
    data: DataFile, left: Mapping[str, _Member], X: _Member, regime: _Member, fail: Fail
) -> tuple[list[_Member], AnyArray]:
    """The matrix X, and the regime of each of its rows."""
    known = (X.name, regime.name)
    extra = sorted(n for n, m in left.items() if n not in known and not _names_columns(m))
    if extra:
        raise fail(
            f"the archive has arrays beside X and {regime.name}: {', '.join(extra)[:100]}",
            f"Keep X, {regime.name} and features, or one array per regime.",
        )
    _check_matrix(X, fail)
    return [X], _one_per_row(data, regime, X, "regime", fail)


def _one_per_row(data: DataFile, member: _Member, X: _Member, what: str, fail: Fail) -> AnyArray:
    """An array of texts, one for each row of X."""
    values = _text(data, member, fail)
    if len(values) != X.shape[0]:
        raise fail(
            f"X has {pluralise(X.shape[0], 'row')} and {member.name} "
            f"{pluralise(len(values), 'value')}",
            f"Give every row its {what}.",
        )
    return values


def _array_per_regime(left: Mapping[str, _Member], fail: Fail) -> list[_Member]:
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


def _names_columns(member: _Member) -> bool:
    """Is it a list of texts, not the rows of a regime that happens to have that name?"""
    named = member.name in ("features", "columns")
    return named and member.dtype.kind in "US" and len(member.shape) == 1


def _check_matrix(member: _Member, fail: Fail) -> None:
    if member.dtype.kind not in "fiu" or len(member.shape) != 2 or member.shape[1] == 0:
        raise fail(
            f"the array {member.name!r} has type {member.dtype} and shape {member.shape}",
            "Store rows as a matrix of real numbers, one column per feature.",
        )
    if member.shape[0] == 0:
        raise fail(f"the array {member.name!r} has no rows", "Check the file.")


def _header(file: IO[bytes], name: str, fail: Fail) -> _Member:
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"array version {version}")
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise fail(
            f"the array {name!r} is pickled and will not be opened",
            "Pickled data can run code: save plain arrays (numbers, or text of fixed width).",
        )
    return _Member(name, shape, fortran, dtype)


def _text(data: DataFile, member: _Member, fail: Fail) -> AnyArray:
    if member.dtype.kind not in "UiuS" or len(member.shape) != 1:
        raise fail(
            f"the array {member.name!r} has type {member.dtype} and shape {member.shape}",
            "Store it as one text per entry.",
        )
    with _opened(data, fail) as archive, archive.open(f"{member.name}.npy") as file:
        return npy.read_array(file, allow_pickle=False).astype(str)


def _chunks(
    data: DataFile,
    kept: IntArray,
    matrices: list[_Member],
    regimes: AnyArray | None,
    batches: AnyArray | None,
    fail: Fail,
) -> Iterator[Chunk]:
    with _opened(data, fail) as archive:
        for member in matrices:
            start = 0
            for rows in _rows(archive, member, fail):
                stop = start + len(rows)
                names, codes = [member.name], np.zeros(len(rows), dtype=np.intp)
                if regimes is not None:
                    found, codes = np.unique(regimes[start:stop], return_inverse=True)
                    names = found.tolist()
                own = None
                if batches is not None:
                    found, places = np.unique(batches[start:stop], return_inverse=True)
                    own = found.tolist(), places
                yield Chunk(names, codes, plain_rows(rows, kept), own)
                start = stop


def _rows(archive: zipfile.ZipFile, member: _Member, fail: Fail) -> Iterator[AnyArray]:
    n, d = member.shape
    with archive.open(f"{member.name}.npy") as file:
        if member.fortran:
            # Stored column by column, so no row is complete before the end.
            yield npy.read_array(file, allow_pickle=False)
            return
        _header(file, member.name, fail)
        step = chunk_rows(d)
        for start in range(0, n, step):
            count = min(step, n - start)
            data = file.read(count * d * member.dtype.itemsize)
            yield np.frombuffer(data, dtype=member.dtype).reshape(count, d)
