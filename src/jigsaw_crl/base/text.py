"""Plural forms, short lists, numbers for people, and suggestions for mistyped names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite

__all__ = ["chance", "did_you_mean", "few", "number", "percent", "pluralise", "signed"]

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


def chance(probability: float) -> str:
    """A probability with three decimals; never as certain as 1 or 0, which rounding would show.

    Examples
    --------
    >>> from jigsaw_crl.base.text import chance
    >>> chance(0.25), chance(0.99997), chance(0.0)
    ('0.250', '> 0.999', '< 0.001')
    """
    text = f"{probability:.3f}"
    return {"1.000": "> 0.999", "0.000": "< 0.001"}.get(text, text)


def number(value: float) -> str:
    """A number with three digits and no exponent, for people.

    Examples
    --------
    >>> from jigsaw_crl.base.text import number
    >>> number(0.01234), number(250.4), number(73_412.0), number(-1e-9), number(float("inf"))
    ('0.0123', '250', '73,400', '0', 'infinite')
    """
    if not isfinite(value):
        return "infinite" if value > 0 else str(value)
    if abs(value) < 1e-4:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def percent(share: float) -> str:
    """A share in percent, with two digits; large ones without false precision.

    Examples
    --------
    >>> from jigsaw_crl.base.text import percent
    >>> percent(0.0123), percent(2.51), percent(float("inf")), percent(1e-6)
    ('1.2 %', '250 %', 'more than 1,000 %', 'less than 0.1 %')
    """
    if share > 10:
        return "more than 1,000 %"
    if share < 1e-3:
        return "less than 0.1 %"
    rounded = float(f"{100 * share:.2g}")
    return f"{rounded:.0f} %" if rounded >= 10 else f"{rounded:g} %"


def signed(value: float) -> str:
    """The number with two decimals and its sign; zero has none.

    Examples
    --------
    >>> from jigsaw_crl.base.text import signed
    >>> signed(0.5), signed(-0.001)
    ('+0.50', '0.00')
    """
    text = f"{abs(value):.2f}"
    return text if text == "0.00" else f"{'−' if value < 0 else '+'}{text}"


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
