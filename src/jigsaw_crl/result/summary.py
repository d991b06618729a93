"""What was left out and why, and the sentence that `check`, `recover` and the report tell first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.fragment.fragment import Fragment

# Why clients say nothing, and what to do.
WHY_SILENT = {
    "alone": "Only one label can be read at {}, and an order needs two at one client.",
    "mute": "Noise or means alone changed at {}, as far as the rows tell. Make these interventions "
    "hard (their targets must not respond to their causes), or take more rows where they are few.",
    "bent": "The system is not linear at {}, and nothing is stated there: in such a system, "
    "interventions must be hard and shift the mean.",
    "gone": "Left out: {}. The findings say why, and what to do.",
}
# What to do where no pair is decided. More rows and stronger interventions settle nothing where all
# that changes is noise, or where a hidden cause explains what is seen as well.
WHEN_OPEN = {
    "more": "Take more rows, or intervene more strongly: `jigsaw design` says where.",
    "kinds": "Hard interventions that shift the mean settle most (say that they are hard). More "
    "rows help only where interventions change how the target depends on its causes. `jigsaw "
    "design` says where.",
}
# Clients that are named for one reason.
MOST_NAMED = 3


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
    fragments: Mapping[str, Fragment],
    withheld: Collection[str] = (),
    left_out: Collection[LeftOut] = (),
    undecided: int = 0,
) -> str:
    """How many clients can say something about ancestors, why the others cannot, what to do.

    `fragments` are those of each client that is used; the evidence of `withheld` clients is not
    used because the system is not linear; `undecided` is the number of ordered pairs if none of
    them is decided, otherwise 0.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.result.summary import summarise
    >>> clients = jc.simulate.setting("A", 0).clients(5_000)
    >>> summarise({client.name: jc.recover_fragment(client) for client in clients[:2]})
    'Both clients can say something about ancestors.'
    """
    alone = {name for name, f in fragments.items() if len(f.labels) == 1}
    bent = set(withheld) & fragments.keys() - alone
    mute = {name for name, f in fragments.items() if f.outcome.code == "not-identified"}
    silent = {
        "alone": alone,
        "mute": mute - bent - alone,
        "bent": bent,
        "gone": {part.client for part in left_out if part.label is None},
    }
    total = len(fragments) + len(silent["gone"])
    speaking = total - sum(map(len, silent.values()))
    who = f"{speaking} of {pluralise(total, 'client')}"
    if speaking == total > 1:
        who = "Both clients" if total == 2 else f"All {total} clients"
    said = [f"{who} can say something about ancestors."]
    said += [
        WHY_SILENT[why].format(few(sorted(names), MOST_NAMED))
        for why, names in silent.items()
        if names
    ]
    if undecided and speaking:
        pairs = pluralise(undecided, "ordered pair")
        said.insert(0, f"Nothing is decided: none of {pairs} has enough evidence for a verdict.")
        # Are all interventions hard, and did all shift the mean?
        effects = [f.hard for f in fragments.values()]
        told = "more" if all(x and all(x.hard) and all(x.moved) for x in effects) else "kinds"
        said.append(WHEN_OPEN[told])
    if labels := sum(part.label is not None for part in left_out):
        said.append(f"Left out of single clients: {pluralise(labels, 'label')} (see the findings).")
    return " ".join(said)
