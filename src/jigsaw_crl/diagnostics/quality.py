"""Checks of one client's moments: number of latents and sensor noise."""

from __future__ import annotations

from typing import Any

import numpy as np

from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.text import number, percent, pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.latents import count_latents
from jigsaw_crl.client.reduction import WIDE
from jigsaw_crl.client.sensors import needed_features
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.diagnostics.findings import finding

__all__ = ["check_spectrum"]


# A tenth of the weakest direction's variance being noise is where the floor's own error begins to
# show in the answer.
NOISY = 0.1
# Beyond a thousandfold spread, a noise of one part in a thousand of the widest feature is as large
# as all of the narrowest.
UNEVEN = 1e3
# Less than this is what sensors and rounding always leave; not worth a line.
NOTICEABLE = 1e-3


def check_spectrum(client: Client, spectrum: Spectrum) -> list[Finding]:
    """Findings about the number of latents and the noise, from the spectrum."""
    # Directions have no units of their own.
    units = spectrum.visible and client.reduction is None
    findings = (_uneven_units(client) if units else []) + _reduced(client)
    findings += _number_of_latents(client)
    if spectrum.visible and spectrum.noise_share >= NOTICEABLE:
        findings.append(_noise(client, spectrum))
    return findings


def _reduced(client: Client) -> list[Finding]:
    """What stands in for the columns of a wide table, and what is not checked then."""
    if client.reduction is None:
        return []
    words = {"what": client.reduction.message, "wide": WIDE}
    return [finding("reduced-columns", float(client.n_features), client=client.name, **words)]


def _number_of_latents(client: Client) -> list[Finding]:
    """What the features show about the number of latents, beside the number that is used."""
    given, used, labels = client.counted is None, client.n_latent, len(client.labels)
    if given and client.n_features == used:
        return []
    others = [m for ms in client.interventions.values() for m in ms]
    count = client.counted or count_latents(client.control, others, labels)
    words: dict[str, Any] = {
        "labels": pluralise(labels, "label"),
        "features": pluralise(client.n_features, "feature"),
        "directions": pluralise(count.visible, "latent direction"),
        "used": used,
    }

    def told(name: str, value: int, threshold: int, **more: Any) -> list[Finding]:
        numbers = float(value), float(threshold)
        return [finding(name, *numbers, client=client.name, **words, **more)]

    if count.visible < used:
        return told("fewer-latents", count.visible, used)
    if given:
        if count.used <= used:
            return []
        state = f"W{_stating(client, count.used)[1:]}"
        return told("more-latents/given", count.visible, used, state=state)
    match count.reason:
        case "features" | "uneven":
            few = count.reason == "features"
            needed = labels + 2 if few else needed_features(labels)
            more = {"seen": "seen" if few else "told from noise", "state": _stating(client)}
            if client.n_features < needed:
                return told("unseen-latents", client.n_features, needed, **more)
            return told("unseen-latents/unfit", count.visible, labels, **more)
        case "rows":
            return told("more-latents/rows", count.visible, labels, state=_stating(client))
    if used == labels:
        return []
    return told("more-latents", count.visible, labels, state=_stating(client, labels))


def _stating(client: Client, number: int | None = None) -> str:
    """How to say how many latents the client has."""
    plain = client.name.isascii() and client.name.replace("-", "").replace("_", "").isalnum()
    name = client.name if plain else f'"{client.name}"'
    count = "N" if number is None else number
    return (
        f"write n_latent = {count} below [clients.{name}] in study.toml (jigsaw fragment: "
        f"--n-latent {count}; Python: n_latent={count})"
    )


def _uneven_units(client: Client) -> list[Finding]:
    spread = np.sqrt(np.diagonal(client.control.covariance))
    narrowest = float(spread[spread > 0].min())
    widest = int(np.argmax(spread))
    ratio = float(spread[widest]) / narrowest
    if ratio <= UNEVEN:
        return []
    feature = client.features[widest]
    return [finding("uneven-units", ratio, UNEVEN, client=client.name, feature=feature)]


def _noise(client: Client, spectrum: Spectrum) -> Finding:
    ratio = spectrum.noise_floor / spectrum.weakest
    gap = f" (gap {number(spectrum.gap)})" if np.isfinite(spectrum.gap) else ""
    words = {"percent": percent(spectrum.noise_share), "gap": gap, "weakest": percent(ratio)}
    severity: Severity = "warning" if ratio > NOISY else "info"
    return finding("sensor-noise", ratio, NOISY, client=client.name, severity=severity, **words)
