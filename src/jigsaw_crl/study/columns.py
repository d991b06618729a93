"""Which columns of a table are features: the numeric ones that the user does not ignore."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import IntArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import did_you_mean, few
from jigsaw_crl.study.problems import Problems, passable
from jigsaw_crl.study.source import Reading

__all__ = [
    "BOOLEAN",
    "DEFAULTS",
    "ON_REQUEST",
    "ROW_INDEX",
    "check_beside",
    "feature_columns",
    "few_valued",
    "kept_positions",
    "no_regime",
    "plain_rows",
    "quoted",
]

# Why a boolean column is not a feature.
BOOLEAN = "boolean"
# Why a column that the user ignores is not a feature; such columns are not reported.
ON_REQUEST = "ignored on request"
# Why an index that a program wrote as a column without a name is not a feature.
ROW_INDEX = "a row index"
# Names of the regime column if the user names none; in AnnData the second.
DEFAULTS = ("regime", "perturbation")
# A column may hold the regime if it has at most so many values, each in so many rows on average.
MOST_CANDIDATE_VALUES, ROWS_EACH = 1_000, 2


def feature_columns(
    columns: Sequence[str],
    not_numbers: Mapping[str, str],
    ignore: Sequence[str],
    reading: Reading,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The columns that are features; the columns that are ignored, and why.

    Parameters
    ----------
    columns : sequence of str
    not_numbers : mapping of str to str
        Columns without numbers, and what they hold instead.
    ignore : sequence of str
        Columns that the user does not want.
    reading : Reading
    """
    fail, regime, beside = reading.fail, reading.naming.column(), reading.naming.beside
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise fail(f"the column {twice!r} appears twice", "Name every column once.")
    problems = Problems()
    if regime not in columns:
        what = f"there is no column {regime!r}; the columns are {quoted(columns)}"
        problems.note(no_regime(what, regime, columns, list(not_numbers), fail))
    with problems.noted():
        check_beside(columns, beside, regime, fail)
    with problems.noted():
        try:
            kept_positions(columns, ignore, fail)
        except InputError as error:
            raise passable(error, ignore=tuple(n for n in ignore if n in columns)) from None
    problems.raise_all(path=reading.path, client=reading.client)
    named = {regime, *beside.values()}
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


def no_regime(
    what: str,
    regime: str,
    columns: Sequence[str],
    candidates: Sequence[str],
    fail: Callable[[str, str], InputError],
) -> InputError:
    """The error of a table without its regime column, with a suggestion.

    Parameters
    ----------
    what : str
    regime : str
        The column that is missing.
    columns : sequence of str
    candidates : sequence of str
        Columns that may hold the regime, from what is in them. If there is only one, further
        problems are looked for with it.
    """
    near = did_you_mean(regime, columns)
    only = f"Is it {candidates[0]!r}?" if len(candidates) == 1 else ""
    several = f"Columns that may hold it: {quoted(candidates)}." if len(candidates) > 1 else ""
    # If no name was given, a similar one means nothing.
    hint = only or near if regime in DEFAULTS else near or only
    error = fail(
        what,
        "Name the column that holds the regime of each row with --regime, or regime in study.toml. "
        f"{hint or several}".strip(),
    )
    return passable(error, regime=candidates[0]) if only else error


def few_valued(values: Mapping[str, Sequence[object]]) -> list[str]:
    """Columns whose values occur several times each, as regimes do."""
    return [
        name
        for name, own in values.items()
        if 2 <= len(set(own)) <= MOST_CANDIDATE_VALUES and ROWS_EACH * len(set(own)) <= len(own)
    ]


def check_beside(
    columns: Iterable[str],
    beside: Mapping[str, str],
    regime: str,
    fail: Callable[[str, str], InputError],
) -> None:
    """Raise an `InputError` if the batch or the group column is missing, or is another one."""
    names, taken, problems = list(columns), {regime: "regime"}, Problems()
    for what, column in beside.items():
        remedy = (
            f"Name the column that holds the {what} of each row with --{what} or in study.toml."
        )
        wrong = ""
        if column in taken:
            wrong = f"the column {column!r} is both the {taken[column]} and the {what}"
        elif column not in names:
            wrong = f"there is no column {column!r} for the {what}; the columns are {quoted(names)}"
            remedy = f"{remedy} {did_you_mean(column, names)}".strip()
        if wrong:
            problems.note(passable(fail(wrong, remedy), **{what: None}))
        taken[column] = what
    problems.raise_all()


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


def quoted(names: Sequence[str]) -> str:
    """The first names in quotes, and the number of the others."""
    return few((repr(name[:60]) for name in names), 6)
