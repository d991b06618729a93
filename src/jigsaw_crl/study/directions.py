"""The directions that replace the columns of a wide table, in a moments file.

`directions` has one row per column and one column per direction, and `centre` is the mean of the
control rows. The header has the names of the columns and the number of leading directions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jigsaw_crl.base.arrays import AnyArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.client.reduction import Reduction

__all__ = [
    "DIRECTIONS",
    "direction_arrays",
    "direction_header",
    "direction_shapes",
    "directions_of",
]

DIRECTIONS = ("directions", "centre")

Fail = Callable[[str], InputError]


def direction_header(reduction: Reduction | None) -> dict[str, Any]:
    """What the header says about the directions; nothing if there are none."""
    if reduction is None:
        return {}
    return {"columns": list(reduction.columns), "leading": reduction.leading}


def direction_arrays(reduction: Reduction | None) -> dict[str, AnyArray]:
    """The arrays of the directions; none if there are no directions."""
    if reduction is None:
        return {}
    return dict(zip(DIRECTIONS, (reduction.matrix, reduction.centre[None]), strict=True))


def direction_shapes(header: Mapping[str, Any], d: int, fail: Fail) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays of d directions, if the header names columns."""
    columns = header.get("columns")
    if columns is None:
        return {}
    if not isinstance(columns, list) or not all(isinstance(x, str) for x in columns):
        raise fail("the header's 'columns' is not a list of texts")
    if len(set(columns)) < len(columns) or len(columns) < d:
        raise fail("the header's 'columns' do not fit the directions")
    leading = header.get("leading")
    if type(leading) is not int or not 1 <= leading <= d:
        raise fail("the header's 'leading' is not a number of directions")
    return {"directions": (len(columns), d), "centre": (1, len(columns))}


def directions_of(
    header: Mapping[str, Any], arrays: Mapping[str, AnyArray], fail: Fail
) -> Reduction:
    """The directions of a file whose shapes were checked."""
    matrix, centre = (arrays[name] for name in DIRECTIONS)
    if not (np.isfinite(matrix).all() and np.isfinite(centre).all()):
        raise fail("the directions have missing or infinite entries")
    return Reduction(tuple(header["columns"]), matrix, centre[0], header["leading"])
