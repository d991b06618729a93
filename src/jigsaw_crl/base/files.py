"""Files are written whole or not at all, and what the system refuses becomes a readable error."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from jigsaw_crl.base.errors import InputError

__all__ = ["fingerprint", "readable", "write_file", "write_text"]


def write_file(path: Path, write: Callable[[BinaryIO], None]) -> Path:
    """Write through a temporary neighbour that takes the file's name once it is complete."""
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:80]}-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise InputError(
            f"it cannot be written ({error.strerror or error})",
            "Choose another place, or mend its permissions and free space.",
            path=path,
        ) from None
    finally:
        if temporary is not None:
            os.unlink(temporary)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write text in UTF-8, whole or not at all."""
    data = text.encode("utf-8")
    return write_file(path, lambda file: _ignore(file.write(data)))


def _ignore(_: int) -> None:
    return None


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn an error of the system while reading into one that names the file."""
    try:
        yield
    except FileNotFoundError:
        raise InputError("there is no such file", "Check the path.", path=path) from None
    except PermissionError:
        raise InputError(
            "it may not be read", "Ask for permission to read it.", path=path
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        text = getattr(error, "strerror", None) or error
        raise InputError(
            f"it cannot be read ({' '.join(str(text).split())[:200]})",
            "Copy the file again; it may be truncated.",
            path=path,
        ) from None


# Reading a file again to hash it should cost less than a second.
MOST_HASHED = 1 << 28


def fingerprint(path: Path) -> str | None:
    """SHA-256 of a file, for provenance; None for folders and very large files."""
    if not path.is_file() or path.stat().st_size > MOST_HASHED:
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
