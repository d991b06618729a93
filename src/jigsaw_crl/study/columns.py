"""Which columns of a table are features, and what is said of those that are not."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import did_you_mean, few, pluralise
from jigsaw_crl.study.problems import Problems, passable
from jigsaw_crl.study.source import Reading

__all__ = [
    "BOOLEAN",
    "RISING",
    "check_once",
    "check_width",
    "choose_columns",
    "constant_columns",
    "few_valued",
    "ignored_columns",
    "quoted",
    "warn_of_ignored",
]

# Why a column is not a feature. Those on request are not reported.
BOOLEAN = "boolean"
ON_REQUEST = "ignored on request"
ROW_INDEX = "a row index"
RISING = "rising from row to row, as a time or a row number does"
# What to do if such a column is a measurement after all.
_THEN = {BOOLEAN: "encode it as 0 and 1", RISING: "shuffle the rows"}
# The directions of this many columns take a gigabyte with 1,000 latents.
MOST_COLUMNS = 100_000
# A column may hold the regime if it has at most so many values, each in so many rows on average.
MOST_CANDIDATE_VALUES, ROWS_EACH = 1_000, 2
# Wider tables are reduced to directions, among which a covariate is lost.
MOST_WITH_COVARIATES = 2_000
# Values of such a column that are shown.
MOST_VALUES = 5
# Ignored columns that a warning names.
MOST_WARNED = 4


def choose_columns(
    reading: Reading,
    columns: Sequence[str],
    *,
    not_numbers: Mapping[str, str],
    texts: Sequence[str] | None = None,
    regime: str = "regime",
    candidates: Mapping[str, Sequence[object]] | None = None,
) -> tuple[tuple[str, ...], dict[str, str], tuple[str, ...]]:
    """The features; the columns that are ignored, and why; those to ignore that are not there.

    Parameters
    ----------
    reading : Reading
    columns : sequence of str
        Columns that may be features.
    not_numbers : mapping of str to str
        Those without numbers, and what they hold instead.
    texts : sequence of str, optional
        Columns that may hold the regime, the batch or the group; by default the same.
    regime : str
        The regime column if the user names none.
    candidates : mapping of str to sequence, optional
        Columns that may hold the regime, and what is in them; by default those without numbers.
    """
    check_width(len(columns), reading)
    check_once(columns, reading)
    problems = Problems()
    named = reading.columns(regime)
    likely = dict.fromkeys(not_numbers, ()) if candidates is None else candidates
    _note_columns(named, columns if texts is None else texts, likely, reading, problems)
    known = {*columns, *(texts or ())}
    absent = [name for name in reading.ignore if name not in known]
    if absent and reading.strict_ignore:
        error = reading.fail(
            f"there is no column {quoted(absent)} to ignore",
            did_you_mean(absent[0], columns) or "Check the spelling.",
        )
        present = tuple(name for name in reading.ignore if name in known)
        problems.note(passable(error, ignore=present))
    problems.raise_all(path=reading.path, client=reading.client)
    ignored, features = {}, []
    for name in columns:
        if texts is None and name in named.values():
            continue
        if name in reading.ignore:
            ignored[name] = ON_REQUEST
        elif name in not_numbers:
            ignored[name] = not_numbers[name]
        elif name.strip() == "" or name == "Unnamed: 0" or name.startswith("__index_level_"):
            ignored[name] = ROW_INDEX
        else:
            features.append(name)
    for name in reading.covariates:
        if name not in features:
            near = did_you_mean(name, features) or "Name a numeric column, or leave it out here."
            raise reading.fail(f"there is no numeric column {name!r} to use as a covariate", near)
    if reading.covariates and len(features) > MOST_WITH_COVARIATES:
        raise reading.fail(
            f"covariates are taken off at most {MOST_WITH_COVARIATES:,} columns",
            "Keep the columns that matter, or take them off before.",
        )
    if not features:
        raise reading.fail(
            "there is no numeric column beside the regime",
            "Every feature is a numeric column of the table.",
        )
    return tuple(features), ignored, tuple(absent)


def check_once(columns: Sequence[str], reading: Reading) -> None:
    """Refuse a table with two columns of one name."""
    twice = next((name for name, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise reading.fail(f"the column {twice!r} appears twice", "Name every column once.")


def check_width(count: int, reading: Reading) -> None:
    """Refuse a table with more than `MOST_COLUMNS` columns."""
    if count > MOST_COLUMNS:
        raise reading.fail(
            f"it has {pluralise(count, 'column')}, more than {MOST_COLUMNS}",
            "Keep the columns that matter, or summarise them first.",
        )


def _note_columns(
    named: Mapping[str, str],
    columns: Sequence[str],
    candidates: Mapping[str, Sequence[object]],
    reading: Reading,
    problems: Problems,
) -> None:
    """Note the columns of the regime, the batch and the group that are missing or the same."""
    taken: dict[str, str] = {}
    for what, column in named.items():
        remedy = (
            f"Name the column that holds the {what} of each row with --{what} or in study.toml."
        )
        near = did_you_mean(column, columns)
        only, several = "", ""
        if what == "regime":
            texts = [_with_values(name, own) for name, own in candidates.items()]
            # Without values, which differ from file to file: the same problem is told once.
            only = f"Is it {quoted(list(candidates))}?" if len(texts) == 1 else ""
            several = f"Columns that may hold it: {few(texts, 6)}." if texts else ""
        # If no name was given, a similar one means nothing.
        hints = (only, near, several) if what == "regime" and not reading.regime else (near, only)
        hint = next((hint for hint in (*hints, several) if hint), "")
        if column in taken:
            wrong = f"the column {column!r} is both the {taken[column]} and the {what}"
            problems.note(passable(reading.fail(wrong, remedy), **{what: None}))
        elif column not in columns:
            role = "" if what == "regime" else f" for the {what}"
            wrong = f"there is no column {column!r}{role}; the columns are {quoted(columns)}"
            error = reading.fail(wrong, f"{remedy} {hint}".strip())
            if what != "regime":
                error = passable(error, **{what: None})
            elif only:
                # Further problems are looked for with the column that is probably meant.
                error = passable(error, regime=next(iter(candidates)))
            problems.note(error)
        taken[column] = what


def _with_values(name: str, values: Sequence[object]) -> str:
    """A column's name and its first values."""
    own = few((str(value)[:20] for value in dict.fromkeys(values)), MOST_VALUES)
    return f"{name[:60]!r} ({own})" if own else repr(name[:60])


