"""Checks of one client's moments: number of latents and sensor noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.latents import count_latents, needed_features
from jigsaw_crl.client.reduction import WIDE
from jigsaw_crl.client.spectrum import Spectrum

__all__ = ["check_spectrum"]

FloatArray = npt.NDArray[np.float64]

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
    return [
        Finding(
            "reduced-columns",
            "info",
            f"{client.reduction.message}; units and the noise of single columns are taken off, and "
            "single columns are not checked for outliers, copies or gains that differ",
            f"Nothing to do. To check single columns, read a choice of fewer than {WIDE} of them.",
            value=float(client.n_features),
            client=client.name,
        )
    ]


def _number_of_latents(client: Client) -> list[Finding]:
    """What the features show about the number of latents, beside the number that is used."""
    count = client.counted or count_latents(client)
    given, used, labels = client.counted is None, client.n_latent, len(client.labels)
    if given and client.n_features == used:
        return []
    shown = f"{pluralise(labels, 'label')}, but the features carry "
    directions = pluralise(count.visible, "latent direction")
    if count.visible < used:
        return [
            _latents(
                client,
                "fewer-latents",
                "warning",
                f"only {count.visible} of {used} directions stand out of the sensors' noise",
                "Take more rows, or measure features that show the missing latents.",
                count.visible,
                used,
            )
        ]
    if given:
        if count.used <= used:
            return []
        message = f"the features carry {directions}, but n_latent is {used}: {used} are used"
        remedy = f"W{_stating(client, count.used)[1:]}, or leave n_latent out."
        return [_latents(client, "more-latents", "warning", message, remedy, count.visible, used)]
    match count.reason:
        case "features" | "uneven":
            few = count.reason == "features"
            message = (
                f"{pluralise(client.n_features, 'feature')} for {pluralise(labels, 'label')}: "
                f"a latent without a label could not be {'seen' if few else 'told from noise'}, "
                "and none is assumed"
            )
            needed = labels + 2 if few else needed_features(labels)
            remedy = f"If there is one: {_stating(client)}. Or measure at least {needed} features."
            check, value = "unseen-latents", client.n_features
            if value >= needed:
                message = (
                    "no number of latents fits the features with noise of its own in each sensor, "
                    f"so that none beside the {pluralise(labels, 'label')} is assumed"
                )
                remedy, value, needed = (
                    f"If there is one: {_stating(client)}.",
                    count.visible,
                    labels,
                )
            return [_latents(client, check, "info", message, remedy, value, needed)]
        case "rows":
            message = f"{shown}{directions}: too many for the control rows; {used} are used"
            remedy = f"Take more control rows. Or {_stating(client)}."
            severity: Severity = "warning"
        case _:
            if used == labels:
                return []
            message = f"{shown}{directions}: {used} are used"
            remedy = (
                f"Nothing, if some latents have no label; otherwise {_stating(client, labels)}."
            )
            severity = "info"
    return [_latents(client, "more-latents", severity, message, remedy, count.visible, labels)]


def _stating(client: Client, number: int | None = None) -> str:
    """How to say how many latents the client has."""
    plain = client.name.isascii() and client.name.replace("-", "").replace("_", "").isalnum()
    name = client.name if plain else f'"{client.name}"'
    count = "N" if number is None else number
    return (
        f"write n_latent = {count} below [clients.{name}] in study.toml (jigsaw fragment: "
        f"--n-latent {count}; Python: n_latent={count})"
    )


def _latents(
    client: Client,
    check: str,
    severity: Severity,
    message: str,
    remedy: str,
    value: int,
    threshold: int,
) -> Finding:
    return Finding(
        check,
        severity,
        message,
        remedy,
        value=float(value),
        threshold=float(threshold),
        client=client.name,
    )


def _uneven_units(client: Client) -> list[Finding]:
    spread = np.sqrt(np.diagonal(client.control.covariance))
    narrowest = float(spread[spread > 0].min())
    widest = int(np.argmax(spread))
    ratio = float(spread[widest]) / narrowest
    if ratio <= UNEVEN:
        return []
    return [
        Finding(
            "uneven-units",
            "warning",
            f"the feature {client.features[widest]!r} spreads {ratio:.3g} times as widely as "
            "another, so the noise floor is that of the widest",
            "Leave it out with --ignore if it is a time or an index; otherwise divide each column "
            "by its standard deviation in the control.",
            value=ratio,
            threshold=UNEVEN,
            client=client.name,
        )
    ]


def _noise(client: Client, spectrum: Spectrum) -> Finding:
    ratio = spectrum.noise_floor / spectrum.weakest
    return Finding(
        "sensor-noise",
        "warning" if ratio > NOISY else "info",
        # Findings leave the client: ratios only, no variance in the data's own units.
        f"the sensors add noise of {100 * spectrum.noise_share:.2g} % of the signal's variance "
        f"(gap {spectrum.gap:.3g}); in the weakest direction it is {100 * ratio:.0f} %",
        "The floor is subtracted. For a sharper answer, average repeated readings or add features.",
        value=ratio,
        threshold=NOISY,
        client=client.name,
    )
