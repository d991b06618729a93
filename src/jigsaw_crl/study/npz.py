"""NumPy archives, read member by member; nothing in them is ever unpickled.

Two layouts:

- `X` (rows, features) with `regime` (one text per row);
- one array (rows, features) per regime, under the regime's name, the control under the control's.

In both, `features` or `columns` may name the columns.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable
from jigsaw_crl.base.text import did_you_mean, pluralise
from jigsaw_crl.study.regimes import Chunk, Naming, Source, chunk_rows

__all__ = ["archive_members", "npz_source"]


@dataclass(frozen=True)
class _Member:
    """Header of one array of an archive."""

    name: str
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]


@dataclass(frozen=True, eq=False)
class _NpzSource:
    path: Path
    client: str
    features: tuple[str, ...]
    kept: npt.NDArray[np.intp]
    matrices: tuple[_Member, ...]
    regimes: npt.NDArray[Any] | None
    ignored: Mapping[str, str] = field(default_factory=dict)

    def chunks(self) -> Iterator[Chunk]:
        with readable(self.path), zipfile.ZipFile(self.path) as archive:
            for member in self.matrices:
                start = 0
                for rows in _rows(archive, member, self.path, self.client):
                    stop = start + len(rows)
                    if len(self.kept) < rows.shape[1]:
                        rows = rows[:, self.kept]
                    if self.regimes is None:
                        yield Chunk([member.name], np.zeros(len(rows), dtype=np.int32), rows)
                    else:
                        names, codes = np.unique(self.regimes[start:stop], return_inverse=True)
                        yield Chunk([str(n) for n in names], codes.astype(np.int32), rows)
                    start = stop


def archive_members(path: Path, client: str) -> dict[str, _Member]:
    """The arrays of an archive, by their headers alone."""
    members = {}
    with readable(path):
        try:
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    name = info.filename.removesuffix(".npy")
                    with archive.open(info) as file:
                        members[name] = _header(file, name, path, client)
        except (zipfile.BadZipFile, EOFError, ValueError) as error:
            raise _broken(path, client, error) from None
    if not members:
        raise InputError("the archive is empty", "Write it again.", client=client, path=path)
    return members


def npz_source(path: Path, naming: Naming, client: str) -> Source:
    """Rows from an archive in either layout."""
    members = archive_members(path, client)
    regime_key = naming.column()
    if "X" in members and regime_key in members:
        return _long_source(path, members, regime_key, naming, client)
    # An array that is to be ignored is no regime; the rest of the list are features.
    left = {name: m for name, m in members.items() if name not in naming.ignore}
    matrices = tuple(m for name, m in left.items() if not _names_columns(m))
    if not matrices:
        raise InputError(
            "the archive has no matrix of rows", "Check the file.", client=client, path=path
        )
    for member in matrices:
        _check_matrix(member, path, client, regime=member.name)
    widths = {m.shape[1] for m in matrices}
    if len(widths) > 1:
        odd = next(m for m in matrices if m.shape[1] != matrices[0].shape[1])
        raise InputError(
            f"it has {pluralise(odd.shape[1], 'column')} where {matrices[0].name!r} has "
            f"{matrices[0].shape[1]}",
            "Use the same columns in every regime.",
            client=client,
            regime=odd.name,
            path=path,
        )
    features = _features(path, left, widths.pop(), client)
    ignore = [name for name in naming.ignore if name not in members]
    return _source(path, client, features, ignore, matrices, None)


def _source(
    path: Path,
    client: str,
    features: tuple[str, ...],
    ignore: Sequence[str],
    matrices: tuple[_Member, ...],
    regimes: npt.NDArray[Any] | None,
) -> Source:
    """Without the features that are to be ignored."""
    unknown = [name for name in ignore if name not in features]
    if unknown:
        raise InputError(
            f"there is no column {unknown[0]!r} to ignore",
            did_you_mean(unknown[0], features) or "Check the spelling.",
            client=client,
            path=path,
        )
    kept = np.array([i for i, name in enumerate(features) if name not in ignore], dtype=np.intp)
    names = tuple(features[i] for i in kept)
    return _NpzSource(path, client, names, kept, matrices, regimes)


def _names_columns(member: _Member) -> bool:
    """A list of texts, and no rows of a regime that happens to have that name."""
    named = member.name in ("features", "columns")
    return named and member.dtype.kind in "US" and len(member.shape) == 1


def _features(
    path: Path, members: Mapping[str, _Member], width: int, client: str
) -> tuple[str, ...]:
    """Names of the columns: the archive's own, or x1, x2 …"""
    given = next((m for m in members.values() if _names_columns(m)), None)
    if given is None:
        return tuple(f"x{i + 1}" for i in range(width))
    names = tuple(_text(path, given, client).tolist())
    if len(names) != width or len(set(names)) != width:
        raise InputError(
            f"{pluralise(len(set(names)), 'distinct feature name')} for "
            f"{pluralise(width, 'column')}",
            "Name every column once.",
            client=client,
            path=path,
        )
    return names


