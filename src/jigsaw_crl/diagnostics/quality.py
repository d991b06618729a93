"""Checks of one client's moments: number of latents and sensor noise."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.latents import count_latents, needed_features
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
    findings = [] if not spectrum.visible else _uneven_units(client)
    findings += _number_of_latents(client)
    if spectrum.visible and spectrum.noise_share >= NOTICEABLE:
        findings.append(_noise(client, spectrum))
    return findings


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
        remedy = f"Pass n_latent={count.used}, or leave it out."
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
            remedy = f"Pass n_latent if there is one, or measure at least {needed} features."
            check, value = "unseen-latents", client.n_features
            if value >= needed:
                message = (
                    "no number of latents fits the features with noise of its own in each sensor, "
                    f"so that none beside the {pluralise(labels, 'label')} is assumed"
                )
                remedy, value, needed = "Pass n_latent if there is one.", count.visible, labels
            return [_latents(client, check, "info", message, remedy, value, needed)]
        case "rows":
            message = f"{shown}{directions}: too many for the control rows; {used} are used"
            remedy = "Take more control rows, or pass n_latent."
            severity: Severity = "warning"
        case _:
            if used == labels:
                return []
            message = f"{shown}{directions}: {used} are used"
            remedy = "Nothing, if some latents have no label; otherwise pass n_latent."
            severity = "info"
    return [_latents(client, "more-latents", severity, message, remedy, count.visible, labels)]


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