def few_valued(values: Mapping[str, Sequence[object]], control: str) -> dict[str, Sequence[object]]:
    """Columns that may hold the regime: with the control, or else with few values, as regimes."""
    return {name: own for name, own in values.items() if control in own} or {
        name: own
        for name, own in values.items()
        if 2 <= len(set(own)) <= MOST_CANDIDATE_VALUES and ROWS_EACH * len(set(own)) <= len(own)
    }


def quoted(names: Sequence[str]) -> str:
    """The first names in quotes, and the number of the others."""
    return few((repr(name[:60]) for name in names), 6)


# -- what is said of columns that are not used ----------------------------------------------------


def _not_a_feature(why: str) -> str:
    return f" is {why}, so it is not used as a feature"


def ignored_columns(ignored: Mapping[str, str], client: str) -> list[Finding]:
    """A finding for each column that is not used, with the reason; none for those on request."""
    return [
        Finding(
            "ignored-column",
            "info",
            f"the column {column!r}{_not_a_feature(why)}",
            "Nothing to do, unless it is a measurement; then "
            f"{_THEN.get(why, 'encode it as numbers')}.",
            client=client,
        )
        for column, why in ignored.items()
        if why != ON_REQUEST
    ]


def constant_columns(constant: Sequence[str], client: str) -> list[Finding]:
    """A finding about columns with one value in all rows, if there are any."""
    if not constant:
        return []
    return [
        Finding(
            "constant-column",
            "info",
            f"dropped {quoted(constant)}: constant over all regimes",
            "Nothing to do, unless it should vary; then check the sensor.",
            value=float(len(constant)),
            client=client,
        )
    ]


def warn_of_ignored(findings: Sequence[Finding], *, stacklevel: int) -> None:
    """Warn of ignored columns and regimes, for readers that do not return findings."""
    found = [f for f in findings if f.check in ("ignored-column", "unusable-regime")]
    found = [f for f in found if not f.message.endswith(_not_a_feature(ROW_INDEX))]
    if not found:
        return
    said: dict[str, list[str]] = {}
    for f in found[:MOST_WARNED]:
        said.setdefault(f.remedy, []).append(f.message)
    text = " ".join(f"{'; '.join(messages)}. {remedy}" for remedy, messages in said.items())
    more = f" And {len(found) - MOST_WARNED} more." if len(found) > MOST_WARNED else ""
    warnings.warn(
        f"client {found[0].client!r}: {text}{more} (ignore=[…] names columns that need no warning)",
        stacklevel=stacklevel + 1,
    )
