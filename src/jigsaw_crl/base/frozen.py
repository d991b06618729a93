"""Values that cannot be changed, and stay so after pickling and copying.

The package's types are frozen dataclasses. Two of their fields need help: a mapping, because a
dict can be changed and `types.MappingProxyType` neither pickles nor deep-copies; and an array,
because NumPy forgets `writeable=False` on the way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

K = TypeVar("K")
V = TypeVar("V")


class FrozenMapping(Mapping[K, V]):
    """A read-only copy of a mapping."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V]) -> None:
        self._items = dict(items)

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(self._items)


class ReadOnlyArrays:
    """Base of types whose arrays are read-only: they are so again after unpickling or copying."""

    def _copy_read_only(self, *fields: str, dtype: npt.DTypeLike = np.float64) -> None:
        """Replace arrays of a frozen dataclass by read-only copies; a field may be None.

        An array that is read-only already, and no view of another, stays as it is.
        """
        for field in fields:
            value = getattr(self, field)
            settled = (
                type(value) is np.ndarray
                and value.dtype == dtype
                and value.flags.owndata
                and not value.flags.writeable
            )
            if value is not None and not settled:
                value = np.array(value, dtype=dtype)
                value.flags.writeable = False
                object.__setattr__(self, field, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)
