"""A lock between processes, so that two runs do not write to one folder or record at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import writable

__all__ = ["locked"]


@contextmanager
def locked(path: Path, what: str = "the folder", *, patience: float = 0.0) -> Iterator[None]:
    """Hold a file or an existing folder against other runs for the length of a block.

    The lock is a file: `.lock` in the folder, `NAME.lock` beside the file. It is gone afterwards.
    The system frees it when the process ends, however it ends; a process that was started meanwhile
    does not inherit it. The same thread may hold it once more inside the block.

    Parameters
    ----------
    path : Path
    what : str
        Names the thing in the error, for instance ``"the record"``.
    patience : float
        Seconds to wait for another run.

    Raises
    ------
    InputError
        Another run holds the lock, or the file system has none.
    """
    # It takes 30 ms, and most commands lock nothing.
    from filelock import FileLock, Timeout

    file = path / ".lock" if path.is_dir() else path.with_name(path.name + ".lock")
    lock = FileLock(file.absolute(), is_singleton=True)
    with writable(file, what):
        try:
            lock.acquire(timeout=patience)
        except Timeout:
            raise InputError(
                f"{what} is in use by another run", "Wait until that run has ended.", path=path
            ) from None
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            # While it is held: a run that waits for the removed file tries again with a new one.
            # Windows keeps a file that is open.
            with suppress(OSError):
                file.unlink()
        lock.release()
