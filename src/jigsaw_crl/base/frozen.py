"""Values that cannot be changed, and stay so after pickling and copying.

The package's types are frozen dataclasses. Two of their fields need help: a mapping, because a
dict can be changed and `types.MappingProxyType` neither pickles nor deep-copies; and an array,
because NumPy forgets `writeable=False` on the way.
"""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt

K = TypeVar("K")
V = TypeVar("V")


class FrozenMapping(dict[K, V]):
    """A read-only copy of a mapping."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this mapping cannot be changed")

    __setitem__ = __delitem__ = __ior__ = clear = _refuse
    pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        # By default the items are set one by one.
        return type(self), (dict(self),)


class ReadOnlyArrays:
    """Base of types whose arrays are read-only: they are so again after unpickling or copying."""

    def __post_init__(self, *fields: str, dtype: npt.DTypeLike = np.float64) -> None:
        """Replace arrays of a frozen dataclass by read-only copies: those named, or all arrays.

        A field may be None. An array that is read-only already, and no view of another, stays.
        """
        arrays = [name for name, value in vars(self).items() if isinstance(value, np.ndarray)]
        for field in fields or arrays:
            value = getattr(self, field)
            kind = np.dtype(dtype) if fields else value.dtype
            own = type(value) is np.ndarray and value.dtype == kind and value.flags.owndata
            if value is not None and not (own and not value.flags.writeable):
                value = np.array(value, dtype=kind)
                value.flags.writeable = False
                object.__setattr__(self, field, value)

    _copy_read_only = __post_init__

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        self.__dict__.update(state)
