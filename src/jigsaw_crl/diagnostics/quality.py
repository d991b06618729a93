"""Checks of one client's moments: number of latents, sensor noise, heavy tails, drift."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.latents import count_latents
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.diagnostics.regimes import FALSE_ALARM, contrast
from jigsaw_crl.moments.regime import Moments, inverse_square_root

__all__ = ["check_drift", "check_spectrum", "check_tails"]

FloatArray = npt.NDArray[np.float64]

# Beyond a kurtosis of 9 the error of a variance is twice what Gaussian rows give, (9−1)/2 = 2²,
# and probabilities computed for Gaussian rows are no longer to be trusted. Laplace rows have 6.
HEAVY = 9.0
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
        remedy = f"Pass n_latent={count.used}, or leave it out; uneven sensor noise looks alike."
        return [_latents(client, "more-latents", "warning", message, remedy, count.visible, used)]
    match count.reason:
        case "features":
            message = (
                f"{pluralise(client.n_features, 'feature')} for {pluralise(labels, 'label')}: "
                "a latent without a label could not be seen, and none is assumed"
            )
            remedy = "Pass n_latent if there is one, or measure at least two features more."
            return [
                _latents(
                    client,
                    "unseen-latents",
                    "info",
                    message,
                    remedy,
                    client.n_features,
                    labels + 2,
                )
            ]
        case "uneven":
            message = (
                f"{count.visible} directions differ by more than equal sensor noise allows, so the "
                f"number of latents cannot be estimated: the {labels} labels are counted"
            )
            remedy = "Pass n_latent, or divide each feature by the size of its noise."
            severity: Severity = "warning"
        case "rows":
            message = f"{shown}{directions}: too many for the smallest regime; {used} are used"
            remedy = "Take more rows, or pass n_latent."
            severity = "warning"
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
    spread = spread[spread > 0]
    ratio = float(spread.max() / spread.min())
    if ratio <= UNEVEN:
        return []
    return [
        Finding(
            "uneven-units",
            "warning",
            f"one feature spreads {ratio:.3g} times as widely as another, so the noise floor is "
            "that of the widest",
            "Divide each column by its standard deviation in the control.",
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
        f"the sensors add noise of {100 * spectrum.noise_share:.2g} % of the signal's variance "
        f"(floor {spectrum.noise_floor:.3g}, gap {spectrum.gap:.3g}); in the weakest "
        f"direction it is {100 * ratio:.0f} %",
        "The floor is subtracted. For a sharper answer, average repeated readings or add features.",
        value=ratio,
        threshold=NOISY,
        client=client.name,
    )


def check_tails(client: Client) -> list[Finding]:
    """Findings about regimes whose variance is carried by a few rows."""
    findings = []
    for regime, m in _regimes(client):
        if m.fourth is None or m.n is None:
            continue
        variance = np.diagonal(m.covariance)
        kurtosis = np.divide(m.fourth, variance**2, out=np.zeros_like(variance), where=variance > 0)
        worst = int(np.argmax(kurtosis))
        value = float(kurtosis[worst])
        # Rows that effectively carry the variance: (Σx²)² / Σx⁴ = n/κ.
        carrying = m.n / max(value, 1.0)
        name = client.features[worst]
        if carrying < client.n_latent + 1:
            findings.append(
                Finding(
                    "outliers",
                    "error",
                    f"a few rows carry the variance of {name!r}: it is that of {carrying:.1f} rows",
                    "Look for outliers; remove or winsorise them, or transform the feature.",
                    value=carrying,
                    threshold=float(client.n_latent + 1),
                    client=client.name,
                    regime=regime,
                )
            )
        elif value > HEAVY:
            findings.append(
                Finding(
                    "heavy-tails",
                    "warning",
                    f"the tails of {name!r} are so heavy (kurtosis {value:.3g}) that variances "
                    f"are as uncertain as from {2 * m.n / (value - 1):.0f} rows",
                    "Transform or winsorise the feature; otherwise probabilities are too extreme.",
                    value=value,
                    threshold=HEAVY,
                    client=client.name,
                    regime=regime,
                )
            )
    return findings


def check_drift(client: Client, spectrum: Spectrum) -> list[Finding]:
    """Findings about early and late control rows that follow different laws.

    With stretches k of n_k rows, `Σ n_k |W(μ_k − μ)|²` is χ² with (K − 1) r degrees of freedom
    when the mean stands still (W whitens by the control), and the covariances of the first and
    second half differ by no more than chance.
    """
    parts = _long_enough(client.control.parts, 2 * spectrum.rank)
    if len(parts) < 2:
        return []
    findings = []
    base = spectrum.basis.T @ client.control_second_moment() @ spectrum.basis
    white = inverse_square_root(base) @ spectrum.basis.T
    shifts = np.array([white @ (p.mean - client.control.mean) for p in parts])
    sizes = np.array([p.n for p in parts], dtype=np.float64)
    moved = float(sizes @ np.sum(shifts**2, axis=1))
    edge = float(chdtri((len(parts) - 1) * spectrum.rank, FALSE_ALARM))
    if moved > edge:
        findings.append(_drift(client, "the mean of the control rows moves", moved, edge))
    first, second = _halves(parts)
    inner = [spectrum.basis.T @ m.covariance @ spectrum.basis for m in (first, second)]
    c = contrast(inner[0], first, inner[1], second, FALSE_ALARM)
    if c.seen:
        findings.append(_drift(client, "the spread of the control rows changes", c.strength, 1.0))
    return findings


def _long_enough(parts: tuple[Moments, ...], rows: int) -> list[Moments]:
    """Stretches of more than `rows` rows; a shorter one is merged into the one before it."""
    joined: list[Moments] = []
    for part in parts:
        if joined and min(part.n or 0, joined[-1].n or 0) <= rows:
            joined[-1] = joined[-1].merge(part)
        else:
            joined.append(part)
    return joined


def _halves(parts: list[Moments]) -> tuple[Moments, Moments]:
    total = sum(p.n or 0 for p in parts)
    first, second, so_far = parts[0], parts[-1], parts[0].n or 0
    for part in parts[1:-1]:
        so_far += part.n or 0
        if so_far <= total / 2:
            first = first.merge(part)
        else:
            second = part.merge(second)
    return first, second


def _drift(client: Client, what: str, value: float, threshold: float) -> Finding:
    return Finding(
        "drifting-control",
        "warning",
        f"{what} from the beginning of the file to its end, by more than chance allows",
        "Compare each intervention with control rows of its own time, or remove the trend.",
        value=value,
        threshold=threshold,
        client=client.name,
        regime=client.control_name,
    )


def _regimes(client: Client) -> list[tuple[str, Moments]]:
    regimes = [(client.control_name, client.control)]
    return regimes + [(label, m) for label, ms in client.interventions.items() for m in ms]
