"""The binary file of a fragment: about a tenth of the JSON document.

    eight bytes that name the format | an xz stream of: length of the head, head, tables

The head is the JSON document without its tables of numbers, with the fields of the signature if
the fragment is signed. Tables follow in the order of `_TABLES`, bytes of equal significance
together. Log Bayes factors are whole numbers of sixteenths in 16 bits, estimates and errors decimal
numbers with the digits that `Sizes` keeps; so a fragment that was rounded as `packable` does is
read as it was written, and its JSON text, which a signature covers, is the same.

A file may come from anybody. The head says how large the tables are, and no more than that is
unpacked; a file that would grow by more than `MOST_GROWTH` is refused.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np
from pydantic_core import from_json

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.evidence.effects import Sizes, decimals
from jigsaw_crl.evidence.factors import STEP
from jigsaw_crl.fragment.file import FragmentDocument, fragment_document
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["PACKED", "SUFFIX", "Unpacked", "is_packed", "pack", "packable", "unpack"]

PACKED = b"\x8fjigsaw\n"
"""How a packed fragment begins."""
SUFFIX = ".bin"
"""Names of packed fragments end with it."""

_REMEDY = FragmentDocument.remedy
# The largest log factor: the difference of two still has less than 16 bits in sixteenths. The
# number that stands for NaN.
_MOST, _NAN = 1023.0, -32768
_NO_DIGITS = 255
# Bytes unpacked for each byte of the file (evidence grows by 2 to 4), and what any file may unpack
# to, so that a small fragment may say nothing.
MOST_GROWTH, SMALL = 100, 1 << 22
_LARGEST_HEAD = 1 << 26
# Memory of the decompressor.
_MEMORY = 1 << 24
# Bytes of numbers say nothing about their neighbours, so these are no context (`lc`, `pb`). A
# dictionary of a megabyte holds any file of 200 labels.
_FILTER = {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 20, "lc": 0, "pb": 0}
_EVIDENCE = ("ancestor", "district", "lean")
_TABLES = ("bayes", "shares", "hard.total", "hard.applied")


@dataclass(frozen=True, eq=False)
class Unpacked:
    """A packed fragment that was read.

    Parameters
    ----------
    fragment : Fragment
    signed : dict or None
        The fields of the signature's envelope, without the fragment; nothing was verified.
    """

    fragment: Fragment
    signed: dict[str, Any] | None


def is_packed(data: str | bytes) -> TypeGuard[bytes]:
    """Does a file begin as packed fragments do?"""
    return isinstance(data, bytes) and data.startswith(PACKED)


def packable(fragment: Fragment) -> Fragment:
    """The fragment as a packed file keeps it: evidence in sixteenths, nothing private."""
    bayes, hard, shares = fragment.bayes, fragment.hard, fragment.shares
    return replace(
        fragment.without_basis(),
        bayes=None if bayes is None else bayes.coarse(_MOST),
        hard=hard and replace(hard, total=_plain(hard.total), applied=_plain(hard.applied)),
        shares=shares and _plain(shares),
    )


def _plain(sizes: Sizes) -> Sizes:
    """The same without -0, which whole numbers do not have."""
    return Sizes(sizes.value + 0.0, sizes.error + 0.0)


def pack(fragment: Fragment, signed: dict[str, Any] | None = None) -> bytes:
    """The packed file of a fragment, rounded as `packable` does.

    Parameters
    ----------
    fragment : Fragment
    signed : dict, optional
        The fields of the signature's envelope, without the fragment.
    """
    piece = packable(fragment)
    document = fragment_document(piece)
    kept: dict[str, str] = {}
    tables = []
    for name in _TABLES:
        part = _part(document, name)
        if part is None:
            continue
        if name == "bayes":
            for table in _EVIDENCE:
                kept[f"bayes.{table}"], data = _sixteenths(getattr(piece.bayes, table))
                tables.append(data)
            part |= {key: [] for key in _EVIDENCE}
            continue
        kept[name], data = _sizes(_of(piece, name))
        tables.append(data)
        part |= {"value": [], "error": []}
    head = json.dumps(
        {"signed": signed, "written": kept, "fragment": document},
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    ).encode()
    content = len(head).to_bytes(4, "little") + head + b"".join(tables)
    packed = PACKED + lzma.compress(
        content, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, filters=[_FILTER]
    )
    if len(content) > _most(packed):
        raise InputError(
            f"the fragment says next to nothing about its {len(piece.labels)} labels, and such a "
            "packed file would be refused",
            f"Write it as JSON: to a name that does not end with {SUFFIX}.",
            client=piece.client,
        )
    return packed


def unpack(data: bytes, *, most_labels: int | None = None, path: object | None = None) -> Unpacked:
    """Read a packed fragment; everything in it is checked.

    Parameters
    ----------
    data : bytes
    most_labels : int, optional
        A fragment with more labels is refused.
    path : optional
        Named in errors.
    """

    def refuse(what: str) -> InputError:
        return InputError(f"the packed fragment {what}", _REMEDY, path=path)

    stream = _Stream(data)
    try:
        length = int.from_bytes(stream.read(4), "little")
        if length > _LARGEST_HEAD:
            raise ValueError("it says that its head is larger than any")
        head = from_json(stream.read(length))
        document = FragmentDocument.from_document(head["fragment"], path=path)
        document.check_labels(most_labels, path)
        signed, kept = head["signed"], head["written"]
        if not (signed is None or isinstance(signed, dict)) or not isinstance(kept, dict):
            raise TypeError("a field of its head has the wrong type")
        tables = dict(_read_tables(stream, document, kept))
        stream.end()
    except InputError:
        raise
    except lzma.LZMAError:
        raise refuse("is damaged: it cannot be unpacked") from None
    except (KeyError, TypeError, ValueError) as error:
        raise refuse(f"is not valid ({str(error)[:200]})") from None
    return Unpacked(document.fragment(path, tables), signed)


def _most(packed: bytes) -> int:
    """Bytes that a file of this size may unpack to."""
    return max(MOST_GROWTH * len(packed), SMALL)


# -- tables ---------------------------------------------------------------------------------------


def _part(document: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The part of a document that holds a table's numbers."""
    part: dict[str, Any] | None = document
    for step in name.split("."):
        part = None if part is None else part.get(step)
    return part


