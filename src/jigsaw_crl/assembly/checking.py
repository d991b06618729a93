"""Is a certificate right? Every step and every number is checked against the fragments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from jigsaw_crl.assembly.certificate import Certificate, Fact, Step
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.order import GlobalOrder, Method, Options
from jigsaw_crl.assembly.verdict import Verdict
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["CertificateChecker", "check_certificate"]

_HOLDS = {Verdict.ANCESTOR: True, Verdict.NOT_ANCESTOR: False}
# Numbers of a certificate are rounded to six decimals or not at all.
ROUNDING = 1e-5


def check_certificate(
    certificate: Certificate,
    fragments: Iterable[Fragment],
    knowledge: Knowledge = NOTHING,
) -> str:
    """What is wrong with a certificate; the empty string if nothing is.

    Each step must follow from earlier ones or from what the fragments or the user say. Verdict,
    probability, reason, bound, effect and the client it rests on are compared with a new assembly
    of the fragments with the same seed.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from jigsaw_crl import Fragment, PartialOrder, Verdict, assemble
    >>> from jigsaw_crl.assembly import check_certificate
    >>> from jigsaw_crl.fragment.fragment import Statements
    >>> blocks = (frozenset(["pump"]), frozenset(["valve"]))
    >>> lab = Fragment("lab-1", "null-cone", ("pump", "valve"), blocks,
    ...                PartialOrder.from_pairs(blocks, [blocks]), blocks,
    ...                statements=Statements(np.array([[0, 1], [0, 0]])))
    >>> certificate = assemble([lab]).explain("pump", "valve")
    >>> check_certificate(certificate, [lab])
    ''
    >>> check_certificate(replace(certificate, verdict=Verdict.NOT_ANCESTOR), [lab])
    'the last step does not say what the verdict says'
    """
    return CertificateChecker(fragments, knowledge).check(certificate)


class CertificateChecker:
    """Checks many certificates of one set of fragments, which are assembled at most once.

    Parameters
    ----------
    fragments : iterable of Fragment
    knowledge : Knowledge
        What the user said.
    """

    def __init__(
        self,
        fragments: Iterable[Fragment],
        knowledge: Knowledge = NOTHING,
    ) -> None:
        self.knowledge = knowledge
        self.fragments = {f.client: f for f in fragments}
        self._orders: dict[Options, GlobalOrder] = {}

    def check(self, certificate: Certificate) -> str:
        """What is wrong with the certificate; empty if nothing is."""
        known = {label for fragment in self.fragments.values() for label in fragment.labels}
        named = {certificate.ancestor, certificate.descendant}
        named |= {x for step in certificate.steps for x in (step.fact.subject, step.fact.object)}
        if not named <= known:
            return f"no fragment has {', '.join(sorted(named - known))}"
        order = self._order(certificate)
        if order.mode != certificate.mode:
            return f"the fragments are assembled by {order.mode}, not by {certificate.mode}"
        for number, step in enumerate(certificate.steps):
            if not all(0 <= i < number for i in step.because):
                return f"step {number + 1} refers to a later step"
            premises = [certificate.steps[i].fact for i in step.because]
            if not self._follows(step, premises, order):
                return f"step {number + 1} does not follow: {step.fact}"
        holds = _HOLDS.get(certificate.verdict)
        if holds is not None:
            wanted = Fact(certificate.ancestor, certificate.descendant, holds)
            if not certificate.steps or certificate.steps[-1].fact != wanted:
                return "the last step does not say what the verdict says"
        again = asdict(order.explain(certificate.ancestor, certificate.descendant))
        given = asdict(certificate)
        # Another proof of the same fact is as good.
        for name in given.keys() - {"steps"}:
            if not _alike(given[name], again[name]):
                return f"the fragments give another {name.replace('_', ' ')}"
        return ""

    def _order(self, certificate: Certificate) -> GlobalOrder:
        method: Method = "paper" if certificate.mode == "paper" else "null-cone"
        options = Options(method, certificate.seed, certificate.smallest_effect, self.knowledge)
        if options not in self._orders:
            self._orders[options] = conclude(self.fragments.values(), options=options).order
        return self._orders[options]

    def _follows(self, step: Step, premises: Sequence[Fact], order: GlobalOrder) -> bool:
        fact = step.fact
        if step.rule == "chain":
            return _chained(fact, premises)
        if step.rule == "excluded":
            return not fact.holds and _excluded(fact, set(premises))
        if step.rule == "one-of":
            fragment = self.fragments.get(step.client)
            return fragment is not None and _one_of(step, set(premises), fragment)
        return _said(step, order)


def _said(step: Step, order: GlobalOrder) -> bool:
    """Are the clients that the step names exactly those that state its fact, and as firmly?"""
    fact = step.fact
    a, d = order.indices(fact.subject, fact.object)
    if step.rule == "algorithm-3":
        return order.verdict(fact.subject, fact.object) is Verdict.ANCESTOR
    yes, no = order.said.sides(a, d)
    supporting, contradicting = (yes, no) if fact.holds else (no, yes)
    if step.rule == "known":
        return (supporting, contradicting) == (step.supporting, step.contradicting) and bool(
            order.panel.known[a, d] == fact.holds
        )
    if step.rule == "stated":
        return bool(supporting) and supporting == step.supporting
    if step.rule == "small":
        size = order.smallest_effect
        if fact.holds or size is None or not order.table.bounds.value[a, d] <= size:
            return False
    named = (supporting, contradicting) == (step.supporting, step.contradicting)
    return named and _alike(step.log_bayes_factor, float(order.evidence[a, d]))


def _alike(given: Any, other: Any) -> bool:
    """Are two values equal, numbers up to rounding?"""
    if isinstance(given, float) and isinstance(other, float):
        return given == other or abs(given - other) < ROUNDING
    if isinstance(given, dict) and isinstance(other, dict):
        return given.keys() == other.keys() and all(_alike(given[k], other[k]) for k in given)
    return bool(given == other)


def _chained(fact: Fact, premises: Sequence[Fact]) -> bool:
    """Do the premises lead from the fact's subject to its object?"""
    ends = [(f.subject, f.object) for f in premises if f.holds]
    joined = len(ends) == len(premises) > 0 and all(x[1] == y[0] for x, y in pairwise(ends))
    return fact.holds and joined and (ends[0][0], ends[-1][1]) == (fact.subject, fact.object)


def _one_of(step: Step, known: set[Fact], fragment: Fragment) -> bool:
    """Does the client state these candidates, each refuted, or equal to or below the subject?"""
    fact, stated = step.fact, fragment.statements
    if stated is None or (frozenset(step.about), fact.object) not in stated.one_of:
        return False
    return fact.holds and all(
        c == fact.subject
        or Fact(c, fact.object, False) in known
        or Fact(fact.subject, c, True) in known
        for c in step.about
    )


def _excluded(fact: Fact, known: set[Fact]) -> bool:
    """Would "subject is an ancestor of object" directly contradict the premises?"""
    above = {fact.subject} | {f.subject for f in known if f.holds and f.object == fact.subject}
    below = {fact.object} | {f.object for f in known if f.holds and f.subject == fact.object}
    return any(
        u == v or Fact(u, v, False) in known or Fact(v, u, True) in known
        for u in above
        for v in below
    )
