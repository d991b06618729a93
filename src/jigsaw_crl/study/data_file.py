"""A client's file, opened once, and how much it may make this program hold in memory.

The hash and the rows come from the same handle. So the hash in a result's provenance is that of the
bytes that were read, even if the file is replaced meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from urllib.parse import unquote

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import open_regular

# Hashing a file of this size takes less than a second.
LARGEST_HASHED = 1 << 28
# What is held in memory as a whole may take this many bytes, or this many times the file's size.
# Texts and counts of real files are compressed up to about thirty times.
_SMALL, _EXPANSION = 1 << 26, 100
# Entries of a folder that are looked at, and levels below it.
_MOST_ENTRIES, _MOST_LEVELS = 20_000, 8


def fits(size: int, file_size: int) -> bool:
    """May `size` bytes be held in memory for a file of `file_size` bytes?"""
    return size <= max(_SMALL, _EXPANSION * file_size)


@dataclass(frozen=True, eq=False)
class DataFile:
    """An open file, or a folder of files, which has no handle: they are opened one by one."""

    path: Path
    handle: BufferedReader | None

    def from_start(self) -> BufferedReader:
        """The handle, at the beginning of the file."""
        assert self.handle is not None
        self.handle.seek(0)
        return self.handle

    def copy(self) -> BufferedReader:
        """Another handle of the same open file, at its beginning, for a reader that closes it."""
        again = os.fdopen(os.dup(self.from_start().fileno()), "rb")
        again.seek(0)
        return again

    @property
    def size(self) -> int:
        """Bytes of the open file; 0 for a folder."""
        return 0 if self.handle is None else os.fstat(self.handle.fileno()).st_size

    def sha256(self) -> str | None:
        """The file's SHA-256, for provenance; None for folders and for files above 256 MB."""
        if self.handle is None or self.size > LARGEST_HASHED:
            return None
        return hashlib.file_digest(self.from_start(), "sha256").hexdigest()


@contextmanager
def open_data(path: Path) -> Iterator[DataFile]:
    """Open a client's file, or accept a folder; what goes wrong is an `InputError`."""
    if path.is_dir():
        yield DataFile(path, None)
        return
    with open_regular(path) as handle:
        yield DataFile(path, handle)


def files_below(folder: Path, ending: str) -> Iterator[Path]:
    """Files with this ending in a folder and its sub-folders, at most eight levels down.

    Links to folders are not followed, and hidden entries and those that begin with an underscore
    are left out. After 20,000 entries an `InputError` is raised.
    """

    def stop(error: OSError) -> None:
        raise error

    seen = 0
    for place, folders, files in os.walk(folder, onerror=stop):
        seen += len(folders) + len(files)
        if seen > _MOST_ENTRIES:
            raise InputError(
                f"the folder holds more than {_MOST_ENTRIES} entries",
                "Name the client's own folder.",
                path=folder,
            )
        level = len(Path(place).relative_to(folder).parts) + 1
        folders[:] = sorted(x for x in folders if x[0] not in "._" and level < _MOST_LEVELS)
        found = (Path(place, x) for x in files if x[0] not in "._" and x.endswith(ending))
        yield from (path for path in found if path.is_file())


def parquet_parts(folder: Path) -> list[tuple[Path, dict[str, str]]]:
    """Files of a folder with the `key=value` pairs of their paths, in a fixed order."""
    parts = []
    for file in sorted(files_below(folder, ".parquet")):
        keys = dict(p.split("=", 1) for p in file.relative_to(folder).parts[:-1] if "=" in p)
        parts.append((file, {k: unquote(v) for k, v in keys.items()}))
    return parts
