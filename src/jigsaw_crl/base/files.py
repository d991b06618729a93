"""Atomic writes; errors of the file system become an `InputError` that names the file."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from jigsaw_crl.base.errors import InputError

__all__ = ["readable", "writable", "write_file", "write_text"]


@contextmanager
def writable(path: Path, what: str = "it") -> Iterator[None]:
    """Turn an `OSError` while writing into an `InputError` that names the file or folder.

    Parameters
    ----------
    path : Path
    what : str
        Subject of the message, for instance ``"the folder"``.
    """
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{what} cannot be written ({error.strerror or error})",
            "Choose another place, or check its permissions and free space.",
            path=path,
        ) from None


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn a system error while reading into an `InputError` that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise InputError("there is no such file", "Check the path.", path=path) from None
    except PermissionError:
        raise InputError(
            "reading it is not permitted", "Ask for permission to read it.", path=path
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"it cannot be read ({reason[:200]})",
            "Copy the file again; it may be truncated.",
            path=path,
        ) from None


def write_file(path: Path, write: Callable[[BinaryIO], object]) -> Path:
    """Write a file completely or not at all, through a temporary file in the same folder."""
    temporary: str | None = None
    with writable(path):
        try:
            handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:80]}-", dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, path)
            temporary = None
        finally:
            if temporary is not None:
                os.unlink(temporary)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write text in UTF-8, completely or not at all."""
    data = text.encode("utf-8")
    return write_file(path, lambda file: file.write(data))
