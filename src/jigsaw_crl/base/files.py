"""Bounded reads, atomic writes, and what may be overwritten.

Errors of the file system become an `InputError` that names the file. A file is written through a
temporary file beside it, so it is complete or absent, and its folder is synchronised with the disk.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from jigsaw_crl.base.errors import InputError

__all__ = [
    "Ours",
    "check_output",
    "is_document",
    "new_stage",
    "open_regular",
    "read_file",
    "readable",
    "sync_file",
    "sync_folder",
    "writable",
    "write_file",
    "write_text",
]

Ours = Callable[[bytes], bool]
"""Does a file with this beginning and end look like one that this package wrote?"""

# Bytes of an existing file, from its beginning and its end, that show who wrote it.
_LOOKED_AT = 1 << 16
# What is never overwritten: private keys (as text, or the first bytes of PKCS #8 and #1), lists of
# public keys, and the logs of used fragments.
_KEPT = (
    (re.compile(rb"PRIVATE KEY-----"), "a private key"),
    (
        re.compile(rb"\A0(?:[\x00-\x7f]|\x81.|\x82..)\x02\x01[\x00\x01][0\x02\x04]", re.S),
        "a private key",
    ),
    (re.compile(rb'"ed25519:'), "a list of keys"),
    (re.compile(rb'\A\s*\{\s*"format"\s*:\s*"jigsaw-crl/log"'), "a log"),
)
_KINDS = (
    (stat.S_ISDIR, "a folder", "Name a file."),
    (stat.S_ISFIFO, "a pipe", "Write the data to a file first."),
    (stat.S_ISSOCK, "a socket", "Name a file."),
    (stat.S_ISCHR, "a device", "Name a file."),
    (stat.S_ISBLK, "a device", "Name a file."),
)


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


# -- reading ----------------------------------------------------------------------------------


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file; a folder, pipe, socket or device is refused, and never waited for."""
    with readable(path):
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            _refuse_odd(os.fstat(handle).st_mode, path)
            return os.fdopen(handle, "rb")
        except BaseException:
            os.close(handle)
            raise


def read_file(path: Path, most_bytes: int, what: str = "file of this kind") -> bytes:
    """The bytes of a regular file; one that is larger than `most_bytes` is not loaded."""
    with readable(path), open_regular(path) as file:
        # One byte more than allowed: the file may grow while it is read.
        data = b""
        if os.fstat(file.fileno()).st_size <= most_bytes:
            data = file.read(most_bytes + 1)
            if len(data) <= most_bytes:
                return data
        raise InputError(f"the file is larger than any {what}", "Check what it is.", path=path)


def _refuse_odd(mode: int, path: Path) -> None:
    for is_kind, kind, remedy in _KINDS:
        if is_kind(mode):
            raise InputError(f"this is {kind}", remedy, path=path)


# -- what may be overwritten ------------------------------------------------------------------


def check_output(
    path: Path,
    ours: Ours,
    *,
    inputs: Iterable[Path | None] = (),
    force: bool = False,
    what: str = "of this package",
) -> None:
    """Refuse to write over a file that is not ours to replace.

    Parameters
    ----------
    path : Path
        The file to write.
    ours : callable
        Is a file with this beginning and end one that this package wrote? Such a file is replaced.
    inputs : iterable of Path or None
        What the command reads. An input is never overwritten, nor is a key or a log.
    force : bool
        Overwrite any other file.
    what : str
        What the file would be, for instance ``"a fragment"``.
    """
    try:
        found = os.stat(path)
    except OSError:
        # It does not exist, or cannot be seen; writing will say so.
        return
    _refuse_odd(found.st_mode, path)
    seen = _beginning_and_end(path)
    mine = ours(seen)
    if any(_is_input(path, given, mine) for given in inputs if given is not None):
        raise InputError(
            "it is an input of this command and is not overwritten", "Name a new file.", path=path
        )
    for kept, kind in _KEPT:
        if kept.search(seen):
            raise InputError(f"it is {kind} and is not overwritten", "Name a new file.", path=path)
    if not force and not mine:
        raise InputError(
            f"the file exists and is not {what}",
            "Name a new file, or pass --force (in Python force=True) to overwrite it.",
            path=path,
        )


def is_document(*kinds: str) -> Ours:
    """Is it a JSON document of one of these formats, for instance ``"fragment"``?"""
    names = "|".join(kinds).encode()
    pattern = re.compile(rb'\s*\{\s*"format"\s*:\s*"jigsaw-crl/(' + names + rb')"')
    return lambda seen: pattern.match(seen) is not None


def _is_input(path: Path, given: Path, mine: bool) -> bool:
    """Is the file an input, or a user's own inside a folder that is one?"""
    try:
        if given.is_dir():
            return not mine and path.resolve().is_relative_to(given.resolve())
        return os.path.samefile(path, given)
    except OSError:
        return False


def _beginning_and_end(path: Path) -> bytes:
    with open_regular(path) as file, readable(path):
        head = file.read(_LOOKED_AT)
        end = file.seek(0, os.SEEK_END)
        file.seek(max(len(head), end - _LOOKED_AT))
        return head + file.read(_LOOKED_AT)


# -- writing ----------------------------------------------------------------------------------


def write_file(
    path: Path, write: Callable[[BinaryIO], object], *, private: bool = False, new: bool = False
) -> Path:
    """Write a file completely or not at all, through a temporary file in the same folder.

    Parameters
    ----------
    path : Path
    write : callable
        Gets the open file.
    private : bool
        Readable by its owner only. By default the umask decides, or the permissions of the file
        that is replaced.
    new : bool
        Refuse to replace an existing file, even one that appears meanwhile.
    """
    temporary: str | None = None
    with writable(path):
        # A link stays one: what it points to is replaced.
        target = os.path.realpath(path)
        replaced = _mode_of(target)
        mode = 0o600 if private else replaced
        folder, name = os.path.split(target)
        try:
            temporary = os.path.join(folder, f".{name[:80]}-{secrets.token_hex(6)}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            handle = os.open(temporary, flags, 0o666 if mode is None else mode)
            with os.fdopen(handle, "wb") as file:
                write(file)
                file.flush()
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            if new:
                # The name is taken first, because a file is replaced without a word.
                os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(temporary, target)
            temporary = None
            sync_folder(Path(folder))
        except FileExistsError:
            raise InputError("the file exists already", "Name a new file.", path=path) from None
        finally:
            if temporary is not None:
                with suppress(OSError):
                    os.unlink(temporary)
    return path


def write_text(path: Path, text: str, *, private: bool = False) -> Path:
    """Write text in UTF-8, completely or not at all."""
    data = text.encode("utf-8")
    return write_file(path, lambda file: file.write(data), private=private)


def _mode_of(target: str) -> int | None:
    """Permissions of the file that is replaced; None for a new file."""
    try:
        found = os.stat(target)
    except FileNotFoundError:
        return None
    _refuse_odd(found.st_mode, Path(target))
    return stat.S_IMODE(found.st_mode) & 0o777


def new_stage(parent: Path, prefix: str) -> Path:
    """Make a folder with a name of its own, whose permissions follow the umask."""
    stage = parent / f"{prefix}{secrets.token_hex(6)}"
    stage.mkdir()
    return stage


def sync_file(path: Path) -> None:
    """Write a file that another program has made to the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Write a folder's entries to the disk, where the system can do that."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        # Windows opens no folders; a folder may be writable but not readable.
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EBADF, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
