"""All problems of a file or a study in one error, so that one run shows them all.

A problem is kept, and reading goes on as if it were corrected: without the column, with the column
that is probably meant. What is read then serves to find further problems, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.study.source import Reading

__all__ = ["Problems", "passable", "read_through"]

# Problems that are shown, files that are named for each, and characters of each: about a screen.
MOST_SHOWN, MOST_FILES, LONGEST = 8, 4, 400
# Problems of one file after which it is read again.
MOST_PASSED = 8

T = TypeVar("T")


class Several(InputError):
    """Several problems; `lines` tells each on a line of its own."""

    parts: tuple[InputError, ...] = ()
    lines: tuple[str, ...] = ()


class Passable(InputError):
    """A problem, and the fields of `Reading` with which the file can be read on."""

    instead: Mapping[str, Any] = {}


def passable(error: InputError, **instead: Any) -> Passable:
    """The error, with the reading that looks for further problems.

    Parameters
    ----------
    error : InputError
    instead
        Fields of `Reading`, with the values to go on with.
    """
    found = Passable(
        error.what, error.remedy, client=error.client, regime=error.regime, path=error.path
    )
    found.instead = instead
    return found


def read_through(read: Callable[[Reading], T], reading: Reading, problems: Problems) -> T | None:
    """What `read` returns, past the problems that can be passed; None where one cannot."""
    for _ in range(MOST_PASSED):
        try:
            return read(reading)
        except InputError as error:
            parts = problems.note(error)
            if not all(isinstance(part, Passable) for part in parts):
                return None
            for part in parts:
                reading = replace(reading, **getattr(part, "instead", {}))
    return None


class Problems:
    """Errors that are kept until everything has been looked at.

    Examples
    --------
    >>> from jigsaw_crl.base.errors import InputError
    >>> from jigsaw_crl.study.problems import Problems
    >>> problems = Problems()
    >>> for name in ("a.csv", "b.csv", "c.csv"):
    ...     with problems.noted():
    ...         raise InputError("the file is empty", "Check the file.", path=name)
    >>> problems.raise_all(3, "study")
    Traceback (most recent call last):
    jigsaw_crl.base.errors.InputError: file 'study': 3 problems in 3 clients: a.csv, b.csv, c.csv:
    the file is empty. Check the file.
    """

    def __init__(self) -> None:
        self.found: list[InputError] = []

    def note(self, error: InputError) -> tuple[InputError, ...]:
        """Keep an error for `raise_all`; its parts."""
        parts = error.parts if isinstance(error, Several) else (error,)
        self.found += parts
        return parts

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Keep an `InputError` of this block for `raise_all`."""
        try:
            yield
        except InputError as error:
            self.note(error)

    def raise_all(
        self, n_files: int = 1, path: object | None = None, *, client: str | None = None
    ) -> None:
        """Raise what was kept: nothing, the only error, or one error that names them all.

        Parameters
        ----------
        n_files : int
            Number of files that were looked at.
        path : path
            The study, or its only file.
        client : str, optional
            The client, if there is one only.
        """
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            error = self._together(n_files, path, client)
            error.parts = tuple(self.found)
            raise error

    def _together(self, n_files: int, path: object | None, client: str | None) -> Several:
        # By remedy, then by what is wrong: the places where it is so.
        remedies: dict[str, dict[str, list[str]]] = {}
        found = {(e.what, e.remedy, _place(e), e.regime): e for e in self.found}.values()
        for error in found:
            same = remedies.setdefault(error.remedy, {})
            regime = "" if error.regime is None else f"regime {error.regime!r}"
            place = ", ".join(x for x in (_place(error) if n_files > 1 else "", regime) if x)
            same.setdefault(error.what, []).append(place)
        # A remedy that all problems share is given once.
        only = next(iter(remedies)) if len(remedies) == 1 else ""
        texts = [
            _listed([_placed(what, places) for what, places in same.items()])
            + ("" if only else f". {_short(remedy)}".removesuffix("."))
            for remedy, same in remedies.items()
        ]
        listed = [f"({i}) {text}" for i, text in enumerate(texts, start=1)] if not only else texts
        more = len(listed) - MOST_SHOWN
        listed = listed[:MOST_SHOWN] + [f"and {more} more like these"] * (more > 0)
        concerned = len({_place(error) for error in found})
        of = f"{concerned} of " if concerned < n_files else ""
        clients = f" in {of}{pluralise(n_files, 'client')}" if n_files > 1 else ""
        head = f"{pluralise(len(found), 'problem')}{clients}:"
        error = Several(
            f"{head} {'; '.join(listed)}".removesuffix("."),
            only or "Correct them, then run again.",
            client=client,
            path=path,
        )
        if not only:
            error.lines = (str(error).partition(head)[0] + head, *listed, error.remedy)
        else:
            error.lines = (str(error),)
        return error


def _place(error: InputError) -> str:
    return Path(str(error.path)).name if error.path is not None else error.client or "the study"


def _placed(what: str, places: Sequence[str]) -> str:
    named = few(places, MOST_FILES)
    return f"{named}: {_short(what)}" if named else _short(what)


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - MOST_SHOWN
    return "; ".join(texts[:MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
