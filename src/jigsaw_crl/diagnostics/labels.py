"""The findings in agreement with what recovery read, and those about several sites.

The checks measure first, against the control rows alone; where the null-cone method recovers the
client, its own reading has the last word, so that the findings agree with what is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from jigsaw_crl.base.findings import Finding, ReadingNote
from jigsaw_crl.base.text import few, pluralise
from jigsaw_crl.diagnostics.findings import finding

__all__ = [
    "after_recovery",
    "effects_apart",
    "knowledge_contradicted",
    "label_differs",
    "not_hard_across",
    "not_linear",
    "saturated",
    "sites_differ",
]

# Findings about a client that may be the reason why more directions change than one target moves.
SIGNS = {
    "light-tails": "the system or the sensors are not linear, as the light tails suggest",
    "excess-spread": "rows are alike or sensors change, as the excess spread suggests",
    "heavy-tails": "a few rows with heavy tails make the difference",
    "dependent-rows": "rows that are alike make the difference",
    "every-regime": "the sensors are not linear, since every regime of this client looks so",
}
# With fewer labels, that all of them look so is no sign.
FEWEST_LABELS = 3


def saturated(client: str, unclear: int, labels: int) -> Finding:
    """Most regimes of a client with light tails move more directions than one target explains."""
    share, regimes = round(unclear / labels, 2), pluralise(labels, "regime")
    return finding("not-linear/client", share, 0.5, client=client, unclear=unclear, regimes=regimes)


def not_linear(clients: Sequence[str]) -> Finding:
    """More labels have leaning lines than chance explains, or most clients other signs."""
    count = len(clients)
    return finding("not-linear", float(count), clients=pluralise(count, "client"))


def label_differs(client: str, label: str) -> Finding:
    """What the site says about the label contradicts what all others say about it."""
    return finding("label-differs", client=client, regime=label)


def not_hard_across(label: str, value: float) -> Finding:
    """The interventions are called hard, and the sites find different effects on their target."""
    return finding("not-hard/across", value, regime=label)


def effects_apart(client: str, far: int, pairs: int) -> Finding:
    """The effects of a site stand apart from those of the other sites in many pairs."""
    share, effects = round(far / max(pairs, 1), 2), pluralise(pairs, "effect")
    return finding("effects-apart", share, client=client, far=far, effects=effects)


def sites_differ(
    ancestor: str, descendant: str, having: Sequence[str], lacking: Sequence[str], factor: float
) -> Finding:
    """Some sites have an effect of one label on another that others lack."""

    def show(sites: Sequence[str]) -> str:
        return f"{few(sites)} {'shows' if len(sites) == 1 else 'show'}"

    return finding(
        "sites-differ",
        round(factor, 1),
        ancestor=ancestor,
        descendant=descendant,
        having=show(having),
        lacking=show(lacking),
    )


def knowledge_contradicted(said: Sequence[tuple[str, str, bool]]) -> Finding:
    """The data alone decide the opposite of what the user said about these pairs."""
    told = [f"{a!r} is {'' if holds else 'not '}an ancestor of {d!r}" for a, d, holds in said]
    return finding("knowledge-contradicted", float(len(told)), said=few(told))


def after_recovery(
    client: str, findings: Iterable[Finding], labels: frozenset[str], unread: Iterable[ReadingNote]
) -> tuple[Finding, ...]:
    """The findings of the checks, in agreement with what recovery could and could not read.

    The checks compare each regime with the control rows alone. Recovery estimates the control from
    all regimes, so it sees more: of the labels that it was given, which are weak and which have
    several targets is its decision. Where the rows give another reason for what looks like several
    targets, a regime that is read is not doubted, and one that is not is called unclear.
    """
    told = list(unread)
    refused = {u.label for u in told if u.check in ("several-targets", "off-target")}
    weak = {f.regime: f for f in findings if f.check == "weak-intervention"}
    seen = {*(f.check for f in findings), *(u.check for u in told)}
    if len(labels) >= FEWEST_LABELS and labels <= refused:
        seen.add("every-regime")
    signs = tuple(sign for sign in SIGNS if sign in seen)
    told_by_recovery = ("several-targets", "weak-intervention")
    kept = [f for f in findings if f.check not in told_by_recovery or f.regime not in labels]
    unclear = {u.label for u in told if u.check == "several-targets"}
    if any(u.check == "nonlinear-response" for u in told):
        # The checks compare regimes with what one target moves in a linear system.
        kept = [f for f in kept if f.check not in ("several-targets", "light-tails")]
    elif "light-tails" in signs and 2 * len(unclear) > len(labels):
        kept.append(saturated(client, len(unclear), len(labels)))
    return (*kept, *(_not_read(client, u, weak.get(u.label), signs) for u in told))


def _not_read(client: str, u: ReadingNote, weak: Finding | None, signs: tuple[str, ...]) -> Finding:
    """The finding about something that recovery did not use, or used in part."""
    name, words = u.check, {"client": client, "regime": u.label, "other": u.other}
    if name == "weak-intervention":
        # The checks saw it differ, so "cannot be told from the control" would be false.
        return weak or finding(f"{name}/discounted", u.value, u.threshold, **words)
    if signs and name in ("off-target", "several-targets"):
        reasons = "; or ".join(dict.fromkeys(SIGNS[sign] for sign in signs))
        unclear = "unclear-regime/used" if u.other else "unclear-regime"
        return finding(unclear, u.value, u.threshold, reasons=reasons, **words)
    return finding(name, u.value, u.threshold, **words)
