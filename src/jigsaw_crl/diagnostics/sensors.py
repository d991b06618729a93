"""Is the noise of all sensors alike?"""

from __future__ import annotations

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.latents import needed_features
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
    return [
        Finding(
            "uneven-noise",
            "warning",
            "the sensors' noise is uneven, and the features are too few to tell the noise of each, "
            "so equal noise is taken off: effects may be stated that are not there",
            f"Measure at least {needed_features(client.n_latent)} features, or divide each feature "
            "by the size of its noise.",
            value=spectrum.unevenness,
            threshold=1.0,
            client=client.name,
        )
    ]
