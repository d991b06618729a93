"""Certificates: a verdict, and the steps that lead to it from what the clients said.

Each step names the rule by which its fact follows from earlier steps, so that a reader can verify
it without trusting the assembly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jigsaw_crl.assembly.bounds import says_nothing, size_in_words
from jigsaw_crl.assembly.verdict import Verdict
from jigsaw_crl.base.text import chance, pluralise

__all__ = ["RULES", "Certificate", "Fact", "Step", "TotalEffect", "say"]

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
class Fact:
    """One label is an ancestor of another, or is not.

    Parameters
    ----------
    subject, object : str
    holds : bool
    """

    subject: str
    object: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.subject} is {'' if self.holds else 'not '}an ancestor of {self.object}"


@dataclass(frozen=True)
class Step:
    """One fact and why it holds.

    Parameters
    ----------
    fact : Fact
    rule : str
        A key of `RULES`.
    because : tuple of int
        Earlier steps that it follows from, counted from 0.
    client : str
        The client whose candidates the rule uses.
    about : tuple of str
        The candidates.
    supporting, contradicting : tuple of str
        Clients whose own data state the fact, or its opposite.
    log_bayes_factor : float or None
        Pooled direct evidence that the subject is an ancestor (evidence mode).
    excludes : str
        The effects that a weighed "no" excludes, in words.
    """

    fact: Fact
    rule: str
    because: tuple[int, ...] = ()
    client: str = ""
    about: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()
    log_bayes_factor: float | None = None
    excludes: str = ""


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
            f"{self.total:+.2f} standard deviations (95 % interval {self.low:+.2f} to "
            f"{self.high:+.2f}), from {pluralise(self.sites, 'site')}{aside}"
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
                f"  It rests on {self.witnesses} clients: without them, the others do not decide "
                "it."
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


def say(names: Sequence[str], word: str) -> str:
    """ "lab-1 says yes", "lab-1, lab-2 say no"."""
    return f"{', '.join(names)} {'say' if len(names) > 1 else 'says'} {word}"


def _and(names: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join([part for part in (", ".join(names[:-1]), *names[-1:]) if part])
