"""Why does a pair have its verdict, and is a certificate of it right?

A verdict has the steps that lead to it from what the clients said: a proof or a path of direct
evidence. Each step names the rule by which its fact follows from earlier ones, so that a reader can
verify it without trusting the assembly. A pair without a verdict has a reason for doubt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jigsaw_crl.assembly.conclusion import conclude
from jigsaw_crl.assembly.effects import UNEQUAL
from jigsaw_crl.assembly.entailment import Fact, NoProof, Prover, Step, say
from jigsaw_crl.assembly.order import GlobalOrder, Options
from jigsaw_crl.assembly.pairs import LARGEST_NO, SD, UNITS, size_in_words
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
from jigsaw_crl.base.text import chance, few, pluralise, signed
from jigsaw_crl.fragment.fragment import Fragment

RULES = {
    "known": "you said so{who}",
    "stated": "stated by {who}",
    "weighed": "log Bayes factor {factor:+.1f}{who}",
    "chain": "by {because}",
    "excluded": "the opposite would contradict {because}",
    "one-of": (
        "{client} states that one of {about} is an ancestor of {object}; with {because}, each of "
        "them implies this"
    ),
    "small": (
        "effects above {matters} are excluded (95 %, one-sided), and smaller ones do not matter "
        "(smallest_effect)"
    ),
    "posterior": (
        "no single statement implies it; {subject} is an ancestor of {object} in {share} of the "
        "sampled orders"
    ),
    "algorithm-3": "by Algorithm 3",
}
EDGES = {
    "direct": "Direct part: {size}; there is a direct edge{passes}.",
    "not direct": "There is no direct edge: an effect, if any, passes through other labels.",
    "undetermined": "Direct part: {size}; whether there is a direct edge is undetermined{passes}.",
}


@dataclass(frozen=True, repr=False)
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
    options : Options
        How the fragments were assembled.
    bound : float or None
        The size of effect that the data exclude with 95 % (one-sided); None where they exclude
        none, for ancestors, and for exact statements.
    bound_unit : str
        "standard deviations" or "share of the change"; empty without a bound.
    effect : mapping or None
        A row of `Result.effects`, and the clients that are set aside; None where it is not known,
        and where the verdict is "not ancestor".
    remarks : tuple of str
        Sentences about the effect: is it direct, and do the clients agree about it?
    rests_on : str
        The client without which the others would not decide the pair; empty if there is none.
    witnesses : int
        Size of the smallest group of clients without which the others would not decide the pair; 0
        if a fifth of the clients is too few for that.
    contested_by : tuple of str
        Clients that speak against the verdict, if they would decide the opposite by themselves.
    decimals : int
        Of the probability, which its sampled orders can tell.

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
    options: Options
    bound: float | None = None
    bound_unit: str = ""
    effect: Mapping[str, Any] | None = None
    remarks: tuple[str, ...] = ()
    rests_on: str = ""
    witnesses: int = 0
    contested_by: tuple[str, ...] = ()
    decimals: int = 3

    def __str__(self) -> str:
        head = str(Fact(self.ancestor, self.descendant, self.verdict is not Verdict.NOT_ANCESTOR))
        if self.verdict is Verdict.UNDETERMINED:
            head = f"Whether {head} is undetermined"
        if self.mode == "evidence" and self.probability is not None:
            so = "" if self.verdict is Verdict.ANCESTOR else " that it is"
            head += f" (probability{so} {chance(self.probability, self.decimals)})"
        if self.reason:
            head += f": {self.reason}"
        lines = [f"{head}."]
        for number, step in enumerate(self.steps, start=1):
            lines.append(f"  {number}. {step.fact}: {self._why(step)}")
        if self.effect is not None:
            lines.append(f"  {_effect_in_words(self.effect, self.ancestor, self.descendant)}.")
        if self.verdict is Verdict.NOT_ANCESTOR and self.bound is not None:
            size = size_in_words(self.bound, self.bound_unit, self.descendant)
            lines.append(f"  Effects above {size} are excluded (95 %, one-sided).")
        lines += [f"  {remark}" for remark in self.remarks]
        if self.rests_on:
            lines.append(f"  It rests on {self.rests_on}: without it, the others do not decide it.")
        elif self.witnesses > 1:
            lines.append(
                f"  It rests on {self.witnesses} clients: without so many, the others might not "
                "decide it."
            )
        if self.contested_by:
            who = ", ".join(self.contested_by)
            lines.append(f"  It is contested: without the others, {who} would decide the opposite.")
        return "\n".join(lines)

    # A notebook shows what is readable.
    __repr__ = __str__

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
            matters=self.options.smallest_effect,
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
    bound = float(table.excluded[a, d])
    return Certificate(
        ancestor=order.labels[a],
        descendant=order.labels[d],
        verdict=VERDICTS[said],
        probability=float(order.probabilities[a, d]) if given else None,
        steps=() if said == OPEN else _steps(order, a, d, said == YES),
        reason=_why_undetermined(order, a, d) if said == OPEN else "",
        mode=order.mode,
        options=order.options,
        bound=None if np.isnan(bound) else bound,
        bound_unit="" if np.isnan(bound) else UNITS[table.bounds.units[a, d]],
        effect=None if said == NO else _effect(order, a, d),
        remarks=tuple(_remarks(order, a, d)),
        rests_on=table.resting(a, d),
        witnesses=int(table.witnesses[a, d]),
        contested_by=order.said.sides(a, d)[said == YES] if table.contested[a, d] else (),
        decimals=order.decimals,
    )


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
    """A step that follows from no other, and who says so."""
    yes, no = order.said.sides(a, d)
    known = order.panel.known[a, d] == holds
    stated = known or rule == "stated"
    return Step(
        Fact(order.labels[a], order.labels[d], holds),
        "known" if known else rule,
        supporting=yes if holds else no,
        contradicting=no if holds else yes,
        log_bayes_factor=None if stated else round(float(order.table.evidence[a, d]), 6),
    )


# -- effects ----------------------------------------------------------------------------------


def _effect(order: GlobalOrder, a: int, d: int) -> Mapping[str, Any] | None:
    """The effect of one label on another, where it is known."""
    for kind, effects, some in order.known_effects:
        if some[a, d]:
            aside = tuple(effects.clients[k] for k in np.flatnonzero(effects.set_aside[:, a, d]))
            known = {x: None if np.isnan(y) else y.item() for x, y in effects.at(a, d).items()}
            return {"kind": kind, **known, "set_aside": aside}
    return None


def _effect_in_words(effect: Mapping[str, Any], cause: str, affected: str) -> str:
    """An effect with its interval, and the clients that it comes from."""
    size = _with_interval(*(effect[name] for name in ("total", "low", "high")))
    aside = f"; set aside: {', '.join(effect['set_aside'])}" if effect["set_aside"] else ""
    return (
        f"{effect['kind'].capitalize()} of {cause} on {affected}: {size}, "
        f"from {pluralise(effect['sites'], 'client')}{aside}"
    )


def _with_interval(value: float, low: float, high: float) -> str:
    """An effect with its interval."""
    interval = f"95 % interval {signed(low)} to {signed(high)}"
    return f"{signed(value)} {SD} ({'exact' if low == high else interval})"


def _remarks(order: GlobalOrder, a: int, d: int) -> Iterator[str]:
    """Sentences about the size of an effect, whether it is direct, and whether clients agree."""
    effects, direct, said = order.effects, order.direct_effects, order.verdicts[a, d]
    if said == NO and order.mode == "exact":
        yield "Exact moments exclude an effect of any size."
    elif said == NO and np.isnan(order.table.bounds.value[a, d]):
        measured = order.said.pooled.n_clients[a, d] > 0
        nobody = "gives a bound for" if measured else "measured"
        yield f"No client {nobody} this pair: no size of effect is excluded by itself."
    if effects is None or direct is None:
        return
    if not effects.known[a, d]:
        if said != NO and _effect(order, a, d) is None:
            yield (
                "The size of its effect is unknown: no client with hard interventions on both "
                "labels measured it."
            )
        return
    if said == NO:
        measured = effects.at(a, d)
        size = _with_interval(*(float(measured[x]) for x in ("total", "low", "high")))
        yield f"Measured: {size}. It counts as zero, because the verdict is “not ancestor”."
    else:
        weight, half, edge = direct.weight[a, d], direct.half[a, d], direct.verdict(a, d)
        through = few(direct.through(a, d))
        passes = f"; a path through {through} is not excluded" if through else ""
        size = _with_interval(weight, weight - half, weight + half)
        if edge == "direct" and not passes and signed(weight) == signed(effects.estimate[a, d]):
            size = "all of it"
        yield EDGES[edge].format(size=size, passes=passes)
    if effects.sites[a, d] > 1:
        p = float(effects.heterogeneity[a, d])
        agree = "differ, and the interval includes that" if p < UNEQUAL else "agree"
        by_chance = f"differences as large as theirs have probability {chance(p)} by chance"
        yield f"The clients {agree}: {by_chance}."
    if loose := [order.labels[i] for i in (a, d) if not effects.oriented[i]]:
        yield f"The sign says nothing: no intervention shows which way {_and(loose)} moved."


# -- doubt ------------------------------------------------------------------------------------

# Why a pair has no verdict although its evidence or its probability would give one.
DOUBTS = {
    Why.UNSURE: "the evidence (log Bayes factor {net}) is too weak for a probability above "
    f"{CERTAIN_YES} or below {CERTAIN_NO}",
    Why.DISPUTED: "the chains that sample orders disagree on this pair: one alone would decide it, "
    "another would not",
    Why.OPPOSED: "one client clearly says the opposite of what the others say together",
    Why.BOTH: "the evidence speaks for either direction, and hardly tells which one it is",
    Why.FEW: "it would rest on too few clients: at least {asked} are asked for",
    Why.LARGE: 'effects {possible} are possible, and "no" must exclude those above {matters:g}',
    Why.PRIOR: "the probability comes from the prior or from other pairs, which is no verdict: "
    f'unless decided pairs imply it, "ancestor" needs a log Bayes factor above {LEAST_FOR:.1f}, '
    f'"not ancestor" one below -{LEAST_AGAINST:.1f} (here {{net}})',
}


def _why_undetermined(order: GlobalOrder, a: int, d: int) -> str:
    """Who says what about a pair, and why that gives no verdict."""
    if order.mode == "paper":
        return "Algorithm 3 does not state this relation, and it never denies one"
    seen = order.panel.seen_by(a, d)
    names = ", ".join(order.panel.rows[k].client for k, _, _ in seen)
    sides = zip(order.said.sides(a, d), ("yes", "no"), strict=True)
    told = speak = ", ".join(say(who, word) for who, word in sides if who)
    if not seen:
        told = "no client saw both"
    elif not speak and all(order.panel.rows[k].together[i, j] for k, i, j in seen):
        told = f"hidden causes join the two at every client that has both ({names})"
        if order.mode != "exact":
            told += "; regimes that are alike, or noise of sensors that is not known, look so too"
    elif not speak:
        told = f"the clients that saw both cannot say: {names}"
    why, bound = Why(int(order.table.why[a, d])), float(order.table.excluded[a, d])
    # A file that somebody changed may give an open pair the reason of a verdict.
    if order.mode == "exact" or why not in DOUBTS or (why == Why.UNSURE and not speak):
        return told
    possible = "of any size"
    if not np.isnan(bound):
        unit = UNITS[order.table.bounds.units[a, d]]
        possible = f"up to {size_in_words(bound, unit, order.labels[d])}"
    asked, matters = order.options.witnesses, order.options.smallest_effect
    fifth = "two, and more than a fifth of those that speak about the pair,"
    doubt = DOUBTS[why].format(
        net=f"{round(float(order.table.evidence[a, d]), 1) + 0.0:+.1f}",  # never -0.0
        possible=possible,
        asked=fifth if asked == "fifth" else asked,
        matters=LARGEST_NO if matters is None else matters,
    )
    return f"{told}; {doubt}"


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
    >>> from jigsaw_crl.assembly.explanation import check_certificate
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
        order = conclude(fragments, options=replace(certificate.options, knowledge=knowledge)).order
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
