"""What changed between two results of one study, and which sites are the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.result.result import Result

# What is compared.
KINDS = ("verdict", "total effect", "direct edge")


@dataclass(frozen=True)
class Answer:
    """What a result says of one ordered pair: a verdict, with its probability or size."""

    says: str
    number: float
    standard_error: float | None = None


@dataclass(frozen=True)
class Change:
    """Another answer about an ordered pair.

    `what` is one of `KINDS`; `before` or `after` is None where an effect or an edge is not clear.
    `because` names the sites that joined, left or changed and have both labels; it is empty if the
    answer changed through other pairs.
    """

    what: str
    ancestor: str
    descendant: str
    before: Answer | None
    after: Answer | None
    because: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """What differs between two results.

    Clients `joined`, `left`, or `changed` what they sent; with `knowledge`, something else is known
    before the data.
    """

    joined: tuple[str, ...]
    left: tuple[str, ...]
    changed: tuple[str, ...]
    new_labels: tuple[str, ...]
    lost_labels: tuple[str, ...]
    knowledge: bool
    changes: tuple[Change, ...]

    def of(self, what: str) -> list[Change]:
        """The changes of one of `KINDS`."""
        return [change for change in self.changes if change.what == what]

    @property
    def news(self) -> str:
        """The summary and the first verdicts that changed, for a result that goes on from one."""
        told = few(
            (f"{v.ancestor} → {v.descendant} was “{v.before.says}” and is “{v.after.says}” now"
            for v in self.of("verdict") if v.before and v.after),
            3,
        )  # fmt: skip
        return f"Since last time: {self.summary}{f' ({told})' if told else ''}."

    @property
    def summary(self) -> str:
        """One sentence."""
        sites = {"joined": self.joined, "left": self.left, "changed": self.changed}
        words = [f"{few(names)} {verb}" for verb, names in sites.items() if names]
        words += ["what you said changed"] if self.knowledge else []
        *most, last = (pluralise(len(self.of(what)), what) for what in KINDS)
        counts = f"{', '.join(most)} and {last}"
        return f"{'; '.join(words) or 'the clients are the same'}: {counts} changed"


def difference(old: Result, new: Result) -> Difference:
    """What changed from one result to another, on the labels that both have.

    Total effects are compared whose 95 % interval excludes zero, and direct edges that are decided.
    They changed if they came, went, or have another size by more than the earlier standard error;
    signs are not compared, because a label may count as growing in another direction now.

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
    one, two = old.order, new.order
    said, again = (dict(_answers(result)) for result in (old, new))
    changes = []
    for key in sorted(said | again, key=lambda key: (KINDS.index(key[0]), *key[1:])):
        pair, was, now = {*key[1:]}, said.get(key), again.get(key)
        if pair <= {*one.labels} & {*two.labels} and _differ(was, now):
            because = tuple(name for name, labels in moved.items() if labels >= pair)
            changes.append(Change(*key, was, now, because))
    return Difference(
        joined=tuple(sorted(joined)),
        left=tuple(sorted(left)),
        changed=tuple(sorted(changed)),
        new_labels=tuple(x for x in two.labels if x not in one.labels),
        lost_labels=tuple(x for x in one.labels if x not in two.labels),
        knowledge=one.options.knowledge != two.options.knowledge,
        changes=tuple(changes),
    )


def _differ(was: Answer | None, now: Answer | None) -> bool:
    """Is it another answer, or a size that moved by more than its earlier error?"""
    if was is None or now is None or was.says != now.says:
        return True
    error = was.standard_error
    return error is not None and abs(abs(now.number) - abs(was.number)) > error


def _answers(result: Result) -> Iterator[tuple[tuple[str, str, str], Answer]]:
    """What a result says: of every pair its verdict, and effects and edges that are clear."""
    order = result.order
    for a, d in permutations(order.labels, 2):
        yield ("verdict", a, d), Answer(str(order.verdict(a, d)), order.probability(a, d))
    for row in result.effects.to_dict("records"):
        if row["low"] * row["high"] > 0:
            key = "total effect", row["cause"], row["effect"]
            yield key, Answer("clear", row["total"], row["standard_error"])
    for a, d, edge in result.graph.edges(data=True):
        if edge["verdict"] == "direct":
            yield ("direct edge", a, d), Answer("direct", edge["weight"], edge["standard_error"])
