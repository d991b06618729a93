"""Plural forms, short lists, and suggestions for mistyped names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["did_you_mean", "few", "pluralise", "probability_text"]

# difflib's similarity, between 0 and 1: "contrl" and "control" have 0.92, "ctrl" and "control"
# 0.73; other words have less: "duration" and "perturbation" 0.70, "time" and "regime" 0.60.
SIMILAR = 0.72


def pluralise(number: int, singular: str, plural: str = "") -> str:
    """The number and its noun, in the singular or plural.

    Examples
    --------
    >>> from jigsaw_crl.base.text import pluralise
    >>> pluralise(1, "row"), pluralise(1200, "row"), pluralise(2, "matrix", "matrices")
    ('1 row', '1200 rows', '2 matrices')
    """
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def probability_text(probability: float) -> str:
    """A probability with three decimals; what rounds to 0 or 1 is a bound.

    Examples
    --------
    >>> from jigsaw_crl.base.text import probability_text
    >>> probability_text(0.25), probability_text(0.99996), probability_text(0.0)
    ('0.250', '> 0.999', '< 0.001')
    """
    if probability < 0.0005:
        return "< 0.001"
    return "> 0.999" if probability >= 0.9995 else f"{probability:.3f}"


def few(names: Iterable[object], most: int = 8) -> str:
    """The first names, and the number of the others.

    Examples
    --------
    >>> from jigsaw_crl.base.text import few
    >>> few("abc"), few("abcde", most=3)
    ('a, b, c', 'a, b, c and 2 more')
    """
    listed = [str(name) for name in names]
    shown = ", ".join(listed[:most])
    return shown + (f" and {len(listed) - most} more" if len(listed) > most else "")


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A sentence that suggests the known name closest to a mistyped one; empty if none is close.

    Examples
    --------
    >>> from jigsaw_crl.base.text import did_you_mean
    >>> did_you_mean("contrl", ["pump", "control"])
    "Did you mean 'control'?"
    >>> did_you_mean(1, ["1", "2"])
    "Names are text: write '1'."
    >>> did_you_mean("pump", ["1", "2"])
    ''
    """
    names = [candidate for candidate in known if isinstance(candidate, str)]
    text = name if isinstance(name, str) else str(name)
    if text in names:
        return "" if isinstance(name, str) else f"Names are text: write {text!r}."
    folded = {candidate.strip().casefold(): candidate for candidate in reversed(names)}
    close = get_close_matches(text.strip().casefold(), list(folded), n=1, cutoff=SIMILAR)
    return f"Did you mean {folded[close[0]]!r}?" if close else ""
