"""Certificates: a verdict, and the steps that lead to it from what the clients said.

Each step names the rule that gives its fact from earlier steps, so that a reader, or
`check_certificate`, can follow it without trusting the assembly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jigsaw_crl.assembly.verdict import Verdict

__all__ = ["RULES", "Certificate", "Fact", "Step"]

RULES = {
    "stated": "stated by {who}",
    "weighed": "log-odds {log_odds:+.1f}{who}",
    "chain": "by {because} in a row",
    "excluded": "otherwise {because} would be contradicted",
    "one-of": "{client} knows that one of {about} is, and {because} leave no other",
    "reach": "by {because}",
    "no-ancestor": "by {because}",
    "unblocked": "by {because}: nothing that {client} accesses can lie between",
    "separate": "by {because}: {client} sees no confounding between {about}",
    "passage": "by {because}: the way must lead through the only label of {client} that is left",
    "blocked": "by {because}: nothing that {client} accesses can lie between",
    "compose": "by {because}",
    "confounder": "by {because}: {client} sees {about} confounded (closed world)",
    "posterior": "no single statement implies it; it is so in {share} of the probable orders",
    "algorithm-3": "by Algorithm 3",
}


@dataclass(frozen=True)
class Fact:
    """Something that holds, or does not, between two labels.

    Parameters
    ----------
    kind : {"ancestor", "reaches"}
        Ancestry, or "reaches through nodes that `client` does not access".
    subject, object : str
    holds : bool
    client : str
        Only for "reaches".
    """

    kind: Literal["ancestor", "reaches"]
    subject: str
    object: str
    holds: bool
    client: str = ""

    def __str__(self) -> str:
        if self.kind == "ancestor":
            return f"{self.subject} is {'an' if self.holds else 'no'} ancestor of {self.object}"
        verb = "reaches" if self.holds else "does not reach"
        return f"{self.subject} {verb} {self.object} through nodes hidden from {self.client}"


@dataclass(frozen=True)
class Step:
    """One fact and why it holds.

    Parameters
    ----------
    fact : Fact
    rule : str
        A key of `RULES`.
    because : tuple of int
        Earlier steps, counted from 0.
    client : str
        Whose labels, spouses or set of candidates the rule uses.
    about : tuple of str
        What else the rule refers to: the candidates, the spouses, the label passed.
    supporting, contradicting : tuple of str
        Clients that say the fact, or its opposite, of themselves.
    log_odds : float or None
        Net direct evidence of all clients that the subject is an ancestor (evidence mode).
    """

    fact: Fact
    rule: str
    because: tuple[int, ...] = ()
    client: str = ""
    about: tuple[str, ...] = ()
    supporting: tuple[str, ...] = ()
    contradicting: tuple[str, ...] = ()
    log_odds: float | None = None

    @property
    def quorum(self) -> int:
        """Clients for the fact, less those against it."""
        return len(self.supporting) - len(self.contradicting)


@dataclass(frozen=True)
class Certificate:
    """Why the verdict on one ordered pair is what it is.

    Parameters
    ----------
    ancestor, descendant : str
        The question: is the first an ancestor of the second?
    verdict : Verdict
    probability : float or None
        None where an undetermined pair of exact mode was not sampled.
    steps : tuple of Step
        The last one is the verdict; empty when it is undetermined.
    reason : str
        One sentence.
    mode : str
    seed : int
    closed_world : bool

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl import Fragment, PartialOrder, assemble
    >>> from jigsaw_crl.fragment.fragment import Statements
    >>> def client(name, a, d):
    ...     blocks = (frozenset([a]), frozenset([d]))
    ...     return Fragment(name, "null-cone", (a, d), blocks,
    ...                     PartialOrder.from_pairs(blocks, [blocks]), blocks,
    ...                     statements=Statements(np.array([[0, 1], [0, 0]])))
    >>> order = assemble([client("lab-1", "pump", "valve"), client("lab-2", "valve", "flow")])
    >>> print(order.explain("pump", "flow"))
    pump is an ancestor of flow.
      1. pump is an ancestor of valve: stated by lab-1
      2. valve is an ancestor of flow: stated by lab-2
      3. pump is an ancestor of flow: by 1, 2 in a row
    """

    ancestor: str
    descendant: str
    verdict: Verdict
    probability: float | None
    steps: tuple[Step, ...]
    reason: str
    mode: str
    seed: int = 0
    closed_world: bool = False

    @property
    def weakest(self) -> Step | None:
        """The step from the clients with the smallest quorum; None when there is none."""
        direct = [s for s in self.steps if s.rule in ("stated", "weighed")]
        return min(direct, key=lambda s: s.quorum, default=None)

    @property
    def rules(self) -> frozenset[str]:
        """The rules it uses."""
        return frozenset(step.rule for step in self.steps)

    def __str__(self) -> str:
        head = {
            Verdict.ANCESTOR: f"{self.ancestor} is an ancestor of {self.descendant}",
            Verdict.NOT_ANCESTOR: f"{self.ancestor} is no ancestor of {self.descendant}",
            Verdict.UNDETERMINED: (
                f"Whether {self.ancestor} is an ancestor of {self.descendant} is undetermined"
            ),
        }[self.verdict]
        if self.mode == "evidence" and self.probability is not None:
            so = "" if self.verdict is Verdict.ANCESTOR else " that it is"
            head += f" (probability{so} {self.probability:.2f})"
        if self.reason:
            head += f": {self.reason}"
        lines = [f"{head}."]
        for number, step in enumerate(self.steps, start=1):
            lines.append(f"  {number}. {step.fact}: {self._why(step)}")
        return "\n".join(lines)

    def _why(self, step: Step) -> str:
        share = "" if self.probability is None else f"{100 * self.probability:.0f} %"
        if step.rule == "weighed":
            who = "".join(
                f"; {', '.join(names)} {'say' if len(names) > 1 else 'says'} {word}"
                for word, names in _sides(step)
                if names
            )
        else:
            who = ", ".join(step.supporting)
        return RULES[step.rule].format(
            who=who,
            because=", ".join(str(i + 1) for i in step.because) or "itself",
            client=step.client,
            about=" and ".join(step.about) if len(step.about) < 3 else ", ".join(step.about),
            log_odds=0.0 if step.log_odds is None else step.log_odds,
            share=share,
        )


def _sides(step: Step) -> tuple[tuple[str, tuple[str, ...]], ...]:
    words = ("yes", "no") if step.fact.holds else ("no", "yes")
    return ((words[0], step.supporting), (words[1], step.contradicting))
