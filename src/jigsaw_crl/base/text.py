"""Plural forms, short lists, numbers for people, and suggestions for mistyped names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite

# difflib's similarity, between 0 and 1: "contrl" and "control" have 0.92, "ctrl" and "control"
# 0.73; other words have less: "duration" and "perturbation" 0.70, "time" and "regime" 0.60.
SIMILAR = 0.72


def pluralise(number: int, singular: str, plural: str = "") -> str:
    """The number and its noun, in the singular or plural."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"


def few(names: Iterable[object], most: int = 8) -> str:
    """The first names, and the number of the others."""
    listed = [str(name) for name in names]
    shown = ", ".join(listed[:most])
    return shown + (f" and {len(listed) - most} more" if len(listed) > most else "")


def chance(probability: float, decimals: int = 3) -> str:
    """A probability in decimals; never as certain as 1 or 0, which rounding would show."""
    text, least = f"{probability:.{decimals}f}", 10.0**-decimals
    if float(text) in (0.0, 1.0):
        edge = f"> {1.0 - least:.{decimals}f}", f"< {least:.{decimals}f}"
        return edge[float(text) == 0.0]
    return text


def number(value: float) -> str:
    """A number with three digits and no exponent, for people."""
    if not isfinite(value):
        return "infinite" if value > 0 else str(value)
    if abs(value) < 1e-4:
        return "0"
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def percent(share: float) -> str:
    """A share in percent, with two digits; large ones without false precision."""
    if share > 10:
        return "more than 1,000 %"
    if share < 1e-3:
        return "less than 0.1 %"
    rounded = float(f"{100 * share:.2g}")
    return f"{rounded:.0f} %" if rounded >= 10 else f"{rounded:g} %"


def signed(value: float) -> str:
    """The number with two decimals and its sign; zero has none."""
    text = f"{abs(value):.2f}"
    return text if text == "0.00" else f"{'−' if value < 0 else '+'}{text}"


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A sentence that suggests the known name closest to a mistyped one; empty if none is close."""
    names = [candidate for candidate in known if isinstance(candidate, str)]
    text = name if isinstance(name, str) else str(name)
    if text in names:
        return "" if isinstance(name, str) else f"Names are text: write {text!r}."
    folded = {candidate.strip().casefold(): candidate for candidate in reversed(names)}
    close = get_close_matches(text.strip().casefold(), list(folded), n=1, cutoff=SIMILAR)
    return f"Did you mean {folded[close[0]]!r}?" if close else ""
