"""All problems of a file or a study in one error, so that one run shows them all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few, pluralise

# Problems that are shown, files that are named for each, and characters of each: about a screen.
MOST_SHOWN, MOST_FILES, LONGEST = 8, 4, 400


class Several(InputError):
    """Several problems; `lines` tells each on a line of its own."""

    parts: tuple[InputError, ...] = ()
    lines: tuple[str, ...] = ()


def parts_of(error: InputError) -> tuple[InputError, ...]:
    """The single problems of an error."""
    return error.parts if isinstance(error, Several) else (error,)


def raise_all(
    found: Sequence[InputError],
    n_files: int = 1,
    path: object | None = None,
    client: str | None = None,
) -> None:
    """Raise what was found: nothing, the only error, or one error that names them all.

    Parameters
    ----------
    found : sequence of InputError
    n_files : int
        Number of files that were looked at.
    path, client
        The study, or its only file and client.

    Examples
    --------
    >>> from jigsaw_crl.base.errors import InputError
    >>> from jigsaw_crl.study.problems import raise_all
    >>> names = ("a.csv", "b.csv")
    >>> raise_all([InputError("it is empty", "Check it.", path=name) for name in names], 2)
    Traceback (most recent call last):
    jigsaw_crl.base.errors.InputError: 2 problems in 2 clients: a.csv, b.csv: it is empty. Check it.
    """
    if len(found) == 1:
        raise found[0]
    if not found:
        return
    unique = {(e.what, e.remedy, _place(e), e.regime): e for e in found}.values()
    # By remedy, then by what is wrong: the places where it is so.
    remedies: dict[str, dict[str, list[str]]] = {}
    for e in unique:
        regime = "" if e.regime is None else f"regime {e.regime!r}"
        place = ", ".join(x for x in (_place(e) if n_files > 1 else "", regime) if x)
        remedies.setdefault(e.remedy, {}).setdefault(e.what, []).append(place)
    # A remedy that all problems share is given once, at the end.
    only = next(iter(remedies)) if len(remedies) == 1 else ""
    texts = []
    for i, (remedy, same) in enumerate(remedies.items(), start=1):
        told = [
            f"{few(at, MOST_FILES)}: {shortened(x)}".removeprefix(": ") for x, at in same.items()
        ]
        text = "; ".join(_first(told))
        texts.append(text if only else f"({i}) {text}. {shortened(remedy)}".removesuffix("."))
    texts = _first(texts, " like these")
    concerned = len({_place(e) for e in unique})
    of = f"{concerned} of " if concerned < n_files else ""
    where = f" in {of}{pluralise(n_files, 'client')}" if n_files > 1 else ""
    head, last = f"{pluralise(len(unique), 'problem')}{where}:", "Correct them, then run again."
    said = f"{head} {'; '.join(texts)}".removesuffix(".")
    error = Several(said, only or last, client=client, path=path)
    error.parts = tuple(found)
    before = str(error).partition(head)[0]
    error.lines = (str(error),) if only else (before + head, *texts, last)
    raise error


def _place(error: InputError) -> str:
    return Path(str(error.path)).name if error.path is not None else error.client or "the study"


def _first(texts: Sequence[str], like: str = "") -> list[str]:
    """The first texts, and how many more there are."""
    more = [f"and {len(texts) - MOST_SHOWN} more{like}"] if len(texts) > MOST_SHOWN else []
    return [*texts[:MOST_SHOWN], *more]


def shortened(text: str, most: int = LONGEST) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
