"""A client's file, opened once: its hash and its rows come from the same handle.

So the hash in a result's provenance is that of the bytes that were read, even if the file is
replaced meanwhile.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from jigsaw_crl.base.files import open_regular

__all__ = ["DataFile", "open_data"]

# Hashing a file of this size takes less than a second.
LARGEST_HASHED = 1 << 28


@dataclass(frozen=True, eq=False)
class DataFile:
    """An open file, or a folder of files.

    Parameters
    ----------
    path : Path
    handle : binary file or None
        None for a folder, whose files are opened one after the other.
    """

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
    handle = None if path.is_dir() else open_regular(path)
    try:
        yield DataFile(path, handle)
    finally:
        if handle is not None:
            handle.close()
