"""What was left out and why, and the sentence that `check`, `recover` and the report tell first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import Outcome

__all__ = ["LeftOut", "left_out", "summarise"]

# Of so many clients, the sentence tells the number and not the names.
MANY = 3


@dataclass(frozen=True)
class LeftOut:
    """A label of one client, or a whole client, that was not used.

    `label` is None where the whole client was left out, `check` the finding that excluded it, for
    instance ``"several-targets"``, and `because` its message.
    """

    client: str
    label: str | None
    check: str
    because: str

    def __str__(self) -> str:
        what = f"client {self.client}" if self.label is None else f"{self.label} of {self.client}"
        return f"{what}, because {self.because}"


def left_out(findings: Iterable[Finding], used: Collection[str]) -> tuple[LeftOut, ...]:
    """Labels and clients that errors among the findings exclude; `used` are the clients left."""
    out: dict[tuple[str, str | None], LeftOut] = {}
    for f in findings:
        if f.severity != "error" or f.client is None or (f.client in used and f.regime is None):
            continue
        label = f.regime if f.client in used else None
        # An error about the client itself explains better why all of it is left out.
        if (f.client, label) not in out or (label is None and f.regime is None):
            out[f.client, label] = LeftOut(f.client, label, f.check, f.message)
    return tuple(out.values())


def summarise(
    outcomes: Mapping[str, Outcome],
    withheld: Collection[str] = (),
    left_out: Collection[LeftOut] = (),
    undecided: int = 0,
) -> str:
    """How many clients can say something about ancestors, why the others cannot, what to do.

    `outcomes` are those of each client that is used; the evidence of `withheld` clients is not used
    because the system is not linear; `undecided` is the number of ordered pairs if none of them is
    decided, otherwise 0.

    Examples
    --------
    >>> from jigsaw_crl import Outcome
    >>> from jigsaw_crl.result.summary import summarise
    >>> print(summarise({"lab-1": Outcome(), "lab-2": Outcome("not-identified", "", "")}))
    1 of 2 clients can say something about ancestors: lab-2 changed noise or mean alone, as far as
    its rows tell. Make these interventions hard.
    """
    gone = {part.client for part in left_out if part.label is None}
    bent = set(withheld) & set(outcomes)
    mute = {name for name, o in outcomes.items() if o.code == "not-identified"} - bent
    its = "its" if len(mute) == 1 else "their"
    reasons = [
        (
            mute,
            f"changed noise or mean alone, as far as {its} rows tell",
            "Make these interventions hard.",
        ),
        (
            bent,
            "saw a system that is not linear, and nothing is stated there",
            "In a system that is not linear, interventions must be hard and shift the mean.",
        ),
        (
            gone,
            f"{'is' if len(gone) == 1 else 'are'} left out",
            "The findings say why, and what to do.",
        ),
    ]
    told = [reason for reason in reasons if reason[0]]
    total, silent = len(outcomes) + len(gone), sum(len(reason[0]) for reason in told)
    # A few clients are named; of many, their number says more.
    why = [
        f"{' and '.join(sorted(names)) if len(names) < MANY else len(names)} {text}"
        for names, text, _ in told
    ]
    if len(told) == 1 and (silent == total or silent >= MANY):
        all_of_them = "it" if total == 1 else "they"
        why = [f"{all_of_them if silent == total else f'the other {silent}'} {told[0][1]}"]
    sentence = ": ".join([_who(total, total - silent), *([", ".join(why)] if why else [])])
    said = [f"{sentence}.", *(remedy for _, _, remedy in told)]
    if undecided and silent < total:
        pairs = pluralise(undecided, "ordered pair")
        said.insert(0, f"Nothing is decided: none of {pairs} has enough evidence for a verdict.")
        said.append("Take more rows, or intervene more strongly: `jigsaw design` says where.")
    if labels := sum(part.label is not None for part in left_out):
        many = pluralise(labels, "label")
        are = "is" if labels == 1 else "are"
        said.append(f"{many} of single clients {are} left out: see the findings.")
    return " ".join(said)


def _who(total: int, speaking: int) -> str:
    """How many of the clients can say something."""
    if total == 1:
        return f"The client can say {'something' if speaking else 'nothing'} about ancestors"
    who = f"{speaking} of {total}"
    if speaking == total:
        who = "Both" if total == 2 else f"All {total}"
    if not speaking:
        return f"None of the {total} clients can say anything about ancestors"
    return f"{who} clients can say something about ancestors"
