"""What changed between two results of one study, and which sites are the reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import permutations
from typing import Any

import numpy as np

from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.result.result import Result

__all__ = ["Changed", "ChangedEffect", "Difference", "difference"]


@dataclass(frozen=True)
class Changed:
    """Another verdict on a pair.

    Parameters
    ----------
    ancestor, descendant : str
    before, after : str
        The verdicts.
    probability_before, probability_after : float
    because : tuple of str
        Sites that joined, left or changed and have both labels; empty if the verdict changed
        through other pairs.
    """

    ancestor: str
    descendant: str
    before: str
    after: str
    probability_before: float
    probability_after: float
    because: tuple[str, ...]


@dataclass(frozen=True)
class ChangedEffect:
    """Another total effect of one label on another; None where there was or is none."""

    cause: str
    effect: str
    before: float | None
    after: float | None
    because: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """What differs between two results.

    Parameters
    ----------
    joined, left, changed : tuple of str
        Sites that are new, that are gone, and that sent another fragment.
    new_labels, lost_labels : tuple of str
    knowledge : bool
        Something else is known before the data.
    verdicts : tuple of Changed
    effects : tuple of ChangedEffect
    """

    joined: tuple[str, ...]
    left: tuple[str, ...]
    changed: tuple[str, ...]
    new_labels: tuple[str, ...]
    lost_labels: tuple[str, ...]
    knowledge: bool
    verdicts: tuple[Changed, ...]
    effects: tuple[ChangedEffect, ...]

    def to_document(self) -> dict[str, Any]:
        """The difference as plain JSON values."""
        return asdict(self)

    @property
    def summary(self) -> str:
        """One sentence."""
        words = [
            f"{few(names)} {verb}"
            for names, verb in (
                (self.joined, "joined"),
                (self.left, "left"),
                (self.changed, "changed"),
            )
            if names
        ]
        words += ["what you said changed"] if self.knowledge else []
        verdicts, effects = len(self.verdicts), len(self.effects)
        counts = f"{pluralise(verdicts, 'verdict')} and {pluralise(effects, 'effect')}"
        return f"{'; '.join(words) or 'the sites are the same'}: {counts} changed"


def difference(old: Result, new: Result) -> Difference:
    """What changed from one result to another, on the labels that both have.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.result.difference import difference
    >>> first, *others = jc.simulate.setting("A", 0).clients()
    >>> part = jc.recover(others)
    >>> difference(part, part.add(first)).joined
    ('client-1',)
    """
    before, after = ({f.client: f for f in r.order.fragments} for r in (old, new))
    joined = tuple(name for name in after if name not in before)
    left = tuple(name for name in before if name not in after)
    other = tuple(
        name for name in after if name in before and after[name].to_json() != before[name].to_json()
    )
    moved = {
        name: {x for sites in (before, after) if name in sites for x in sites[name].labels}
        for name in (*joined, *left, *other)
    }

    def because(pair: tuple[str, str]) -> tuple[str, ...]:
        return tuple(name for name, labels in moved.items() if labels >= set(pair))

    one, two = old.order, new.order
    common = [label for label in two.labels if label in one.labels]
    pairs = [p for p in permutations(common, 2) if one.verdict(*p) is not two.verdict(*p)]
    return Difference(
        joined=joined,
        left=left,
        changed=other,
        new_labels=tuple(x for x in two.labels if x not in one.labels),
        lost_labels=tuple(x for x in one.labels if x not in two.labels),
        knowledge=one.options.knowledge != two.options.knowledge,
        verdicts=tuple(
            Changed(
                *pair,
                before=str(one.verdict(*pair)),
                after=str(two.verdict(*pair)),
                probability_before=round(one.probability(*pair), 3),
                probability_after=round(two.probability(*pair), 3),
                because=because(pair),
            )
            for pair in pairs
        ),
        effects=tuple(
            ChangedEffect(*pair, *values, because(pair))
            for pair, values in _changed_effects(old, new).items()
            if {*pair} <= {*common}
        ),
    )


def _changed_effects(
    old: Result, new: Result
) -> dict[tuple[str, str], tuple[float | None, float | None]]:
    """Effects that came, went, or moved by more than an earlier standard error."""
    tables = [r.effects.set_index(["cause", "effect"]) for r in (old, new)]
    both = tables[0].join(tables[1], how="outer", lsuffix="_before", rsuffix="_after", sort=True)
    found: dict[tuple[str, str], tuple[float | None, float | None]] = {}
    columns = both.total_before, both.total_after, both.standard_error_before
    for pair, before, after, error in zip(both.index, *columns, strict=True):
        if abs(after - before) > error or np.isnan(before) != np.isnan(after):
            values = [None if np.isnan(x) else round(float(x), 3) for x in (before, after)]
            found[pair] = values[0], values[1]
    return found
