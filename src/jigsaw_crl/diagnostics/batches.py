"""What the batches of a client's rows say: how far they wander, and which lack control rows."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.text import few
from jigsaw_crl.client.batches import Means, Wander
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.regime import Moments

__all__ = ["check_batches"]


def check_batches(client: Client, means: Means) -> list[Finding]:
    """Findings about batches; none if all rows are in one batch or batches are unknown."""
    wander = means.wander
    if wander is None:
        return []
    findings = [_wandering(client, wander)] if wander.strength > 1 else []
    alone, without = _without_controls(client)
    if alone:
        findings.append(
            _carried(
                client,
                "batch-is-regime",
                alone,
                wander,
                "{labels}: no other regime shares a batch with it, so an offset of the batch "
                "cannot be told from a shift of the mean",
            )
        )
    if without:
        findings.append(
            _carried(
                client,
                "batch-without-control",
                without,
                wander,
                "{labels}: some or all rows are in batches without control rows",
            )
        )
    return findings


def _wandering(client: Client, wander: Wander) -> Finding:
    where = ", in the direction where they differ most" if wander.uneven else ""
    return Finding(
        "batch-wander",
        "info",
        f"the means of batches differ by about {wander.size:.2g} standard deviations{where}, which "
        "is more than chance allows",
        "Nothing to do: shifts of the mean are taken against control rows of the same batch.",
        value=wander.strength,
        threshold=1.0,
        client=client.name,
    )


def _carried(
    client: Client, check: str, labels: Iterable[str], wander: Wander, what: str
) -> Finding:
    """Regimes whose mean is not compared with control rows of its own batch."""
    what = what.format(labels=few(labels))
    severity: Severity = "warning"
    if isnan(wander.size):
        what += (
            "; how much batches differ is unknown, because no regime is in two of them: these "
            "means are not used"
        )
    elif wander.strength > 1:
        what += f"; their means are uncertain by the {wander.size:.2g} that batches differ"
    else:
        what += "; batches do not differ by more than chance, so this costs little"
        severity = "info"
    return Finding(
        check,
        severity,
        what,
        "Measure control rows in every batch.",
        value=None if isnan(wander.size) else wander.size,
        client=client.name,
    )


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
