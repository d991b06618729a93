"""Why does a pair have its verdict, and is a certificate of it right?

A verdict has the steps that lead to it from what the clients said: a proof or a path of direct
evidence. Each step names the rule by which its fact follows from earlier ones, so that a reader can
verify it without trusting the assembly. A pair without a verdict has a reason for doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from jigsaw_crl.assembly.bounds import LARGEST_NO, says_nothing, size_in_words
from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.entailment import Fact, NoProof, Prover, Step, say
from jigsaw_crl.assembly.order import GlobalOrder, Method, Options
from jigsaw_crl.assembly.verdict import (
    CERTAIN_NO,
    CERTAIN_YES,
    LEAST_AGAINST,
    LEAST_FOR,
    NO,
    OPEN,
    VERDICTS,
    YES,
    Verdict,
    Why,
)
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.base.text import chance, pluralise, signed
from jigsaw_crl.fragment.fragment import Fragment

__all__ = ["RULES", "Certificate", "TotalEffect", "check_certificate", "explain"]


RULES = {
    "known": "you said so{who}",
    "stated": "stated by {who}",
    "weighed": "log Bayes factor {factor:+.1f}{who}{excludes}",
    "chain": "by {because}",
    "excluded": "the opposite would contradict {because}",
    "one-of": (
        "{client} states that one of {about} is an ancestor of {object}; with {because}, each of "
        "them implies this"
    ),
    "small": "{bound} are excluded (95 %), and smaller ones do not matter (smallest_effect)",
    "posterior": (
        "no single statement implies it; {subject} is an ancestor of {object} in {share} of the "
        "sampled orders"
    ),
    "algorithm-3": "by Algorithm 3",
}


@dataclass(frozen=True)
class TotalEffect:
    """The effect of one label on another, of all sites together, and its 95 % interval.

    Parameters
    ----------
    kind : str
        "total effect", or where the system is not linear "average effect at this dose".
    total, standard_error, low, high : float
        In standard deviations of both labels in the control; at a dose, of the affected one.
    sites : int
        Sites that the estimate rests on.
    set_aside : tuple of str
        Sites that stand apart from the others and do not count.
    """

    kind: str
    total: float
    standard_error: float
    low: float
    high: float
    sites: int
    set_aside: tuple[str, ...] = ()

    def __str__(self) -> str:
        aside = f"; set aside: {', '.join(self.set_aside)}" if self.set_aside else ""
        return (
            f"{signed(self.total)} standard deviations (95 % interval {signed(self.low)} to "
            f"{signed(self.high)}), from {pluralise(self.sites, 'client')}{aside}"
        )


@dataclass(frozen=True)
class Certificate:
    """Why the verdict on one ordered pair is what it is.

    Parameters
    ----------
    ancestor, descendant : str
        The question: is the first an ancestor of the second?
    verdict : Verdict
    probability : float or None
        That the first is an ancestor of the second; None for undetermined pairs of exact mode and
        for Algorithm 3.
    steps : tuple of Step
        The last one is the verdict; empty when it is undetermined.
    reason : str
        Why the pair is undetermined; empty for other verdicts.
    mode : str
    seed : int
    smallest_effect : float or None
        The size of effect that matters, if the user named one.
    bound : float or None
        The size of effect that the data exclude with 95 %; None where no client measured the pair,
        for ancestors, and for exact statements.
    bound_unit : str
        "standard deviations" or "share of the change"; empty without a bound.
    effect : TotalEffect or None
        None without hard interventions on both labels, and where the verdict is "not ancestor".
    rests_on : str
        The client without which the others would not decide the pair; empty if there is none.
    asked : int, "fifth" or None
        How many clients a verdict must rest on.
    witnesses : int
        Size of the smallest group of clients without which the others would not decide the pair; 0
        if a fifth of the clients is too few for that.
    contested : bool
        Clients that speak against the verdict would decide the opposite among themselves.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> print(order.explain("z1", "z2"))
    z1 is an ancestor of z2.
      1. z1 is an ancestor of z2: stated by client-1, client-2
    """

    ancestor: str
    descendant: str
    verdict: Verdict
    probability: float | None
    steps: tuple[Step, ...]
    reason: str
    mode: str
    seed: int = 0
    smallest_effect: float | None = None
    bound: float | None = None
    bound_unit: str = ""
    effect: TotalEffect | None = None
    rests_on: str = ""
    witnesses: int = 0
    asked: int | Literal["fifth"] | None = None
    contested: bool = False

    @property
    def rules(self) -> frozenset[str]:
        """The rules it uses."""
        return frozenset(step.rule for step in self.steps)

    @property
    def excluded(self) -> str:
        """The effects that the data exclude, in words; empty if they exclude none."""
        if self.bound is None or says_nothing(self.bound, self.bound_unit):
            return ""
        return self._above

    @property
    def _above(self) -> str:
        size = 0.0 if self.bound is None else self.bound
        return f"effects above {size_in_words(size, self.bound_unit, self.descendant)}"

    def __str__(self) -> str:
        head = str(Fact(self.ancestor, self.descendant, self.verdict is not Verdict.NOT_ANCESTOR))
        if self.verdict is Verdict.UNDETERMINED:
            head = f"Whether {head} is undetermined"
        if self.mode == "evidence" and self.probability is not None:
            so = "" if self.verdict is Verdict.ANCESTOR else " that it is"
            head += f" (probability{so} {chance(self.probability)})"
        if self.reason:
            head += f": {self.reason}"
        lines = [f"{head}."]
        for number, step in enumerate(self.steps, start=1):
            lines.append(f"  {number}. {step.fact}: {self._why(step)}")
        if self.effect is not None:
            what = self.effect.kind.capitalize()
            lines.append(f"  {what} of {self.ancestor} on {self.descendant}: {self.effect}.")
        if self.verdict is Verdict.NOT_ANCESTOR and self.excluded and "small" not in self.rules:
            lines.append(f"  E{self.excluded[1:]} are excluded (95 %).")
        if self.rests_on:
            lines.append(f"  It rests on {self.rests_on}: without it, the others do not decide it.")
        elif self.witnesses > 1:
            lines.append(
                f"  It rests on {self.witnesses} clients: without so many, the others might not "
                "decide it."
            )
        if self.contested:
            lines.append(
                "  It is contested: the clients that say the opposite would decide so among "
                "themselves."
            )
        return "\n".join(lines)

    def _why(self, step: Step) -> str:
        if step.rule in ("known", "weighed"):
            words = ("yes", "no") if step.fact.holds else ("no", "yes")
            both = zip((step.supporting, step.contradicting), words, strict=True)
            who = "".join(f"; {say(names, word)}" for names, word in both if names)
        else:
            who = ", ".join(step.supporting)
        numbers = [str(i + 1) for i in step.because]
        return RULES[step.rule].format(
            who=who,
            because=f"step{'s' if len(numbers) > 1 else ''} {_and(numbers)}",
            client=step.client,
            about=_and(step.about),
            subject=step.fact.subject,
            object=step.fact.object,
            factor=0.0 if step.log_bayes_factor is None else step.log_bayes_factor,
            # That of the verdict itself stands at the end.
            excludes="" if step is self.steps[-1] else step.excludes,
            bound=self._above,
            share="" if self.probability is None else f"{100 * self.probability:.0f} %",
        )


def _and(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([part for part in (", ".join(names[:-1]), *names[-1:]) if part])


def explain(order: GlobalOrder, a: int, d: int) -> Certificate:
    """The certificate of one ordered pair of positions."""
    table, said = order.table, int(order.verdicts[a, d])
    # Exact mode gives none to undetermined pairs, and Algorithm 3 none at all.
    given = order.mode == "evidence" or (order.mode == "exact" and said != OPEN)
    bound = np.nan if said == YES else float(table.bounds.value[a, d])
    return Certificate(
        ancestor=order.labels[a],
        descendant=order.labels[d],
        verdict=VERDICTS[said],
        probability=float(order.probabilities[a, d]) if given else None,
        steps=() if said == OPEN else _steps(order, a, d, said == YES),
        reason=_why_undetermined(order, a, d) if said == OPEN else "",
        mode=order.mode,
        seed=order.seed,
        smallest_effect=order.smallest_effect,
        asked=order.witnesses,
        bound=None if np.isnan(bound) else bound,
        bound_unit="" if np.isnan(bound) else table.bounds.unit(a, d),
        effect=None if said == NO else _effect(order, a, d),
        rests_on=table.resting(a, d),
        witnesses=int(table.witnesses[a, d]),
        contested=bool(table.contested[a, d]),
    )


def _effect(order: GlobalOrder, a: int, d: int) -> TotalEffect | None:
    """The effect of one label on another, where it is known."""
    for kind, effects, some in order.known_effects:
        if some[a, d]:
            aside = np.flatnonzero(effects.set_aside[:, a, d])
            return TotalEffect(
                kind=kind,
                total=float(effects.estimate[a, d]),
                standard_error=float(effects.error[a, d]),
                low=float(effects.low[a, d]),
                high=float(effects.high[a, d]),
                sites=int(effects.sites[a, d]),
                set_aside=tuple(effects.clients[k] for k in aside),
            )
    return None


def _steps(order: GlobalOrder, a: int, d: int, holds: bool) -> tuple[Step, ...]:
    """The steps that lead to a verdict from what clients state or evidence decides."""
    if order.mode == "paper":
        return (Step(Fact(order.labels[a], order.labels[d], True), "algorithm-3"),)
    if order.table.why[a, d] == Why.SMALL:
        return (_base(order, a, d, False, "small"),)
    rule = "stated" if order.mode == "exact" else "weighed"
    prover = Prover(order.labels, lambda a, d, holds: _base(order, a, d, holds, rule))
    try:
        prover.prove(order.facts, a, d, holds)
    except NoProof:
        return (_base(order, a, d, holds, "posterior"),)
    return tuple(prover.steps)


def _base(order: GlobalOrder, a: int, d: int, holds: bool, rule: str) -> Step:
    """A step that follows from no other, who says so, and what a "no" excludes."""
    yes, no = order.said.sides(a, d)
    known = order.panel.known[a, d] == holds
    stated, bound = known or rule == "stated", order.table.excluded[a, d]
    excludes = ""
    if rule == "weighed" and not (holds or known or np.isnan(bound)):
        size = size_in_words(float(bound), order.table.bounds.unit(a, d), order.labels[d])
        excludes = f"; effects above {size} are excluded (95 %)"
    return Step(
        Fact(order.labels[a], order.labels[d], holds),
        "known" if known else rule,
        supporting=yes if holds else no,
        contradicting=no if holds else yes,
        log_bayes_factor=None if stated else round(float(order.table.evidence[a, d]), 6),
        excludes=excludes,
    )


# -- doubt ------------------------------------------------------------------------------------

# Why a pair has no verdict although its evidence or its probability would give one.
DOUBTS = {
    Why.DISPUTED: "the chains that sample orders disagree on this pair: one alone would decide it, "
    "another would not",
    Why.OPPOSED: "one client clearly says the opposite of what the others say together",
    Why.FEW: "it would rest on too few clients: {asked} are asked for",
    Why.LARGE: 'effects {possible} are possible, and "no" must exclude those above {matters:g}',
    Why.PRIOR: "the probability is {extreme}; {verdict} needs a log Bayes factor of {least} (here "
    "{net}), or decided pairs that imply it",
}


def _why_undetermined(order: GlobalOrder, a: int, d: int) -> str:
    """Who says what about a pair, and why that gives no verdict."""
    if order.mode == "paper":
        return "Algorithm 3 does not state this relation, and it never denies one"
    seen = order.panel.seen_by(a, d)
    names = ", ".join(order.panel.rows[k].client for k, _, _ in seen)
    yes, no = order.said.sides(a, d)
    net = f"{round(float(order.table.evidence[a, d]), 1) + 0.0:+.1f}"  # never -0.0
    rule = _doubt(order, a, d, net)
    told = ", ".join(say(who, word) for who, word in ((yes, "yes"), (no, "no")) if who)
    if not seen:
        told = "no client saw both"
    elif not told and all(order.panel.rows[k].together[i, j] for k, i, j in seen):
        told = f"hidden causes join the two at every client that has both ({names})"
    elif not told:
        told = f"the clients that saw both cannot say: {names}"
    elif not (yes and no) and order.mode == "evidence" and not rule:
        told += (
            f", but not strongly enough for a verdict (log Bayes factor {net}), which needs a "
            f"probability above {CERTAIN_YES} or below {CERTAIN_NO}"
        )
    return f"{told}; {rule}" if rule else told


def _doubt(order: GlobalOrder, a: int, d: int, net: str) -> str:
    """Why the evidence or the probability gives no verdict; empty if there is no more to say."""
    why = Why(int(order.table.why[a, d]))
    if order.mode != "evidence" or why not in DOUBTS:
        return ""
    bounds, low = order.table.bounds, order.probabilities[a, d] < CERTAIN_NO
    bound, unit = float(bounds.value[a, d]), bounds.unit(a, d)
    possible = "of any size"
    if not (np.isnan(bound) or says_nothing(bound, unit)):
        possible = f"up to {size_in_words(bound, unit, order.labels[d])}"
    fifth = "more than a fifth of those that speak about the pair, and at least two,"
    few = "low because few pairs are related at all, or because other pairs are likely"
    return DOUBTS[why].format(
        asked=fifth if order.witnesses == "fifth" else f"at least {order.witnesses}",
        possible=possible,
        matters=LARGEST_NO if order.smallest_effect is None else order.smallest_effect,
        extreme=few if low else "high because other pairs are likely",
        verdict='"not ancestor"' if low else '"ancestor"',
        least=f"-{LEAST_AGAINST:.1f} or less" if low else f"{LEAST_FOR:.1f} or more",
        net=net,
    )


# -- checking ---------------------------------------------------------------------------------


def check_certificate(
    certificate: Certificate,
    fragments: Iterable[Fragment] | GlobalOrder,
    knowledge: Knowledge = NOTHING,
) -> str:
    """What is wrong with a certificate; the empty string if nothing is.

    The fragments are assembled again with the same seed. Steps, probability, reason, bound, effect
    and the client that the verdict rests on must be those that this gives. To check many, assemble
    once and pass the order.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.assembly import check_certificate
    >>> order = jc.recover(jc.simulate.setting("A", 0).clients()).order
    >>> certificate = order.explain("z1", "z2")
    >>> check_certificate(certificate, order.fragments)
    ''
    >>> check_certificate(replace(certificate, probability=0.5), order.fragments)
    'the fragments give another probability'
    """
    if isinstance(fragments, GlobalOrder):
        order = fragments
    else:
        method: Method = "paper" if certificate.mode == "paper" else "null-cone"
        size, asked = certificate.smallest_effect, certificate.asked
        options = Options(method, certificate.seed, size, knowledge, asked)
        order = conclude(fragments, options=options).order
    unknown = {certificate.ancestor, certificate.descendant}.difference(order.labels)
    if unknown:
        return f"no fragment has {', '.join(sorted(unknown))}"
    given = asdict(certificate)
    again = asdict(order.explain(certificate.ancestor, certificate.descendant))
    wrong = (name for name in given if not _alike(given[name], again[name]))
    return next((f"the fragments give another {name.replace('_', ' ')}" for name in wrong), "")


def _alike(given: Any, other: Any) -> bool:
    """Are two values equal, numbers up to rounding?"""
    if isinstance(given, float) and isinstance(other, float):
        return given == other or bool(np.isclose(given, other))
    if isinstance(given, dict) and isinstance(other, dict):
        return given.keys() == other.keys() and all(_alike(given[k], other[k]) for k in given)
    if isinstance(given, tuple) and isinstance(other, tuple):
        return len(given) == len(other) and all(map(_alike, given, other))
    return bool(given == other)