def _of(fragment: Fragment, name: str) -> Sizes:
    found: Any = fragment
    for step in name.split("."):
        found = getattr(found, step)
    assert isinstance(found, Sizes)
    return found


def _bytes(numbers: np.ndarray[Any, Any]) -> bytes:
    """All first bytes of the numbers, then all second ones."""
    little = np.ascontiguousarray(numbers, dtype=numbers.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).reshape(-1, little.itemsize).T.tobytes()


def _sixteenths(table: FloatArray) -> tuple[str, bytes]:
    """How log factors are written, and their bytes.

    Factors of later scales are written less those of the first; of a symmetric table one half.
    """
    unknown = np.isnan(table)
    whole = np.where(unknown, 0.0, np.round(table / STEP)).astype(np.int16)
    if table.ndim == 3:
        whole[1:] -= whole[0]
    whole[unknown] = _NAN
    if table.ndim == 2 and np.array_equal(table, table.T, equal_nan=True):
        return "half", _bytes(whole[np.triu_indices(len(table))])
    return "full", _bytes(whole)


def _read_sixteenths(stream: _Stream, written: object, *shape: int) -> FloatArray:
    p = shape[-1]
    if written == "half" and len(shape) == 2:
        half = np.triu_indices(p)
        whole = np.empty(shape, dtype=np.int16)
        whole[half] = stream.table("<i2", len(half[0]))
        whole.T[half] = whole[half]
    elif written == "full":
        whole = stream.table("<i2", *shape)
    else:
        raise ValueError("it does not say how its evidence is written")
    unknown = whole == _NAN
    if len(shape) == 3:
        whole[1:] += np.where(unknown[0], 0, whole[0]).astype(np.int16)
    return np.where(unknown, np.nan, whole * STEP)


def _sizes(sizes: Sizes) -> tuple[str, bytes]:
    """How estimates and errors are written, and their bytes."""
    digits, value, error = decimals(sizes)
    known = sizes.known
    written = np.where(known, digits, _NO_DIGITS).astype(np.uint8)
    if (error[known] < 256).all() and (np.abs(value[known]) < 2**31).all():
        whole = np.where(known, value, 0).astype(np.int32), np.where(known, error, 0)
        return "decimal", _bytes(written) + _bytes(whole[0]) + _bytes(whole[1].astype(np.uint8))
    return "float", _bytes(sizes.value) + _bytes(sizes.error)


class _Stream:
    """The unpacked content of a file, a part at a time."""

    def __init__(self, data: bytes) -> None:
        self._rest = data[len(PACKED) :]
        self._left = _most(data)
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY)

    def read(self, size: int) -> bytes:
        """The next `size` bytes, and not one more."""
        if size > self._left:
            raise ValueError(f"it unpacks to more than {MOST_GROWTH} times its size")
        self._left -= size
        out = b""
        while len(out) < size and not self._xz.eof:
            part = self._xz.decompress(self._rest, max_length=size - len(out))
            self._rest = b""
            if not part and self._xz.needs_input:
                break
            out += part
        if len(out) < size:
            raise ValueError("it ends too early")
        return out

    def table(self, dtype: str, *shape: int) -> np.ndarray[Any, Any]:
        """The next table, as `_bytes` wrote it."""
        kind = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        raw = np.frombuffer(self.read(count * kind.itemsize), np.uint8)
        return raw.reshape(kind.itemsize, count).T.copy().view(kind).reshape(shape)

    def end(self) -> None:
        """Raise an error unless nothing is left."""
        if (not self._xz.eof and self._xz.decompress(self._rest, max_length=1)) or (
            self._xz.unused_data or not self._xz.eof
        ):
            raise ValueError("something follows its last table, or its end is missing")


def _read_tables(
    stream: _Stream, document: FragmentDocument, kept: dict[str, Any]
) -> Iterator[tuple[str, FloatArray]]:
    """Name and numbers of every table."""
    p = len(document.labels)
    if document.bayes is not None:
        scales = len(document.bayes.scales)
        for name in _EVIDENCE:
            shape = (scales, p, p) if name == "ancestor" else (p, p)
            written = kept.get(f"bayes.{name}")
            yield f"bayes.{name}", _read_sixteenths(stream, written, *shape)
    hard = document.hard
    given = (document.shares, hard and hard.total, hard and hard.applied)
    for name, part in zip(_TABLES[1:], given, strict=True):
        if part is None:
            continue
        if kept.get(name) == "decimal":
            digits = stream.table("<u1", p, p)
            step = np.where(digits == _NO_DIGITS, np.nan, 10.0 ** -digits.astype(float))
            value, error = stream.table("<i4", p, p) * step, stream.table("<u1", p, p) * step
        elif kept.get(name) == "float":
            value, error = stream.table("<f8", p, p), stream.table("<f8", p, p)
        else:
            raise ValueError(f"it does not say how {name} is written")
        yield f"{name}.value", value.round(12)
        yield f"{name}.error", error.round(12)
