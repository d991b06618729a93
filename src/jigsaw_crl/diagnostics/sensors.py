"""Is the noise of all sensors alike?"""

from __future__ import annotations

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.latents import needed_features
from jigsaw_crl.client.sensors import ENOUGH_ROWS
from jigsaw_crl.client.spectrum import Spectrum

__all__ = ["check_sensors"]


def check_sensors(client: Client, spectrum: Spectrum) -> list[Finding]:
    """A finding about sensors of unequal noise, and whether each one's could be told."""
    if spectrum.unevenness <= 1:
        return []
    if spectrum.scale is not None:
        ratio = float((spectrum.scale.max() / spectrum.scale.min()) ** 2)
        return [
            Finding(
                "uneven-noise",
                "info",
                f"the sensors' noise is uneven: the noisiest has {ratio:.3g} times the variance of "
                "the quietest; each feature is divided by the size of its noise",
                "None needed. Average repeated readings of the noisiest sensors for a sharper "
                "answer.",
                value=spectrum.unevenness,
                threshold=1.0,
                client=client.name,
            )
        ]
    why, remedy = _unknown(client)
    return [
        Finding(
            "uneven-noise",
            "warning",
            f"the sensors' noise is uneven, and {why}, so equal noise is taken off: effects may be "
            "stated that are not there",
            f"{remedy}, or divide each feature by the size of its noise.",
            value=spectrum.unevenness,
            threshold=1.0,
            client=client.name,
        )
    ]


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
