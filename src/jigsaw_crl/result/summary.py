"""The one sentence that `check`, `recover`, the report and notebooks tell first and last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from jigsaw_crl.base.text import pluralise
from jigsaw_crl.fragment.fragment import Outcome
from jigsaw_crl.result.left_out import LeftOut

__all__ = ["summarise"]


def summarise(
    outcomes: Mapping[str, Outcome],
    withheld: Collection[str] = (),
    left_out: Iterable[LeftOut] = (),
) -> str:
    """How many clients can say something about ancestors, why the others cannot, what to do.

    Parameters
    ----------
    outcomes : mapping of str to Outcome
        Of each client that is used.
    withheld : collection of str
        Clients whose evidence is withheld because the system is not linear.
    left_out : iterable of LeftOut

    Examples
    --------
    >>> from jigsaw_crl import Outcome
    >>> from jigsaw_crl.result.summary import summarise
    >>> print(summarise({"lab-1": Outcome(), "lab-2": Outcome("not-identified", "", "")}))
    1 of 2 clients can say something about ancestors: the other one changed noise or mean alone, as
    far as its rows tell. Make these interventions hard.
    """
    parts = list(left_out)
    out = {part.client for part in parts if part.label is None}
    bent = set(withheld) & set(outcomes)
    mute = {name for name, o in outcomes.items() if o.code == "not-identified"} - bent
    total, silent = len(outcomes) + len(out), len(out) + len(bent) + len(mute)
    why, remedies = [], []
    if mute:
        its = "its" if len(mute) == 1 else "their"
        why.append((len(mute), f"changed noise or mean alone, as far as {its} rows tell"))
        remedies.append("Make these interventions hard.")
    if bent:
        why.append((len(bent), "saw a system that is not linear, and nothing is stated there"))
        remedies.append(
            "In a system that is not linear, interventions must be hard and shift the mean."
        )
    if out:
        why.append((len(out), f"{'is' if len(out) == 1 else 'are'} left out"))
        remedies.append("The findings say why, and what to do.")
    labels = len(parts) - sum(part.label is None for part in parts)
    if labels:
        remedies.append(
            f"{pluralise(labels, 'label')} of single clients "
            f"{'is' if labels == 1 else 'are'} left out: see the findings."
        )
    return " ".join([_who(total, total - silent) + _because(why, total, silent) + ".", *remedies])


def _who(total: int, speaking: int) -> str:
    if total == 1:
        return f"The client can {'say something' if speaking else 'say nothing'} about ancestors"
    if speaking == total:
        everyone = "Both" if total == 2 else f"All {total}"
        return f"{everyone} clients can say something about ancestors"
    if not speaking:
        return f"None of the {total} clients can say anything about ancestors"
    return f"{speaking} of {total} clients can say something about ancestors"


def _because(why: list[tuple[int, str]], total: int, silent: int) -> str:
    if not why:
        return ""
    if len(why) == 1 and total == silent:
        return f": {'it' if total == 1 else 'they'} {why[0][1]}"
    if len(why) == 1:
        return f": the other {'one' if silent == 1 else silent} {why[0][1]}"
    return ": " + ", ".join(f"{n} {text}" for n, text in why)
