"""A read that was stopped goes on where it was: what has been read is kept in a file meanwhile.

The file is written every ten seconds, and less often where writing takes long, so that it costs at
most a hundredth of the time. It is bound to the table (place, size and time of each file), to how
the table is read, and to the versions of this package and of NumPy. Chunks have fixed boundaries,
so the result is that of a read without a stop, to the last bit.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jigsaw_crl._version import __version__
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_file
from jigsaw_crl.client.reduction import Reduction
from jigsaw_crl.study.data_file import DataFile
from jigsaw_crl.study.limits import parquet_parts
from jigsaw_crl.study.source import Naming, Place
from jigsaw_crl.study.unfinished_file import is_unfinished, load, save

__all__ = ["Checkpoint", "Progress"]

# Seconds between two writes, and the share of the time that they may take.
SECONDS, SHARE = 10.0, 0.01
# What a damaged file may raise.
_DAMAGED = (
    OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError,
)  # fmt: skip


@dataclass(frozen=True)
class Checkpoint:
    """Where an unfinished read is kept, and who is told about it.

    Parameters
    ----------
    path : Path
        The file. `remove` it when what was read is safe.
    tell : callable
        Gets a line if the read goes on where another stopped, or if it cannot.
    """

    path: Path
    tell: Callable[[str], None] = lambda _: None

    def of(
        self, data: DataFile, naming: Naming, n_latent: int | None, reduction: Reduction | None
    ) -> Progress | None:
        """What is kept of a table; None if its rows are held as a whole."""
        if naming.trim or naming.missing == "em":
            return None
        return Progress(self, _fingerprint(data, naming, n_latent, reduction))

    def remove(self) -> None:
        """Remove the file, if it is one of these."""
        if is_unfinished(self.path):
            self.path.unlink(missing_ok=True)


class Progress:
    """How far the read of one table has come.

    Parameters
    ----------
    checkpoint : Checkpoint
    about : str
        The fingerprint of the table and of how it is read.
    """

    def __init__(self, checkpoint: Checkpoint, about: str) -> None:
        self._checkpoint, self._about = checkpoint, about
        self._next = time.perf_counter() + SECONDS
        self._found: dict[str, Any] | None = self._load()

    @property
    def along(self) -> Any:
        """What the first of two reads found, if the second one was begun; otherwise None."""
        return None if self._found is None else self._found["along"]

    def take(self) -> tuple[Place, dict[str, Any] | None]:
        """Where to begin, and what was collected until there; what was kept is given once."""
        found, self._found = self._found, None
        return (Place(), None) if found is None else (Place(*found["place"]), found["held"])

    def note(self, place: Place, along: object, held: Callable[[], dict[str, Any]]) -> None:
        """Keep what has been collected, if it is time to."""
        start = time.perf_counter()
        if start < self._next:
            return
        kept = {
            "about": self._about,
            "place": (place.chunks, place.rows),
            "along": along,
            "held": held(),
        }
        try:
            write_file(self._checkpoint.path, lambda file: save(kept, file), private=True)
        except InputError as error:
            self._go_without(error.what)
            return
        end = time.perf_counter()
        self._next = end + max(SECONDS, (end - start) / SHARE)

    def end(self, problems: Sequence[InputError]) -> None:
        """Remove the file of a table that must be changed, not of one that was out of reach."""
        if problems and not any(isinstance(e.__context__, OSError) for e in problems):
            self._checkpoint.remove()

    def _load(self) -> dict[str, Any] | None:
        path, tell = self._checkpoint.path, self._checkpoint.tell
        try:
            found: dict[str, Any] = load(path)
            same = found["about"] == self._about
            _, rows = map(int, found["place"])
            begun, _ = found["along"] is not None, found["held"]
        except FileNotFoundError:
            return None
        except _DAMAGED as error:
            if is_unfinished(path):
                tell(f"{path} is damaged ({str(error)[:100]}): reading from the beginning")
            else:
                self._go_without("the file exists and is none of an unfinished run")
            return None
        if not same:
            tell(f"{path} is of another table or of other options: reading from the beginning")
            return None
        read = " of the second read" if begun else ""
        tell(f"{path} holds an unfinished run: going on after row {rows:,}{read}")
        return found

    def _go_without(self, why: str) -> None:
        self._next = np.inf
        self._checkpoint.tell(
            f"{self._checkpoint.path}: {why}; if this run is stopped, it begins anew"
        )


def _fingerprint(
    data: DataFile, naming: Naming, n_latent: int | None, reduction: Reduction | None
) -> str:
    if data.handle is None:
        files = [(str(file), os.stat(file)) for file, _ in parquet_parts(data.path)]
    else:
        files = [("", os.fstat(data.handle.fileno()))]
    sizes = [(name, found.st_size, found.st_mtime_ns) for name, found in files]
    own = None if reduction is None else (reduction.columns, reduction.matrix.tobytes())
    place = os.path.realpath(data.path)
    about = (__version__, np.__version__, place, sizes, naming, n_latent, own)
    return hashlib.sha256(repr(about).encode()).hexdigest()
