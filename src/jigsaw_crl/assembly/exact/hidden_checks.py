"""Does a step across hidden nodes follow from its premises? One small function per rule.

The rules are those of `hidden`, checked here against the fragment and the premises alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jigsaw_crl.assembly.certificate import Fact, Step

__all__ = ["Premises", "follows_across_hidden"]


@dataclass(frozen=True)
class Premises:
    """What a step may use.

    Parameters
    ----------
    known : frozenset of Fact
        The facts of the steps it names.
    client : str
    observed : frozenset of str
        The client's labels.
    hidden : frozenset of str
        All other labels.
    spouses : frozenset of frozenset of str
        The client's.
    closed_world : bool
    """

    known: frozenset[Fact]
    client: str
    observed: frozenset[str]
    hidden: frozenset[str]
    spouses: frozenset[frozenset[str]]
    closed_world: bool

    def ancestor(self, a: str, d: str, holds: bool) -> bool:
        return Fact("ancestor", a, d, holds) in self.known

    def reaches(self, m: str, x: str, holds: bool) -> bool:
        return Fact("reaches", m, x, holds, self.client) in self.known

    def barred(self, m: str, x: str) -> bool:
        """m does not reach x."""
        return self.reaches(m, x, False) or self.ancestor(m, x, False)

    def no_way(self, m: str, x: str, but: str = "") -> bool:
        """No observed label, except `but`, can be the first on a path from m to x."""
        return all(
            o in (x, but) or self.barred(m, o) or self.ancestor(o, x, False) for o in self.observed
        )


def follows_across_hidden(step: Step, given: Premises) -> bool:
    """Does the step's fact follow from its premises by the rule it names?"""
    fact = step.fact
    if fact.kind == "reaches" and (
        fact.subject in given.observed or fact.client != given.client or fact.subject == fact.object
    ):
        return False
    check = _CHECKS.get((step.rule, fact.kind, fact.holds))
    return check is not None and check(step, given)


def _reach(step: Step, given: Premises) -> bool:
    m, x = step.fact.subject, step.fact.object
    return m not in given.observed and given.reaches(m, x, True)


def _no_ancestor(step: Step, given: Premises) -> bool:
    return given.ancestor(step.fact.subject, step.fact.object, False)


def _unblocked(step: Step, given: Premises) -> bool:
    m, x = step.fact.subject, step.fact.object
    return given.ancestor(m, x, True) and given.no_way(m, x)


def _blocked(step: Step, given: Premises) -> bool:
    m, x = step.fact.subject, step.fact.object
    return given.reaches(m, x, False) and given.no_way(m, x)


def _separate(step: Step, given: Premises) -> bool:
    i, x = step.about[0], step.fact.object
    apart = {i, x} <= given.observed and i != x and frozenset((i, x)) not in given.spouses
    return apart and given.reaches(step.fact.subject, i, True)


def _passage(step: Step, given: Premises) -> bool:
    if step.fact.kind == "reaches":
        source, passed, end = step.fact.subject, step.fact.object, step.about[0]
    else:
        source, passed, end = step.about[0], step.fact.subject, step.fact.object
    return (
        source not in given.observed
        and passed in given.observed
        and given.reaches(source, end, False)
        and given.ancestor(source, end, True)
        and given.no_way(source, end, passed)
    )


def _compose(step: Step, given: Premises) -> bool:
    m, x, y = step.fact.subject, step.fact.object, step.about[0]
    return y not in given.observed and given.reaches(m, y, True) and given.reaches(y, x, True)


def _not_composed(step: Step, given: Premises) -> bool:
    """¬h(m, y), h(x, y) ⇒ ¬h(m, x) with x hidden;   ¬h(y, x), h(y, m) ⇒ ¬h(m, x)."""
    m, x, y = step.fact.subject, step.fact.object, step.about[0]
    into = x not in given.observed and given.reaches(m, y, False) and given.reaches(x, y, True)
    return into or (given.reaches(y, x, False) and given.reaches(y, m, True))


def _confounder(step: Step, given: Premises) -> bool:
    """All hidden labels that may reach both spouses are the subject (or have it as ancestor)."""
    c, x = step.fact.subject, step.fact.object
    if not given.closed_world or frozenset(step.about) not in given.spouses:
        return False
    left = {h for h in given.hidden if not any(given.barred(h, i) for i in step.about)}
    below = (
        set() if step.fact.kind == "reaches" else {h for h in left if given.ancestor(c, h, True)}
    )
    return x in step.about and left <= below | {c}


_CHECKS: dict[tuple[str, str, bool], Callable[[Step, Premises], bool]] = {
    ("reach", "ancestor", True): _reach,
    ("no-ancestor", "reaches", False): _no_ancestor,
    ("unblocked", "reaches", True): _unblocked,
    ("blocked", "ancestor", False): _blocked,
    ("separate", "reaches", False): _separate,
    ("passage", "ancestor", True): _passage,
    ("passage", "reaches", True): _passage,
    ("compose", "reaches", True): _compose,
    ("compose", "reaches", False): _not_composed,
    ("confounder", "ancestor", True): _confounder,
    ("confounder", "reaches", True): _confounder,
}
