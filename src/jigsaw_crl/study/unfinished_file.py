"""The file of an unfinished run: what the objects that read a table hold, as JSON and plain arrays.

Nothing in it is ever unpickled. Objects are of the classes in `MODULES`, made without running any
code of the file. After the first line comes the length of the JSON text in eight bytes, the text,
and the numbers of all arrays. Their order in memory is kept, because rounding depends on it.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from jigsaw_crl.base.arrays import AnyArray

__all__ = ["is_unfinished", "load", "save"]

FIRST_LINE = b"jigsaw-crl/unfinished 1\n"
# Whose classes the file may hold, below this package.
MODULES = (
    "client.latents", "client.reduction", "client.sketch", "moments.accumulator",
    "moments.row_options", "moments.summary", "moments.sums", "study.bad_rows",
    "study.row_order", "study.wide",
)  # fmt: skip
_PACKAGE = "jigsaw_crl"
_PLAIN = (bool, int, float, str, type(None))
_LISTS: dict[str, Any] = {"list": list, "tuple": tuple, "set": set}
_MAPPINGS: dict[str, Any] = {"dict": dict, "counter": Counter}
_KINDS = "fiub"

Node = Any
"""A JSON value, or a list that begins with the word for what it is."""


def save(value: object, file: BinaryIO) -> None:
    """Write an object, and all that it holds, to an open file."""
    writer = _Writer()
    tree = writer.node(value)
    text = json.dumps({"tree": tree, "arrays": [_about(x) for x in writer.arrays]}).encode()
    file.write(FIRST_LINE)
    file.write(len(text).to_bytes(8, "little"))
    file.write(text)
    for array in writer.arrays:
        file.write(_bytes(array))


def is_unfinished(path: Path) -> bool:
    """Is there such a file, by its first line?"""
    try:
        with path.open("rb") as file:
            return file.read(len(FIRST_LINE)) == FIRST_LINE
    except OSError:
        return False


def load(path: Path) -> Any:
    """The object in a file; a `ValueError` or `OSError` if it is of another kind, or damaged."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(FIRST_LINE)) != FIRST_LINE:
            raise ValueError("it is not of this kind")
        length = int.from_bytes(file.read(8), "little")
        held = json.loads(file.read(min(length, size)))
        # What is claimed is compared with the file before anything is allocated.
        if sum(map(_size, held["arrays"])) != size - file.tell():
            raise ValueError("it is not complete")
        arrays = [_empty(about) for about in held["arrays"]]
        for array, (*_, changes) in zip(arrays, held["arrays"], strict=True):
            file.readinto(_bytes(array))
            array.flags.writeable = changes
    return _Reader(arrays).value(held["tree"])


class _Writer:
    """Turns objects into JSON values and a list of arrays."""

    def __init__(self) -> None:
        self.arrays: list[AnyArray] = []
        # Objects so far, by their identity: one that occurs twice is written once.
        self.known: dict[int, int] = {}

    def node(self, value: Any) -> Node:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if isinstance(value, np.ndarray):
            self.arrays.append(_contiguous(value))
            return ["array", len(self.arrays) - 1]
        if isinstance(value, np.generic):
            return self.node(value.item())
        if isinstance(value, np.random.Generator):
            return ["generator", value.bit_generator.state]
        if isinstance(value, type | np.dtype):
            return ["dtype", np.dtype(value).str]
        for word, own in _MAPPINGS.items():
            if kind is own:
                return [word, *([self.node(k), self.node(v)] for k, v in value.items())]
        for word, own in _LISTS.items():
            if kind is own:
                return [word, *map(self.node, value)]
        if hasattr(value, "indptr"):
            parts = (value.data, value.indices, value.indptr, value.shape)
            return ["rows", *map(self.node, parts)]
        return self._object(value)

    def _object(self, value: Any) -> Node:
        name = f"{type(value).__module__}:{type(value).__qualname__}"
        _class(name)
        if isinstance(value, tuple):
            return ["record", name, *map(self.node, value)]
        if id(value) in self.known:
            return ["again", self.known[id(value)]]
        self.known[id(value)] = len(self.known)
        return ["object", name, self.node(vars(value))]


class _Reader:
    """Makes objects of JSON values and a list of arrays."""

    def __init__(self, arrays: list[AnyArray]) -> None:
        self.arrays = arrays
        self.known: list[Any] = []

    def value(self, node: Node) -> Any:
        if not isinstance(node, list):
            return node
        word, *rest = node
        if word in _LISTS:
            return _LISTS[word](map(self.value, rest))
        if word in _MAPPINGS:
            return _MAPPINGS[word]({self.value(k): self.value(v) for k, v in rest})
        if word == "array":
            return self.arrays[rest[0]]
        if word == "again":
            return self.known[rest[0]]
        if word == "dtype":
            return np.dtype(rest[0])
        if word == "generator":
            generator = np.random.default_rng()
            generator.bit_generator.state = rest[0]
            return generator
        if word == "rows":
            # Imported here for start-up time.
            from scipy.sparse import csr_matrix

            *parts, shape = map(self.value, rest)
            return csr_matrix(tuple(parts), shape)
        if word == "record":
            return _class(rest[0])(*map(self.value, rest[1:]))
        if word == "object":
            made = object.__new__(_class(rest[0]))
            self.known.append(made)
            vars(made).update(self.value(rest[1]))
            return made
        raise ValueError(f"{word!r} is unknown")


def _class(name: str) -> Any:
    """A class of the package by its name."""
    module, _, own = name.partition(":")
    if module not in {f"{_PACKAGE}.{x}" for x in MODULES}:
        raise ValueError(f"{name[:100]} is not one of its classes")
    found = getattr(import_module(module), own, None)
    if not isinstance(found, type) or found.__module__ != module:
        raise ValueError(f"{name[:100]} is not one of its classes")
    return found


def _contiguous(array: AnyArray) -> AnyArray:
    """The array without gaps, in the order that it has in memory."""
    if array.dtype.kind not in _KINDS:
        raise ValueError(f"arrays of type {array.dtype} are not kept")
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array
    copy = array.copy(order="K")
    return copy if copy.flags.c_contiguous or copy.flags.f_contiguous else array.copy(order="C")


def _about(array: AnyArray) -> list[Any]:
    order = "C" if array.flags.c_contiguous else "F"
    return [array.dtype.str, list(array.shape), order, array.flags.writeable]


def _size(about: list[Any]) -> int:
    """Bytes of an array of this kind."""
    kind, shape, order, _ = about
    dtype = np.dtype(kind)
    if dtype.kind not in _KINDS or order not in ("C", "F") or min(shape, default=0) < 0:
        raise ValueError("an array is of an unknown kind")
    return int(dtype.itemsize * math.prod(shape))


def _empty(about: list[Any]) -> AnyArray:
    kind, shape, order, _ = about
    return np.empty(shape, kind, order)


def _bytes(array: AnyArray) -> memoryview:
    """The numbers of a contiguous array as they lie in memory."""
    if not math.prod(array.shape):
        return memoryview(bytearray())
    return (array if array.flags.c_contiguous else array.T).data.cast("B")
