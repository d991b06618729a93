"""Small matters of language: "1 row" and "2 rows", and which name was meant by a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["counted", "meant"]

# difflib's own measure of likeness, between 0 and 1: "contrl" and "control" have .92, "pump" and
# "valve" .22.
ALIKE = 0.6


def counted(number: int, thing: str, things: str = "") -> str:
    """A number and what it counts.

    Examples
    --------
    >>> from jigsaw_crl.base.text import counted
    >>> counted(1, "row"), counted(1200, "row"), counted(2, "matrix", "matrices")
    ('1 row', '1200 rows', '2 matrices')
    """
    return f"{number} {thing if number == 1 else things or thing + 's'}"


def meant(asked: object, known: Iterable[object]) -> str:
    """A sentence that names what was probably meant; empty where nothing is near.

    Examples
    --------
    >>> from jigsaw_crl.base.text import meant
    >>> meant("contrl", ["pump", "control"])
    "Did you mean 'control'?"
    >>> meant(1, ["1", "2"])
    "Names are text: write '1'."
    >>> meant("pump", ["1", "2"])
    ''
    """
    names = [name for name in known if isinstance(name, str)]
    text = asked if isinstance(asked, str) else str(asked)
    if text in names:
        return "" if isinstance(asked, str) else f"Names are text: write {text!r}."
    folded = {name.strip().casefold(): name for name in reversed(names)}
    near = get_close_matches(text.strip().casefold(), list(folded), n=1, cutoff=ALIKE)
    return f"Did you mean {folded[near[0]]!r}?" if near else ""
