"""The problems of all files of a study in one error, so that one run shows them all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few, pluralise

__all__ = ["Problems"]

# Problems that are shown, files that are named for each, and characters of each: about a screen.
MOST_SHOWN, MOST_FILES, LONGEST = 8, 4, 400


class Problems:
    """Errors of single files, kept until every file has been looked at.

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

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Keep an `InputError` of this block for `raise_all`."""
        try:
            yield
        except InputError as error:
            self.found.append(error)

    def raise_all(self, n_files: int, path: object) -> None:
        """Raise what was kept: nothing, the only error, or one error that names them all.

        Parameters
        ----------
        n_files : int
            Number of files that were looked at.
        path : path
            The study.
        """
        if len(self.found) == 1:
            raise self.found[0]
        if self.found:
            raise self._together(n_files, path)

    def _together(self, n_files: int, path: object) -> InputError:
        groups: dict[tuple[str, str, str | None], list[str]] = {}
        for error in self.found:
            groups.setdefault((error.what, error.remedy, error.regime), []).append(_place(error))
        # A remedy that all problems share is given once.
        shared = len({remedy for _, remedy, _ in groups}) == 1
        texts = []
        for (what, remedy, regime), places in groups.items():
            named = few(places, MOST_FILES) + ("" if regime is None else f", regime {regime!r}")
            texts.append(
                f"{named}: {_short(what)}{'' if shared else f'. {_short(remedy)}'}".removesuffix(
                    "."
                )
            )
        listed = [f"({i}) {text}" for i, text in enumerate(texts, start=1)]
        if len(listed) == 1:
            listed = texts
        more = len(listed) - MOST_SHOWN
        shown = "; ".join(listed[:MOST_SHOWN]) + (f"; and {more} more like these" * (more > 0))
        whole = f"{len(self.found)} problems in {pluralise(n_files, 'client')}: {shown}"
        remedy = self.found[0].remedy if shared else "Correct them, then run again."
        return InputError(whole.removesuffix("."), remedy, path=path)


def _place(error: InputError) -> str:
    return Path(str(error.path)).name if error.path is not None else error.client or "the study"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
