"""A lock between processes, so that two runs do not use one record at the same time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import writable

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["locked"]

_POLL = 0.05


def _try_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


@contextmanager
def locked(path: Path, what: str, *, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock of a file or folder, `PATH.lock`, for the length of a block.

    The system frees the lock when the process ends, however it ends.

    Parameters
    ----------
    path : Path
    what : str
        Names the thing in the error, for instance ``"the record"``.
    patience : float
        Seconds to wait for another process.

    Raises
    ------
    InputError
        Another process holds the lock.
    """
    file = path.with_name(path.name + ".lock")
    with writable(file):
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + patience
        while not _try_lock(handle):
            if time.monotonic() >= end:
                raise InputError(
                    f"{what} is in use by another run", "Wait until that run has ended.", path=path
                )
            time.sleep(_POLL)
        yield
    finally:
        os.close(handle)
