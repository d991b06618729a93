"""A long sequence of objects kept in a temporary file, of which one is in memory at a time."""

from __future__ import annotations

import os
import pickle
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

from jigsaw_crl.base.errors import InputError

__all__ = ["Mapped", "Spool", "kept_like"]

T = TypeVar("T")


class _File:
    """A temporary file without a name, closed when nobody needs it any more."""

    def __init__(self) -> None:
        file = tempfile.TemporaryFile(prefix="jigsaw-", buffering=0)  # noqa: SIM115 -- kept open
        self._file, self._end = file, 0
        weakref.finalize(self, file.close)

    def append(self, data: bytes) -> tuple[int, int]:
        """Write at the end; returns the place and the size."""
        at = self._end
        try:
            while self._end < at + len(data):
                self._end += self._file.write(memoryview(data)[self._end - at :])
        except OSError as error:
            raise InputError(
                f"there is no room for temporary files in {tempfile.gettempdir()} "
                f"({error.strerror or error})",
                "Set TMPDIR to a folder with more space.",
            ) from None
        return at, len(data)

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, at)


class Spool(Sequence[T]):
    """Objects in a temporary file, read again whenever one is asked for.

    The file has no name and is gone when the spool is: nobody else can change it. A copy of a
    spool, and one that was pickled, is a tuple.

    Parameters
    ----------
    items : iterable
        Objects that can be pickled; they are read one by one.

    Examples
    --------
    >>> from jigsaw_crl.base.spool import Spool
    >>> spool = Spool(x * x for x in range(5))
    >>> len(spool), spool[3], list(spool.arranged([4, 0]))
    (5, 9, [16, 0])
    """

    def __init__(self, items: Iterable[T]) -> None:
        self._file = _File()
        self._places: list[tuple[int, int]] = []
        for item in items:
            data = pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL)
            self._places.append(self._file.append(data))

    def arranged(self, order: Iterable[int]) -> Spool[T]:
        """The same objects in another order; the file is shared."""
        other: Spool[T] = Spool.__new__(Spool)
        other._file = self._file
        other._places = [self._places[k] for k in order]
        return other

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Spool[T]: ...
    def __getitem__(self, index: int | slice) -> T | Spool[T]:
        if isinstance(index, slice):
            return self.arranged(range(len(self))[index])
        item: T = pickle.loads(self._file.read(*self._places[index]))
        return item

    def __iter__(self) -> Iterator[T]:
        return (self[k] for k in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


class Mapped(Sequence[T]):
    """What a function makes of the items of another sequence, made again whenever asked for."""

    def __init__(self, function: Callable[[Any], T], items: Sequence[Any]) -> None:
        self._function, self._items = function, items

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Mapped[T]: ...
    def __getitem__(self, index: int | slice) -> T | Mapped[T]:
        if isinstance(index, slice):
            return Mapped(self._function, self._items[index])
        return self._function(self._items[index])


def kept_like(given: Sequence[Any], items: Iterable[T]) -> Sequence[T]:
    """The items in a spool if the sequence they were made from is one, otherwise as a tuple."""
    return Spool(items) if isinstance(given, Spool) else tuple(items)
