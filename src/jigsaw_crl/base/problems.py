"""All problems of a file or a study in one error, so that one run shows them all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.text import few

# Problems that are shown, files that are named for each, and characters of each: about a screen.
SHOWN_PROBLEMS, SHOWN_FILES, SHOWN_CHARACTERS = 8, 4, 400


class Several(InputError):
    """Several problems; `lines`, if there are any, tells each on a line of its own."""

    parts: tuple[InputError, ...] = ()
    lines: tuple[str, ...] = ()


def as_one(
    found: Sequence[InputError],
    n_files: int = 1,
    path: object | None = None,
    client: str | None = None,
) -> InputError:
    """The only error that was found, or one that names them all.

    Parameters
    ----------
    found : sequence of InputError
        At least one.
    n_files : int
        Number of files that were looked at.
    path, client
        The study, or its only file and client.

    Examples
    --------
    >>> from jigsaw_crl.base.errors import InputError
    >>> from jigsaw_crl.base.problems import as_one
    >>> names = ("a.csv", "b.csv")
    >>> raise as_one([InputError("it is empty", "Check it.", path=name) for name in names], 2)
    Traceback (most recent call last):
    jigsaw_crl.base.errors.InputError: 2 problems in 2 of 2 clients: (1) a.csv, b.csv: it is empty.
    Check it. Correct them, then run again.
    """
    if len(found) == 1:
        return found[0]
    # The places of each problem: the file and the regime.
    told: dict[tuple[str, str], dict[str, None]] = {}
    for e in found:
        regime = "" if e.regime is None else f"regime {e.regime!r}"
        place = ", ".join(x for x in (_file(e) if n_files > 1 else "", regime) if x)
        told.setdefault((e.what, e.remedy), {})[place] = None
    texts = []
    for i, ((what, remedy), at) in enumerate(told.items(), start=1):
        text = f"{few(at, SHOWN_FILES)}: {shortened(what)}. {shortened(remedy)}"
        texts.append(f"({i}) {text.removeprefix(': ')}")
    if len(texts) > SHOWN_PROBLEMS:
        texts[SHOWN_PROBLEMS:] = [f"And {len(texts) - SHOWN_PROBLEMS} more like these."]
    count, last = sum(map(len, told.values())), "Correct them, then run again."
    where = f" in {len(set(map(_file, found)))} of {n_files} clients" if n_files > 1 else ""
    head = f"{count} problems{where}:"
    error = Several(f"{head} {' '.join(texts)}".removesuffix("."), last, client=client, path=path)
    error.parts = tuple(found)
    if len(told) > 1:
        error.lines = (str(error).partition(head)[0] + head, *texts, last)
    return error


def _file(error: InputError) -> str:
    return Path(str(error.path)).name if error.path is not None else error.client or "the study"


def shortened(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
