"""The rule for labels and names, and how they are printed safely.

Labels are shared between clients, so each must have one spelling that everybody can see. A label

- is in Unicode's normal form NFKC, without leading or trailing spaces;
- holds no control, bidirectional or other invisible character, and no line break;
- has at most 500 characters;
- differs from every other label by more than case, and than a space, `_` or `-` between its parts,
  and not only as 1 and 1.0 do.

`normal_label` gives the first by itself, at the client. What crosses to a coordinator must follow
the whole rule already; `label_fault` says what is wrong.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Context, Decimal, InvalidOperation
from difflib import SequenceMatcher
from functools import lru_cache
from unicodedata import category, name, normalize

MOST_CHARACTERS = 500
# The same few labels come again with every fragment.
REMEMBERED = 4096
# Numbers are compared by all their digits: 17 of them are more than a float has.
_ALL_DIGITS = Context(prec=MOST_CHARACTERS)
# Classes of invisible characters: control, format (bidirectional, zero-width), surrogates, and the
# separators of lines and paragraphs.
_INVISIBLE_CLASSES = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Characters without width that Unicode counts as letters or marks: joiners, fillers, selectors;
# and code points that are no characters, some of which XML cannot hold.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
    "\ufdd0-\ufdef\ufffe\uffff]"
)
# What a terminal could take as a command, or as another direction of writing.
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
# What separates the parts of a label.
_BETWEEN = re.compile(r"(?<=[^\s_-])[\s_-]+(?=[^\s_-])")
# Letters that look like others: Cyrillic and Greek ones, zero and one.
_ALIKE = str.maketrans(
    "авгекморстухѕіјԁһԛԝьαβγεικνορτυχζη01l",
    "abrekmopctyxsijdhqwbabyeiknoptuxznoii",
)
# A misspelt label has so many characters at least, and shares so much with the one that is meant.
_SHORTEST, _ALIKE_ENOUGH = 4, 0.75
# What a spreadsheet takes as the start of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def normal_label(label: str) -> str:
    """The label in normal form NFKC, without leading and trailing spaces."""
    return label if label.isascii() and label == label.strip() else normalize("NFKC", label).strip()


@lru_cache(maxsize=REMEMBERED)
def label_fault(label: str) -> str:
    """What is wrong with a label, for a sentence that begins with it; empty if nothing is."""
    if not label.strip():
        return "is empty"
    if len(label) > MOST_CHARACTERS:
        return f"has more than {MOST_CHARACTERS} characters"
    if label.isascii() and label.isprintable() and label == label.strip():
        return ""
    for character in label:
        if category(character) in _INVISIBLE_CLASSES or _INVISIBLE.match(character):
            known = f" ({name(character)})" if name(character, "") else ""
            return f"holds the invisible character U+{ord(character):04X}{known}"
    if label != label.strip():
        return "begins or ends with a space"
    if label != normalize("NFKC", label):
        return f"is not in Unicode's normal form NFKC, which is {normalize('NFKC', label)!r}"
    return ""


@lru_cache(maxsize=REMEMBERED)
def label_key(label: str) -> str:
    """Key that is equal for spellings of one label.

    They differ by case, by normal form, by space, `_` or `-` between two parts, or as 1 and 1.0 do.
    """
    folded = " ".join(normalize("NFKC", normalize("NFKC", label).casefold()).split())
    try:
        number = Decimal(folded)
    except InvalidOperation:
        return _BETWEEN.sub(" ", folded)
    return str(_ALL_DIGITS.normalize(number)) if number.is_finite() else folded


def looks_like(label: str) -> str:
    """Key that is equal for labels that look alike to a reader, such as pump and рump.

    Examples
    --------
    >>> from jigsaw_crl.base.labels import looks_like
    >>> looks_like("pump") == looks_like("\N{CYRILLIC SMALL LETTER ER}ump") != looks_like("tank")
    True
    """
    return label_key(label).translate(_ALIKE)


def respelt(sites: Iterable[Iterable[str]], known: Iterable[str] = ()) -> list[dict[str, str]]:
    """For each site, the labels that others spell otherwise, and the spelling that counts.

    It is that of `known` labels, or else the most frequent one, of several the first.

    Examples
    --------
    >>> from jigsaw_crl.base.labels import respelt
    >>> respelt([["pump"], ["Pump", "valve"], ["pump"]])
    [{}, {'Pump': 'pump'}, {}]
    """
    labels, seen = [list(own) for own in sites], dict[str, Counter[str]]()
    for label in (label for own in labels for label in own):
        seen.setdefault(label_key(label), Counter())[label] += 1
    best = {key: max(found, key=lambda x: found[x]) for key, found in seen.items()}
    best |= {label_key(label): label for label in known}
    return [{x: best[label_key(x)] for x in own if x != best[label_key(x)]} for own in labels]


def misspelt(sites: Iterable[Iterable[str]]) -> dict[str, str]:
    """Labels of one site alone that may be a slip for a label which that site lacks.

    The two differ by the order of their letters, by one letter more or less, or by spaces. Their
    digits are the same.

    Examples
    --------
    >>> from jigsaw_crl.base.labels import misspelt
    >>> misspelt([["vlave", "pump 1"], ["valve", "pump 2"], ["valve", "pump 2"]])
    {'vlave': 'valve'}
    """
    labels = [set(own) for own in sites]
    owners = Counter(label for own in labels for label in own)
    plain = {label: label_key(label).replace(" ", "") for label in owners}
    letters: dict[str, list[str]] = {}
    for label in sorted(owners):
        for text in _less(plain[label]):
            letters.setdefault(text, []).append(label)
    found = dict[str, str]()
    for own in labels:
        for label in sorted(x for x in own if owners[x] == 1 and len(plain[x]) >= _SHORTEST):
            alike = {x for text in _less(plain[label]) for x in letters[text] if x not in own}
            meant = [x for x in sorted(alike) if _slip(plain[label], plain[x])]
            # A label of several sites is more likely meant than one of a single site.
            found |= {label: max(meant, key=lambda x: owners[x])} if meant else {}
    return found


def _less(text: str) -> set[str]:
    """The letters of a text in the order of the alphabet, and those without one of them."""
    ordered = "".join(sorted(text))
    return {ordered, *(ordered[:i] + ordered[i + 1 :] for i in range(len(ordered)))}


def _slip(one: str, other: str) -> bool:
    """Do the texts differ as a slip of the keyboard does, and not in their digits?"""
    surplus = Counter(one)
    surplus.subtract(other)
    digits = ([c for c in text if c.isdigit()] for text in (one, other))
    return (
        sum(map(abs, surplus.values())) <= 1
        and next(digits) == next(digits)
        and SequenceMatcher(None, one, other).ratio() >= _ALIKE_ENOUGH
    )


def safe_text(text: str) -> str:
    r"""Text for a terminal: escape sequences and hidden characters become visible.

    Line breaks and tabs stay. Inside JSON text the result is JSON with the same meaning.
    """
    return _COMMANDS.sub(lambda found: json.dumps(found.group())[1:-1], text)


def csv_cell(text: str) -> str:
    """A cell that no spreadsheet takes as a formula: it then begins with an apostrophe."""
    if not text.startswith(_FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text
