"""Is a certificate right? Every step and the verdict are checked against the fragments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from jigsaw_crl.assembly.certificate import Certificate, Fact, Step, sides
from jigsaw_crl.assembly.combine import assemble
from jigsaw_crl.assembly.order import GlobalOrder
from jigsaw_crl.assembly.panel import read_fragments
from jigsaw_crl.assembly.verdict import CERTAIN_NO, CERTAIN_YES, Verdict
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["CertificateChecker", "check_certificate"]

_HOLDS = {Verdict.ANCESTOR: True, Verdict.NOT_ANCESTOR: False}


def check_certificate(certificate: Certificate, fragments: Iterable[Fragment]) -> str:
    """What is wrong with a certificate; the empty string if nothing is.

    A proof from certain statements is checked step by step against the fragments. A verdict by
    evidence also depends on a posterior, which is computed again with the same seed.

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
    return CertificateChecker(fragments).check(certificate)


class CertificateChecker:
    """Checks many certificates of one set of fragments, computing a posterior at most once.

    Parameters
    ----------
    fragments : iterable of Fragment
    """

    def __init__(self, fragments: Iterable[Fragment]) -> None:
        self.fragments = tuple(fragments)
        self._by_client = {f.client: f for f in self.fragments}
        self._panel = read_fragments(self.fragments)
        self._orders: dict[tuple[str, int, float | None], GlobalOrder] = {}

    def check(self, certificate: Certificate) -> str:
        """What is wrong with the certificate; empty if nothing is."""
        named = {certificate.ancestor, certificate.descendant}
        named |= {x for step in certificate.steps for x in (step.fact.subject, step.fact.object)}
        if not named <= self._panel.position.keys():
            return f"no fragment has {', '.join(sorted(named - self._panel.position.keys()))}"
        if certificate.mode == "exact" and not self._panel.all_sure:
            return "the fragments are not all certain"
        for number, step in enumerate(certificate.steps):
            if not all(0 <= i < number for i in step.because):
                return f"step {number + 1} refers to a later step"
            premises = [certificate.steps[i].fact for i in step.because]
            if not self._follows(step, premises, certificate):
                return f"step {number + 1} does not follow: {step.fact}"
        holds = _HOLDS.get(certificate.verdict)
        if holds is not None:
            wanted = Fact(certificate.ancestor, certificate.descendant, holds)
            if not certificate.steps or certificate.steps[-1].fact != wanted:
                return "the last step does not say what the verdict says"
            if certificate.mode == "exact":
                return ""
        return self._by_assembly(certificate)

    def _by_assembly(self, certificate: Certificate) -> str:
        """Compare with a new assembly what no proof can show."""
        order = self._order(certificate)
        a, d = certificate.ancestor, certificate.descendant
        if order.mode != certificate.mode or order.verdict(a, d) != certificate.verdict:
            return "the fragments give another verdict"
        again = order.explain(a, d)
        if again.reason != certificate.reason:
            return "the fragments give another reason"
        if again.bound_unit != certificate.bound_unit or not _alike(
            (again.bound,), (certificate.bound,)
        ):
            return "the fragments give another bound"
        if not _alike(_numbers(again), _numbers(certificate)):
            return "the fragments give another effect"
        if certificate.mode == "evidence":
            p = certificate.probability
            if p is None or abs(p - order.probability(a, d)) > 1e-9:
                return "the fragments give another probability"
            if (certificate.verdict is Verdict.ANCESTOR and p <= CERTAIN_YES) or (
                certificate.verdict is Verdict.NOT_ANCESTOR
                and p >= CERTAIN_NO
                and "small" not in certificate.rules
            ):
                return "the probability does not reach the threshold of the verdict"
        return ""

    def _order(self, certificate: Certificate) -> GlobalOrder:
        smallest = certificate.smallest_effect
        key = (certificate.mode, certificate.seed, smallest)
        if key not in self._orders:
            self._orders[key] = assemble(
                self.fragments,
                method="paper" if certificate.mode == "paper" else "evidence",
                seed=certificate.seed,
                smallest_effect=smallest,
            )
        return self._orders[key]

    # -- one step -------------------------------------------------------------------------------

    def _follows(self, step: Step, premises: Sequence[Fact], certificate: Certificate) -> bool:
        fact = step.fact
        known = set(premises)
        if step.rule == "small" and not self._is_small(fact, certificate):
            return False
        if step.rule in ("stated", "weighed", "posterior", "small", "algorithm-3"):
            return self._said(step, certificate)
        if step.rule == "chain":
            return _chained(fact, premises)
        if step.rule == "excluded":
            return not fact.holds and _excluded(fact, known)
        if step.rule == "one-of" and step.client in self._by_client:
            return _one_of(step, known, self._by_client[step.client])
        return False

    def _is_small(self, fact: Fact, certificate: Certificate) -> bool:
        """Does the bound of the pair's effect lie below the size that matters?"""
        if certificate.smallest_effect is None or fact.holds:
            return False
        bound = self._order(certificate).bound(fact.subject, fact.object)
        return bool(bound <= certificate.smallest_effect)

    def _said(self, step: Step, certificate: Certificate) -> bool:
        """Are the clients that the step names exactly those that state its fact?"""
        fact = step.fact
        if certificate.mode == "paper":
            order = self._order(certificate)
            return order.verdict(fact.subject, fact.object) is Verdict.ANCESTOR
        a, d = self._panel.position[fact.subject], self._panel.position[fact.object]
        supporting, contradicting = sides(self._panel, a, d, fact.holds)
        if supporting != step.supporting or (step.rule == "stated" and not supporting):
            return False
        if step.rule == "stated":
            return True
        net = float(self._order(certificate).evidence[a, d])
        return (
            contradicting == step.contradicting
            and step.log_odds is not None
            and abs(net - step.log_odds) < 1e-5
        )


def _numbers(certificate: Certificate) -> tuple[float | str | None, ...]:
    """The total effect as a row of values."""
    effect = certificate.effect
    if effect is None:
        return (None,)
    size = (effect.total, effect.standard_error, effect.low, effect.high)
    return (*size, effect.sites, *effect.set_aside)


def _alike(given: Sequence[object], other: Sequence[object]) -> bool:
    """Are two rows equal, numbers up to rounding?"""
    return len(given) == len(other) and all(
        abs(x - y) < 1e-9 if isinstance(x, float) and isinstance(y, float) else x == y
        for x, y in zip(given, other, strict=True)
    )


def _ancestor(a: str, d: str, holds: bool) -> Fact:
    return Fact(a, d, holds)


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
        or _ancestor(c, fact.object, False) in known
        or _ancestor(fact.subject, c, True) in known
        for c in step.about
    )


def _excluded(fact: Fact, known: set[Fact]) -> bool:
    """Would "subject is an ancestor of object" directly contradict the premises?"""
    above = {fact.subject} | {f.subject for f in known if f.holds and f.object == fact.subject}
    below = {fact.object} | {f.object for f in known if f.holds and f.subject == fact.object}
    return any(
        u == v or _ancestor(u, v, False) in known or _ancestor(v, u, True) in known
        for u in above
        for v in below
    )
