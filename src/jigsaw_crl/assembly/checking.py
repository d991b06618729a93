"""Is a certificate right? Every step is checked against the fragments, and the verdict with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from jigsaw_crl.assembly.certificate import Certificate, Fact, Step
from jigsaw_crl.assembly.global_order import GlobalOrder
from jigsaw_crl.assembly.reading import read_fragments
from jigsaw_crl.assembly.verdict import CERTAIN_NO, CERTAIN_YES, Verdict
from jigsaw_crl.fragment import Fragment

__all__ = ["CertificateChecker", "check_certificate"]

_HOLDS = {Verdict.ANCESTOR: True, Verdict.NOT_ANCESTOR: False}


def check_certificate(certificate: Certificate, fragments: Iterable[Fragment]) -> str:
    """What is wrong with a certificate; the empty string when nothing is.

    A proof from certain statements is followed step by step and needs nothing but the fragments.
    A verdict by evidence also rests on a posterior, which is computed again with the same seed.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from jigsaw_crl import Fragment, PartialOrder, Verdict, assemble
    >>> from jigsaw_crl.assembly import check_certificate
    >>> from jigsaw_crl.fragment import Statements
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
    """Checks many certificates of one set of fragments; a posterior is computed at most once.

    Parameters
    ----------
    fragments : iterable of Fragment
    """

    def __init__(self, fragments: Iterable[Fragment]) -> None:
        self.fragments = tuple(fragments)
        self._by_client = {f.client: f for f in self.fragments}
        self._panel = read_fragments(self.fragments)
        self._orders: dict[tuple[str, int, bool], GlobalOrder] = {}

    def check(self, certificate: Certificate) -> str:
        """What is wrong with the certificate; empty when nothing is."""
        for number, step in enumerate(certificate.steps):
            if not all(0 <= i < number for i in step.because):
                return f"step {number + 1} leans on a later step"
            premises = [certificate.steps[i].fact for i in step.because]
            if not self._follows(step, premises, certificate):
                return f"step {number + 1} does not follow: {step.fact}"
        holds = _HOLDS.get(certificate.verdict)
        if holds is not None:
            wanted = Fact("ancestor", certificate.ancestor, certificate.descendant, holds)
            if not certificate.steps or certificate.steps[-1].fact != wanted:
                return "the last step does not say what the verdict says"
            if certificate.mode == "exact":
                return ""
        return self._by_assembly(certificate)

    def _by_assembly(self, certificate: Certificate) -> str:
        """Assemble again, and compare what no proof can show."""
        order = self._order(certificate)
        a, d = certificate.ancestor, certificate.descendant
        if order.mode != certificate.mode or order.verdict(a, d) != certificate.verdict:
            return "the fragments give another verdict"
        if order.explain(a, d).reason != certificate.reason:
            return "the fragments give another reason"
        if certificate.mode == "evidence":
            p = certificate.probability
            if p is None or abs(p - order.probability(a, d)) > 1e-9:
                return "the fragments give another probability"
            if (certificate.verdict is Verdict.ANCESTOR and p <= CERTAIN_YES) or (
                certificate.verdict is Verdict.NOT_ANCESTOR and p >= CERTAIN_NO
            ):
                return "the probability does not reach the threshold of the verdict"
        return ""

    def _order(self, certificate: Certificate) -> GlobalOrder:
        from jigsaw_crl.assembly.combine import assemble

        key = (certificate.mode, certificate.seed, certificate.closed_world)
        if key not in self._orders:
            self._orders[key] = assemble(
                self.fragments,
                method="paper" if certificate.mode == "paper" else "evidence",
                seed=certificate.seed,
                closed_world=certificate.closed_world,
            )
        return self._orders[key]

    # -- one step -------------------------------------------------------------------------------

    def _follows(self, step: Step, premises: Sequence[Fact], certificate: Certificate) -> bool:
        fact = step.fact
        known = set(premises)
        if step.rule in ("stated", "weighed", "posterior", "algorithm-3"):
            return self._said(step, certificate)
        if step.rule == "chain":
            ends = [(f.subject, f.object) for f in premises]
            joined = all(x[1] == y[0] for x, y in pairwise(ends))
            good = all(f.kind == "ancestor" and f.holds for f in premises)
            return (
                bool(ends)
                and fact.holds
                and good
                and joined
                and ((ends[0][0], ends[-1][1]) == (fact.subject, fact.object))
            )
        if step.rule == "excluded":
            return not fact.holds and _excluded(fact, known)
        if step.client not in self._by_client:
            return False
        fragment = self._by_client[step.client]
        if step.rule == "one-of":
            stated = fragment.statements
            return (
                fact.holds
                and stated is not None
                and (frozenset(step.about), fact.object) in stated.one_of
                and all(
                    c == fact.subject
                    or _ancestor(c, fact.object, False) in known
                    or _ancestor(fact.subject, c, True) in known
                    for c in step.about
                )
            )
        return self._across_hidden(step, known, fragment, certificate)

    def _said(self, step: Step, certificate: Certificate) -> bool:
        """Do the named clients say it, and all of them?"""
        fact = step.fact
        if certificate.mode == "paper":
            order = self._order(certificate)
            return order.verdict(fact.subject, fact.object) is Verdict.ANCESTOR
        a, d = self._panel.position[fact.subject], self._panel.position[fact.object]
        stances = self._panel.stances(a, d)
        sign = 1 if fact.holds else -1
        supporting = tuple(c.client for c, stance in stances if stance == sign)
        if supporting != step.supporting or (step.rule == "stated" and not supporting):
            return False
        if step.rule == "stated":
            return True
        contradicting = tuple(c.client for c, stance in stances if stance == -sign)
        net = float(self._order(certificate).evidence[a, d])
        return (
            contradicting == step.contradicting
            and step.log_odds is not None
            and abs(net - step.log_odds) < 1e-5
        )

    def _across_hidden(
        self, step: Step, known: set[Fact], fragment: Fragment, certificate: Certificate
    ) -> bool:
        stated, fact, client = fragment.statements, step.fact, step.client
        if stated is None or stated.spouses is None:
            return False
        observed = set(fragment.labels)
        m, x = fact.subject, fact.object

        def reaches(s: str, o: str, holds: bool) -> bool:
            return Fact("reaches", s, o, holds, client) in known

        def barred(s: str, o: str) -> bool:
            return reaches(s, o, False) or _ancestor(s, o, False) in known

        def no_way(s: str, e: str, but: str = "") -> bool:
            return all(
                o in (e, but) or barred(s, o) or _ancestor(o, e, False) in known for o in observed
            )

        rule, about, is_reach = step.rule, step.about, fact.kind == "reaches"
        if is_reach and (m in observed or fact.client != client):
            return False
        if rule == "reach":
            return not is_reach and fact.holds and m not in observed and reaches(m, x, True)
        if rule == "no-ancestor":
            return is_reach and not fact.holds and _ancestor(m, x, False) in known
        if rule == "unblocked":
            return is_reach and fact.holds and _ancestor(m, x, True) in known and no_way(m, x)
        if rule == "blocked":
            return not is_reach and not fact.holds and reaches(m, x, False) and no_way(m, x)
        if rule == "separate":
            i = about[0]
            apart = {i, x} <= observed and i != x and frozenset((i, x)) not in stated.spouses
            return is_reach and not fact.holds and apart and reaches(m, i, True)
        if rule == "passage":
            source, passed, end = (m, x, about[0]) if is_reach else (about[0], m, x)
            return (
                fact.holds
                and source not in observed
                and passed in observed
                and reaches(source, end, False)
                and _ancestor(source, end, True) in known
                and no_way(source, end, passed)
            )
        if rule == "compose":
            y = about[0]
            if fact.holds:
                return (
                    is_reach and y not in observed and reaches(m, y, True) and reaches(y, x, True)
                )
            # ¬h(m, y), h(x, y) ⇒ ¬h(m, x) with x hidden;   ¬h(y, x), h(y, m) ⇒ ¬h(m, x).
            into = x not in observed and reaches(m, y, False) and reaches(x, y, True)
            onward = y not in observed and reaches(y, x, False) and reaches(y, m, True)
            return is_reach and m != x and (into or onward)
        if rule == "confounder":
            if not certificate.closed_world or frozenset(about) not in stated.spouses:
                return False
            hidden = set(self._panel.labels) - observed
            left = {h for h in hidden if not any(barred(h, i) for i in about)}
            if is_reach:
                return fact.holds and x in about and left <= {m}
            return (
                fact.holds
                and x in about
                and all(h == m or _ancestor(m, h, True) in known for h in left)
            )
        return False


def _ancestor(a: str, d: str, holds: bool) -> Fact:
    return Fact("ancestor", a, d, holds)


def _excluded(fact: Fact, known: set[Fact]) -> bool:
    """Would "subject is an ancestor of object" contradict the premises at once?"""
    above = {fact.subject} | {
        f.subject for f in known if f.holds and f.kind == "ancestor" and f.object == fact.subject
    }
    below = {fact.object} | {
        f.object for f in known if f.holds and f.kind == "ancestor" and f.subject == fact.object
    }
    return any(
        u == v or _ancestor(u, v, False) in known or _ancestor(v, u, True) in known
        for u in above
        for v in below
    )