def _long_source(
    path: Path, members: dict[str, _Member], regime: str, naming: Naming, client: str
) -> Source:
    others = {n: m for n, m in members.items() if n not in ("X", regime, *naming.ignore)}
    extra = sorted(name for name, m in others.items() if not _names_columns(m))
    if extra:
        raise InputError(
            f"the archive has arrays beside X and {regime}: {', '.join(extra)[:100]}",
            f"Keep X, {regime} and features, or one array per regime.",
            client=client,
            path=path,
        )
    X = members["X"]
    _check_matrix(X, path, client, regime=None)
    regimes = _text(path, members[regime], client)
    if len(regimes) != X.shape[0]:
        raise InputError(
            f"X has {pluralise(X.shape[0], 'row')} and {regime} {pluralise(len(regimes), 'value')}",
            "Give every row its regime.",
            client=client,
            path=path,
        )
    features = _features(path, others, X.shape[1], client)
    ignore = [name for name in naming.ignore if name not in members]
    return _source(path, client, features, ignore, (X,), regimes)


def _check_matrix(member: _Member, path: Path, client: str, regime: str | None) -> None:
    if member.dtype.kind not in "fiu" or len(member.shape) != 2 or member.shape[1] == 0:
        raise InputError(
            f"the array {member.name!r} has type {member.dtype} and shape {member.shape}",
            "Store rows as a matrix of real numbers, one column per feature.",
            client=client,
            regime=regime,
            path=path,
        )
    if member.shape[0] == 0:
        raise InputError(
            f"the array {member.name!r} has no rows",
            "Check the file.",
            client=client,
            regime=regime,
            path=path,
        )


def _header(file: IO[bytes], name: str, path: Path, client: str) -> _Member:
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"array version {version}")
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise InputError(
            f"the array {name!r} is pickled and will not be opened",
            "Pickled data can run code: save plain arrays (numbers, or text of fixed width).",
            client=client,
            path=path,
        )
    return _Member(name, shape, fortran, dtype)


def _text(path: Path, member: _Member, client: str) -> npt.NDArray[Any]:
    if member.dtype.kind not in "UiuS" or len(member.shape) != 1:
        raise InputError(
            f"the array {member.name!r} has type {member.dtype} and shape {member.shape}",
            "Store it as one text per entry.",
            client=client,
            path=path,
        )
    try:
        with (
            readable(path),
            zipfile.ZipFile(path) as archive,
            archive.open(f"{member.name}.npy") as file,
        ):
            return npy.read_array(file, allow_pickle=False).astype(str)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _broken(path, client, error) from None


def _rows(
    archive: zipfile.ZipFile, member: _Member, path: Path, client: str
) -> Iterator[npt.NDArray[Any]]:
    n, d = member.shape
    try:
        with archive.open(f"{member.name}.npy") as file:
            if member.fortran:
                # Columns lie one after the other, so rows can only be had all at once.
                yield npy.read_array(file, allow_pickle=False)
                return
            _header(file, member.name, path, client)
            step = chunk_rows(d)
            for start in range(0, n, step):
                count = min(step, n - start)
                data = file.read(count * d * member.dtype.itemsize)
                rows = np.frombuffer(data, dtype=member.dtype).reshape(count, d)
                yield _plain(rows)
    except (zipfile.BadZipFile, EOFError, ValueError) as error:
        raise _broken(path, client, error) from None


def _plain(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return rows if rows.dtype == np.float32 else rows.astype(np.float64)


def _broken(path: Path, client: str, error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    return InputError(
        f"the archive cannot be read ({' '.join(str(error).split())[:150]})",
        "Write it again with numpy.savez; it may be truncated.",
        client=client,
        path=path,
    )
