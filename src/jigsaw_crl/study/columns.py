"""Which columns of a table are features: the numeric ones that the user does not ignore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few

__all__ = [
    "BOOLEAN",
    "ON_REQUEST",
    "ROW_INDEX",
    "check_beside",
    "feature_columns",
    "kept_positions",
    "plain_rows",
    "quoted",
]

# Why a boolean column is not a feature.
BOOLEAN = "boolean"
# Why a column that the user ignores is not a feature; such columns are not reported.
ON_REQUEST = "ignored on request"
# Why an index that a program wrote as a column without a name is not a feature.
ROW_INDEX = "a row index"


def feature_columns(
    columns: Sequence[str],
    not_numbers: Mapping[str, str],
    regime: str,
    ignore: Sequence[str],
    *,
    path: object | None,
    client: str,
    beside: Mapping[str, str] = MappingProxyType({}),
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The columns that are features; the columns that are ignored, and why.

    Parameters
    ----------
    columns : sequence of str
    not_numbers : mapping of str to str
        Columns without numbers, and what they hold instead.
    regime : str
        The regime column.
    ignore : sequence of str
        Columns that the user does not want.
    beside : mapping of str to str
        The columns with the batch and with the group of each row, under "batch" and "group".
    """
    fail = partial(InputError, client=client, path=path)
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise fail(f"the column {twice!r} appears twice", "Name every column once.")
    if regime not in columns:
        raise fail(
            f"there is no column {regime!r}; the columns are {quoted(columns)}",
            "Name the column that holds the regime of each row with --regime or in study.toml. "
            f"{_suggested(regime, columns, not_numbers)}".strip(),
        )
    check_beside(columns, beside, regime, fail)
    named = {regime, *beside.values()}
    kept_positions(columns, ignore, fail)
    ignored = {}
    for name in columns:
        if name in named:
            continue
        if name in ignore:
            ignored[name] = ON_REQUEST
        elif name in not_numbers:
            ignored[name] = not_numbers[name]
        elif name.strip() == "" or name == "Unnamed: 0" or name.startswith("__index_level_"):
            ignored[name] = ROW_INDEX
    features = tuple(n for n in columns if n not in named and n not in ignored)
    if not features:
        raise fail(
            "there is no numeric column beside the regime",
            "Every feature is a numeric column of the table.",
        )
    return features, ignored


def check_beside(
    columns: Iterable[str],
    beside: Mapping[str, str],
    regime: str,
    fail: Callable[[str, str], InputError],
) -> None:
    """Raise an `InputError` if the batch or the group column is missing, or is another one."""
    names, taken = list(columns), {regime: "regime"}
    for what, column in beside.items():
        remedy = (
            f"Name the column that holds the {what} of each row with --{what} or in study.toml."
        )
        if column in taken:
            raise fail(f"the column {column!r} is both the {taken[column]} and the {what}", remedy)
        if column not in names:
            raise fail(
                f"there is no column {column!r} for the {what}; the columns are {quoted(names)}",
                f"{remedy} {did_you_mean(column, names)}".strip(),
            )
        taken[column] = what


def kept_positions(
    names: Sequence[str],
    ignore: Sequence[str],
    fail: Callable[[str, str], InputError],
    *,
    what: str = "column",
) -> IntArray:
    """Positions of the names that are not ignored; an error if one to ignore is unknown."""
    unknown = [name for name in ignore if name not in names]
    if unknown:
        raise fail(
            f"there is no {what} {quoted(unknown)} to ignore",
            did_you_mean(unknown[0], names) or "Check the spelling.",
        )
    return np.array([i for i, name in enumerate(names) if name not in ignore], dtype=np.intp)


def plain_rows(rows: npt.NDArray[np.number], kept: IntArray) -> npt.NDArray[np.number]:
    """The columns in `kept`, as float32 if they are float32, otherwise as float64."""
    if len(kept) < rows.shape[1]:
        rows = rows[:, kept]
    return rows if rows.dtype == np.float32 else rows.astype(np.float64)


def _suggested(regime: str, columns: Sequence[str], not_numbers: Mapping[str, str]) -> str:
    """Suggest a regime column: one of a similar name, and the only one that is not numeric.

    The second comes first if no name was given, for then a similar name means nothing.
    """
    near = did_you_mean(regime, columns)
    only = f"Is it {next(iter(not_numbers))!r}?" if len(not_numbers) == 1 else ""
    return only or near if regime == "regime" else near or only


def quoted(names: Sequence[str]) -> str:
    """The first names in quotes, and the number of the others."""
    return few((repr(name[:60]) for name in names), 6)
