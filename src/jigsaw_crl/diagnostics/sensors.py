"""Is the noise of all sensors alike?"""

from __future__ import annotations

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.latents import needed_features
from jigsaw_crl.client.sensors import ENOUGH_ROWS
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.diagnostics.findings import finding

__all__ = ["check_sensors"]


def check_sensors(client: Client, spectrum: Spectrum) -> list[Finding]:
    """A finding about sensors of unequal noise, and whether each one's could be told."""
    if spectrum.unevenness <= 1:
        return []
    if spectrum.scale is not None:
        ratio = float((spectrum.scale.max() / spectrum.scale.min()) ** 2)
        return [finding("uneven-noise", spectrum.unevenness, 1.0, client=client.name, ratio=ratio)]
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
