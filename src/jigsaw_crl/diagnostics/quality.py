"""Checks of one client's moments: number of latents, sensor noise, heavy tails, drift."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import pluralise
from jigsaw_crl.client.client import RANK_TOLERANCE, Client
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.diagnostics.nulls import noise_edge
from jigsaw_crl.diagnostics.regimes import FALSE_ALARM, contrast
from jigsaw_crl.moments.regime import Moments, inverse_square_root

__all__ = ["check_drift", "check_spectrum", "check_tails", "visible_rank"]

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


def visible_rank(spectrum: Spectrum) -> int:
    """The number of directions that stand out of the noise.

    The smallest r whose trailing eigenvalues all lie below the edge that pure noise of their mean
    size would keep.
    """
    values = spectrum.eigenvalues
    d = len(values)
    real = int(np.count_nonzero(values > RANK_TOLERANCE * values[0]))
    if real < d or not np.isfinite(spectrum.n):
        return real
    for r in range(d - 1):
        rest = values[r:]
        if rest[0] <= rest.mean() * noise_edge(len(rest), spectrum.n, FALSE_ALARM):
            return r
    return d


def check_spectrum(client: Client, spectrum: Spectrum) -> list[Finding]:
    """Findings about the number of latents and the noise, from the spectrum."""
    if not spectrum.visible:
        return []
    findings = _uneven_units(client)
    found, r = visible_rank(spectrum), spectrum.rank
    if found > r:
        findings.append(
            Finding(
                "more-latents",
                "warning",
                f"{found} directions stand out where the client is said to have "
                f"{pluralise(r, 'latent')} (or the sensors' noise is uneven)",
                "Pass the true number as n_latent, if the client intervenes on some latents only.",
                value=float(found),
                threshold=float(r),
                client=client.name,
            )
        )
    elif found < r:
        findings.append(
            Finding(
                "fewer-latents",
                "warning",
                f"only {found} of {r} directions stand out of the sensors' noise",
                "Take more rows, or measure features that show the missing latents.",
                value=float(found),
                threshold=float(r),
                client=client.name,
            )
        )
    if spectrum.noise_share >= NOTICEABLE:
        findings.append(_noise(client, spectrum))
    return findings


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
