"""Bounded reads, atomic writes, locks, and what may be overwritten.

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

Ours = Callable[[bytes], bool]
"""Does a file with this beginning and end look like one that this package wrote?"""

# Bytes of an existing file, from its beginning and its end, that show who wrote it.
_LOOKED_AT = 1 << 16
# What is never overwritten: private keys (as text, or the first bytes of PKCS #8 and #1), lists of
# public keys, and the logs of used fragments.
_KEPT = {
    rb"PRIVATE KEY-----": "a private key",
    rb"\A0(?:[\x00-\x7f]|\x81.|\x82..)\x02\x01[\x00\x01][0\x02\x04]": "a private key",
    rb'"ed25519:': "a list of keys",
    rb'\A\s*\{\s*"format"\s*:\s*"jigsaw-crl/log"': "a log",
}


@contextmanager
def writable(path: Path, what: str = "it") -> Iterator[None]:
    """Turn an `OSError` while writing into an `InputError` about `what`, for instance a folder."""
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
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        what, remedy = f"it cannot be read ({reason[:200]})", "Copy it again; it may be truncated."
        if isinstance(error, FileNotFoundError):
            what, remedy = "there is no such file", "Check the path."
        elif isinstance(error, PermissionError):
            what, remedy = "reading it is not permitted", "Ask for permission to read it."
        raise InputError(what, remedy, path=path) from None


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file; a folder, pipe, socket or device is refused, and never waited for."""
    with readable(path):
        # Without O_NONBLOCK, opening a pipe waits for a writer.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        try:
            if not stat.S_ISREG(mode := os.fstat(handle).st_mode):
                raise _odd(mode, path)
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


def _odd(mode: int, path: Path) -> InputError:
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe, a socket or a device"
    return InputError(
        f"this is {kind}", "Name a file, or write the data to a file first.", path=path
    )


def check_output(
    path: Path,
    ours: Ours,
    *,
    inputs: Iterable[Path | None] = (),
    force: bool = False,
    what: str = "of this package",
) -> None:
    """Refuse to write over a file that is not ours to replace.

    An input of the command is never overwritten, nor is a user's own file in a folder that is one,
    a key or a log; any other file only with `force`. `what` the file would be is for the message.
    """
    if not os.path.exists(path):
        # Or it cannot be seen; writing will say so.
        return
    with open_regular(path) as file, readable(path):
        seen = file.read(_LOOKED_AT)
        end = file.seek(0, os.SEEK_END)
        file.seek(max(len(seen), end - _LOOKED_AT))
        seen += file.read(_LOOKED_AT)
    mine = ours(seen)
    for given in (x for x in inputs if x is not None):
        inside = not mine and given.is_dir() and path.resolve().is_relative_to(given.resolve())
        if inside or (given.is_file() and os.path.samefile(path, given)):
            wrong = "it is an input of this command and is not overwritten"
            raise InputError(wrong, "Name a new file.", path=path)
    for kept, kind in _KEPT.items():
        if re.search(kept, seen, re.S):
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


def write_file(
    path: Path, write: Callable[[BinaryIO], object], *, private: bool = False, new: bool = False
) -> Path:
    """Write a file completely or not at all, through a temporary file in the same folder.

    Only its owner can read a `private` one; else the umask decides, or the permissions of the file
    that is replaced. A `new` one replaces no file, not even one that appears meanwhile.
    """
    temporary: str | None = None
    with writable(path):
        # A link stays one: what it points to is replaced.
        target = os.path.realpath(path)
        mode = 0o600 if private else None
        with suppress(FileNotFoundError):
            found = os.stat(target).st_mode
            if not stat.S_ISREG(found):
                raise _odd(found, Path(target))
            mode = 0o600 if private else stat.S_IMODE(found) & 0o777
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


@contextmanager
def locked(path: Path, what: str = "the folder", *, patience: float = 0.0) -> Iterator[None]:
    """Hold a file or an existing folder against other runs for the length of a block.

    The lock is a file: `.lock` in the folder, `NAME.lock` beside the file. It is gone afterwards.
    The system frees it when the process ends, however it ends; a process that was started meanwhile
    does not inherit it. The same thread may hold it once more inside the block. After `patience`
    seconds an `InputError` says that `what` is in use; it also says if the file system has no lock.
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
