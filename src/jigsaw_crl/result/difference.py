"""What changed between two results of one study, and which sites are the reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations

import networkx as nx
import numpy as np

from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.result.result import Result

__all__ = ["Changed", "ChangedEffect", "Difference", "difference"]


@dataclass(frozen=True)
class Changed:
    """Another verdict on a pair.

    `because` names the sites that joined, left or changed and have both labels; it is empty if the
    verdict changed through other pairs.
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

    Clients `joined`, `left`, or `changed` what they sent; with `knowledge`, something else is known
    before the data. Labels that are `turned` count as growing in the other direction than before.
    """

    joined: tuple[str, ...]
    left: tuple[str, ...]
    changed: tuple[str, ...]
    new_labels: tuple[str, ...]
    lost_labels: tuple[str, ...]
    knowledge: bool
    verdicts: tuple[Changed, ...]
    effects: tuple[ChangedEffect, ...]
    turned: tuple[str, ...] = ()

    @property
    def news(self) -> str:
        """The summary and the first verdicts that changed, for a result that goes on from one."""
        told = few(
            (f"whether {v.ancestor} is an ancestor of {v.descendant}: {v.before}, now {v.after}"
            for v in self.verdicts),
            3,
        )  # fmt: skip
        return f"Since last time: {self.summary}{f' ({told})' if told else ''}."

    @property
    def summary(self) -> str:
        """One sentence."""
        sites = {"joined": self.joined, "left": self.left, "changed": self.changed}
        words = [f"{few(names)} {verb}" for verb, names in sites.items() if names]
        words += ["what you said changed"] if self.knowledge else []
        verdicts, effects = len(self.verdicts), len(self.effects)
        counts = f"{pluralise(verdicts, 'verdict')} and {pluralise(effects, 'effect')}"
        return f"{'; '.join(words) or 'the clients are the same'}: {counts} changed"


def difference(old: Result, new: Result) -> Difference:
    """What changed from one result to another, on the labels that both have.

    Effects changed that came or went and are not zero, or that moved by more than an earlier
    standard error. Earlier effects are given in the directions of the new result.

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
    joined, left = set(after) - set(before), set(before) - set(after)
    changed = {x for x in set(before) & set(after) if before[x].to_json() != after[x].to_json()}
    moved = {
        name: {x for sites in (before, after) if name in sites for x in sites[name].labels}
        for name in sorted(joined | left | changed)
    }

    def because(pair: tuple[str, str]) -> tuple[str, ...]:
        return tuple(name for name, labels in moved.items() if labels >= set(pair))

    one, two = old.order, new.order
    common = [label for label in two.labels if label in one.labels]
    verdicts, effects = [], []
    for pair in permutations(common, 2):
        said, again = str(one.verdict(*pair)), str(two.verdict(*pair))
        if said != again:
            p, q = (round(order.probability(*pair), 3) for order in (one, two))
            verdicts.append(Changed(*pair, said, again, p, q, because(pair)))
    tables = [r.effects.set_index(["cause", "effect"]) for r in (old, new)]
    both = tables[0].join(tables[1], how="outer", lsuffix="_before", rsuffix="_after", sort=True)
    columns = both.total_before, both.total_after, both.standard_error_before
    known = [both[f"low_{when}"] * both[f"high_{when}"] > 0 for when in ("before", "after")]
    products = (both.total_before * both.total_after)[known[0] & known[1]]
    turned = _turned(dict(zip(products.index, np.sign(products), strict=True)))
    clear = known[0] | known[1]
    for (a, d), was, now, error, seen in zip(both.index, *columns, clear, strict=True):
        was = -was if (a in turned) != (d in turned) else was
        other = abs(now - was) > error or (seen and np.isnan(was) != np.isnan(now))
        if other and {a, d} <= set(common):
            first, second = (None if np.isnan(x) else round(float(x), 3) for x in (was, now))
            effects.append(ChangedEffect(a, d, first, second, because((a, d))))
    return Difference(
        joined=tuple(sorted(joined)),
        left=tuple(sorted(left)),
        changed=tuple(sorted(changed)),
        new_labels=tuple(x for x in two.labels if x not in one.labels),
        lost_labels=tuple(x for x in one.labels if x not in two.labels),
        knowledge=one.options.knowledge != two.options.knowledge,
        verdicts=tuple(verdicts),
        effects=tuple(effects),
        turned=tuple(sorted(turned)),
    )


def _turned(signs: Mapping[tuple[str, str], float]) -> set[str]:
    """Labels that count as growing in the other direction than before.

    `signs` are −1 for effects that have the other sign now, else 1. Of labels that effects join,
    the smaller part was turned.
    """
    graph: nx.Graph[str] = nx.Graph()
    for (a, d), sign in signs.items():
        graph.add_edge(a, d, sign=sign)
    found = set[str]()
    for part in nx.connected_components(graph):
        way = {min(part): 1.0}
        for a, d in nx.bfs_edges(graph, min(part)):
            way[d] = way[a] * graph[a][d]["sign"]
        sides = [{x for x in way if way[x] == side} for side in (1.0, -1.0)]
        found |= min(sides, key=len)
    return found
