"""What the user knows about the order before any data: tiers, ancestors, and labels that are none.

    tiers         nothing acts on a label of an earlier tier
    ancestor      one label is an ancestor of another
    not_ancestor  one label is no ancestor of another

It is taken as certain. Labels are compared as everywhere (`label_key`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.labels import label_key, normal_label
from jigsaw_crl.base.order import refuted, transitive_closure
from jigsaw_crl.base.text import did_you_mean, few

# Characters of a wrong value that an error quotes.
_QUOTED = 80
_FORM, _TIERS = '["pump -> tank"]', '[["pump"], ["valve", "tank"]]'


@dataclass(frozen=True)
class Knowledge:
    """What is known before the data; it is always part of the order.

    Parameters
    ----------
    tiers : sequence of sequences of str
        Labels by tier, the first causes first: no label is an ancestor of one of an earlier tier.
    ancestor, not_ancestor : sequence of str or of (str, str)
        ``"pump -> tank"`` or ``("pump", "tank")``: pump is an ancestor of tank, or is not.

    Raises
    ------
    InputError
        A value has another form, or what is known contradicts itself.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> known = jc.Knowledge(tiers=[["z1"], ["z5"]], ancestor=["z1 -> z5"])
    >>> world = jc.simulate.setting("A", 0)
    >>> result = jc.recover([world.client(0)], knowledge=known)
    >>> print(result.order.explain("z1", "z5"))
    z1 is an ancestor of z5.
      1. z1 is an ancestor of z5: you said so; client-1 says yes
    """

    tiers: Sequence[Sequence[str]] = ()
    ancestor: Sequence[str | Sequence[str]] = ()
    not_ancestor: Sequence[str | Sequence[str]] = ()

    def __post_init__(self) -> None:
        for name in FIELDS:
            given, form = getattr(self, name), _TIERS if name == "tiers" else _FORM
            if isinstance(given, str) or not isinstance(given, Sequence):
                wrong = f"{name} is {repr(given)[:_QUOTED]}, not a list"
                raise InputError(wrong, f"Write {name} = {form}.")
            object.__setattr__(self, name, tuple(_labels(item, name) for item in given))
        _refuse_contradictions(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Knowledge:
        """The knowledge of a table of `study.toml`, or of a result file."""
        if unknown := [key for key in document if key not in FIELDS]:
            near = did_you_mean(unknown[0], FIELDS)
            raise InputError(
                f"knowledge has an unknown field {unknown[0][:_QUOTED]!r}",
                f"{near} The fields are {', '.join(FIELDS)}.".strip(),
            )
        return cls(**document)

    def to_document(self) -> dict[str, Any]:
        """The knowledge as plain JSON values."""
        return {name: [list(item) for item in getattr(self, name)] for name in FIELDS}

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it names, each once."""
        return tuple(
            dict.fromkeys(x for name in FIELDS for item in getattr(self, name) for x in item)
        )

    def __str__(self) -> str:
        tiers = " | ".join(", ".join(tier) for tier in self.tiers)
        parts = [f"tiers {tiers}"] if tiers else []
        parts += [" -> ".join(pair) for pair in self.ancestor]
        parts += ["not " + " -> ".join(pair) for pair in self.not_ancestor]
        return "; ".join(parts)

    def __bool__(self) -> bool:
        return bool(self.labels)

    def check(self, labels: Iterable[str]) -> None:
        """Refuse labels that no client has."""
        known = list(labels)
        keys = set(map(label_key, known))
        if strangers := [label for label in self.labels if label_key(label) not in keys]:
            near = did_you_mean(strangers[0], known)
            raise InputError(
                f"knowledge names labels that no client has: {few(map(repr, strangers))}",
                f"The labels are {few(known)}. {near}".strip(),
            )

    def facts(self, labels: Sequence[str]) -> tuple[BoolArray, BoolArray]:
        """Pairs that are said to be ancestors, and to be none, shape (p, p) each.

        If a label that it names is missing, what follows through this label is said as well.
        """
        own = self.labels
        position = {label_key(label): i for i, label in enumerate(labels)}
        at = np.array([position.get(label_key(label), -1) for label in own], dtype=np.intp)
        here = np.flatnonzero(at >= 0)
        yes, no = _said(self)
        if len(here) < len(own):
            yes = transitive_closure(yes)
            no = refuted(yes, no)
        out = np.zeros((2, len(labels), len(labels)), dtype=bool)
        for matrix, said in zip(out, (yes, no), strict=True):
            matrix[np.ix_(at[here], at[here])] = said[np.ix_(here, here)]
            np.fill_diagonal(matrix, False)
        return out[0], out[1]


FIELDS = tuple(field.name for field in fields(Knowledge))


def _labels(given: Any, name: str) -> tuple[str, ...]:
    """The labels of a tier, or of a pair."""
    parts, tier = given, name == "tiers"
    if isinstance(given, str):
        parts = [given] if tier else given.replace("→", "->").split("->")
    if isinstance(parts, Sequence) and all(isinstance(x, str) for x in parts):
        labels = tuple(map(normal_label, parts))
        if tier or (len(labels) == 2 and all(labels) and len(set(map(label_key, labels))) == 2):
            return labels
    what = "is not a list of labels" if tier else "names no two labels"
    form = f"Write {name} = {_TIERS if tier else _FORM}."
    raise InputError(f"{name} has {repr(given)[:_QUOTED]}, which {what}", form)


def _said(knowledge: Knowledge) -> tuple[BoolArray, BoolArray]:
    """What is said of the labels that are named, shape (m, m) each."""
    position = {label: i for i, label in enumerate(knowledge.labels)}
    yes, no = np.zeros((2, len(position), len(position)), dtype=bool)
    for matrix, pairs in ((yes, knowledge.ancestor), (no, knowledge.not_ancestor)):
        for pair in pairs:
            matrix[position[pair[0]], position[pair[1]]] = True
    tiers = [[position[label] for label in tier] for tier in knowledge.tiers]
    for number, tier in enumerate(tiers):
        for earlier in tiers[:number]:
            no[np.ix_(tier, earlier)] = True
    return yes, no


def _refuse_contradictions(knowledge: Knowledge) -> None:
    """Refuse two spellings of one label, two tiers of one label, and what no order can be."""
    labels, spelt = knowledge.labels, dict[str, str]()
    for label in labels:
        if spelt.setdefault(label_key(label), label) != label:
            wrong = f"knowledge spells one label {spelt[label_key(label)]!r} and {label!r}"
            raise InputError(wrong, "Spell it one way.")
    placed = [label for tier in knowledge.tiers for label in tier]
    twice = next((label for label in placed if placed.count(label) > 1), None)
    if twice is not None:
        raise InputError(f"knowledge has {twice!r} in two tiers", "Leave it in one of them.")
    yes, no = _said(knowledge)
    above = transitive_closure(yes)
    if (loop := np.flatnonzero(np.diagonal(above))).size:
        names = few(labels[i] for i in loop.tolist())
        wrong = f"knowledge has a cycle of ancestors through {names}"
        raise InputError(wrong, "Take one of its pairs out.")
    if len(both := np.argwhere(above & refuted(above, no))):
        a, d = (labels[i] for i in both[0].tolist())
        wrong = f"knowledge contradicts itself: {a!r} is and is not an ancestor of {d!r}"
        raise InputError(wrong, "Correct ancestor, not_ancestor or tiers.")


NOTHING = Knowledge()
"""Nothing is known before the data."""
