"""Is the noise of all sensors alike?"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import percent
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.sensors import ENOUGH_ROWS, needed_features
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.diagnostics.findings import finding

__all__ = ["check_sensors"]

# Shares of noise that differ by less are not worth a line.
UNEVEN = 2.0


def check_sensors(client: Client, spectrum: Spectrum) -> list[Finding]:
    """A finding about sensors of unequal noise, and whether each one's could be told."""
    if spectrum.unevenness <= 1:
        return []
    if spectrum.scale is not None:
        # Relative to each feature's own variance: features may have different units.
        shares = spectrum.sensors / np.diagonal(client.control.covariance)
        if shares.max() < UNEVEN * shares.min():
            return []
        words = {"most": percent(float(shares.max())), "least": percent(float(shares.min()))}
        return [finding("uneven-noise", spectrum.unevenness, 1.0, client=client.name, **words)]
    why, what = _unknown(client)
    words = {"why": why, "what": what}
    return [finding("uneven-noise/unknown", spectrum.unevenness, 1.0, client=client.name, **words)]


def _unknown(client: Client) -> tuple[str, str]:
    """Why the noise of each sensor cannot be told, and what would help."""
    needed, rows = needed_features(client.n_latent), ENOUGH_ROWS * client.n_latent
    if client.n_features < needed:
        why = "the features are too few to tell the noise of each"
        return why, f"Measure at least {needed} features"
    regimes = (client.control, *(m for ms in client.interventions.values() for m in ms))
    if all(m.n is not None and m.n < rows for m in regimes):
        why = f"no regime counts for {rows:,} rows, which are needed to tell the noise of each"
        return why, "Take more rows, leave out features that a few rows dominate"
    return "no noise of its own for each sensor fits the rows", "Pass n_latent if it is larger"
