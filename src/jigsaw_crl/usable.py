"""What can be used of clients, by the findings about them: before recovery, and after it.

An error that names a regime excludes that regime; one that names only a client excludes the client.
The study is refused if an error names neither, or if no client is left. The checks measure against
the control rows alone; where the null-cone method recovers the client, its own reading has the last
word (`after_recovery`), so that the findings agree with what is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding, ReadingNote
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics.checks import saturated
from jigsaw_crl.diagnostics.findings import finding

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


def usable(clients: Iterable[Client], findings: Iterable[Finding]) -> list[Client]:
    """The clients without the labels and clients that errors among the findings exclude.

    A client that loses a label keeps its `n_latent`, because the latent is still there.

    Raises
    ------
    InputError
        No client is left, or an error concerns the whole study.
    """
    own, errors = list(clients), [f for f in findings if f.severity == "error"]
    whole = {f.client: f for f in errors if f.regime is None}
    if None in whole:
        raise InputError(whole[None].message, whole[None].remedy)
    kept, reasons = [], []
    for client in own:
        spoilt = {f.regime: f for f in errors if f.client == client.name and f.regime is not None}
        left = client.without(spoilt) if spoilt else client
        if client.name in whole or left is None:
            reasons.append(whole.get(client.name) or next(iter(spoilt.values())))
        else:
            kept.append(left)
    if not kept and reasons:
        why = reasons[0]
        what = (
            why.message if len(own) == 1 else f"no client can be used; for instance, {why.message}"
        )
        raise InputError(what, why.remedy, client=why.client, regime=why.regime)
    return kept


def after_recovery(
    client: str, findings: Iterable[Finding], labels: frozenset[str], unread: Iterable[ReadingNote]
) -> tuple[Finding, ...]:
    """The findings of the checks, in agreement with what recovery could and could not read.

    Recovery estimates the control from all regimes: of the labels that it was given, which are weak
    and which have several targets is its decision. Where the rows give another reason for what
    looks like several targets, a regime that is not read is called unclear.
    """
    told = list(unread)
    refused = {u.label for u in told if u.check in ("several-targets", "off-target")}
    weak = {f.regime: f for f in findings if f.check == "weak-intervention"}
    seen = {*(f.check for f in findings), *(u.check for u in told)}
    if len(labels) >= FEWEST_LABELS and labels <= refused:
        seen.add("every-regime")
    signs = [sign for sign in SIGNS if sign in seen]
    told_by_recovery = ("several-targets", "weak-intervention")
    kept = [f for f in findings if f.check not in told_by_recovery or f.regime not in labels]
    unclear = {u.label for u in told if u.check == "several-targets"}
    if any(u.check == "nonlinear-response" for u in told):
        # The checks compare regimes with what one target moves in a linear system.
        kept = [f for f in kept if f.check not in ("several-targets", "light-tails")]
    elif "light-tails" in signs and 2 * len(unclear) > len(labels):
        kept.append(replace(saturated(len(unclear), len(labels)), client=client))
    return (*kept, *(_not_read(client, u, weak.get(u.label), signs) for u in told))


def _not_read(client: str, u: ReadingNote, weak: Finding | None, signs: list[str]) -> Finding:
    """The finding about something that recovery did not use, or used in part."""
    name, words = u.check, {"client": client, "regime": u.label, "other": u.other}
    if name == "weak-intervention":
        # The checks saw it differ.
        return weak or finding(f"{name}/discounted", u.value, u.threshold, **words)
    if signs and name in ("off-target", "several-targets"):
        words["reasons"] = "; or ".join(SIGNS[sign] for sign in signs)
        words["used"] = f"used without the direction of {u.other!r}" if u.other else "left out"
        words["severity"] = "warning" if u.other else "error"
        return finding("unclear-regime", u.value, u.threshold, **words)
    return finding(name, u.value, u.threshold, **words)
