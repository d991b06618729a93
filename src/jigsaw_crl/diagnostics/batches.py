"""What the batches of a client's rows say: how far they wander, and which lack control rows."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.text import few
from jigsaw_crl.client.batches import BatchVariance, Means
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.moments.regime import Moments

__all__ = ["check_batches"]


def check_batches(client: Client, means: Means) -> list[Finding]:
    """Findings about batches; none if all rows are in one batch or batches are unknown."""
    wander = means.wander
    if wander is None:
        return []
    findings = [_wandering(client, wander)] if wander.strength > 1 else []
    alone, without = _without_controls(client)
    for name, labels in (("batch-is-regime", alone), ("batch-without-control", without)):
        if labels:
            findings.append(_carried(client, name, labels, wander))
    return findings


def _wandering(client: Client, wander: BatchVariance) -> Finding:
    where = ", in the direction where they differ most" if wander.uneven else ""
    words = {"size": wander.size, "where": where}
    return finding("batch-wander", wander.strength, 1.0, client=client.name, **words)


def _carried(client: Client, name: str, labels: Iterable[str], wander: BatchVariance) -> Finding:
    """Regimes whose mean is not compared with control rows of its own batch."""
    severity: Severity = "warning"
    if isnan(wander.size):
        cost = (
            "how much batches differ is unknown, because no regime is in two of them: these means "
            "are not used"
        )
    elif wander.strength > 1:
        cost = f"their means are uncertain by the {wander.size:.2g} that batches differ"
    else:
        cost = "batches do not differ by more than chance, so this costs little"
        severity = "info"
    value = None if isnan(wander.size) else wander.size
    words = {"labels": few(labels), "cost": cost}
    return finding(name, value, client=client.name, severity=severity, **words)


def _without_controls(client: Client) -> tuple[list[str], list[str]]:
    """Labels that are alone in all their batches, and others with rows in batches without controls.

    A label that is alone in its batches is one whose offset nothing else shows.
    """
    controls = _names(client.control)
    owners: dict[str, set[str]] = {}
    for label, regimes in client.interventions.items():
        for m in regimes:
            for name in _names(m):
                owners.setdefault(name, set()).add(label)
    alone: list[str] = []
    without: list[str] = []
    for label, regimes in client.interventions.items():
        own = {name for m in regimes for name in _names(m)}
        if own <= controls:
            continue
        shared = any(name in controls or owners[name] != {label} for name in own)
        (without if shared else alone).append(label)
    return alone, without


def _names(m: Moments) -> set[str]:
    return {batch.name for batch in m.batches}
