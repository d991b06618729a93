"""Are the tails of the features lighter than those of Gaussian rows?

A feature that is a sum of Gaussian noises has kurtosis 3, and more if the noises have heavy tails,
skewed or not. Sensors that saturate and effects that saturate give less. With ρ the correlations of
the d features, the mean excess kurtosis of the features of one regime has the variance

    24/n · Σ_fg ρ_fg⁴ / d²

for Gaussian rows. The regimes' standard scores are added up. Noise of bounded range has light
tails too, and is as good as any other for the method; so the finding alone changes nothing. The
study as a whole is withheld if what the regimes move contradicts a linear system as well
(`assembly/linearity.py`).
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import Client
from jigsaw_crl.moments.regime import Moments

__all__ = ["check_light_tails"]

# Standard score from which tails are called light. The sample kurtosis of few rows is skewed to the
# other side.
LIGHT = -5.0
# Fewer rows show no tails.
ENOUGH_ROWS = 100


def check_light_tails(client: Client) -> list[Finding]:
    """A finding if the features have lighter tails than sums of Gaussian noises."""
    if client.is_population or client.control.trimmed:
        return []
    regimes = [client.control, *(m for each in client.interventions.values() for m in each)]
    found = [_excess(m) for m in regimes if m.fourth is not None and (m.n or 0) >= ENOUGH_ROWS]
    if not found:
        return []
    excess, error = np.array(found).T
    score = float(np.sum(excess / error) / np.sqrt(len(found)))
    if score >= LIGHT:
        return []
    return [
        Finding(
            "light-tails",
            "info",
            f"the features have lighter tails than linear responses to Gaussian noise (kurtosis "
            f"{3 + float(excess.min()):.3g} in the regime where it is least): sensors or the "
            "system saturate, or the noise is bounded",
            "None by itself. If sensors are clipped or saturate, transform the features so that "
            "they respond linearly; a system that saturates can be read by hard interventions that "
            "shift the mean.",
            value=round(score, 2),
            threshold=LIGHT,
            client=client.name,
        )
    ]


def _excess(moments: Moments) -> tuple[float, float]:
    """Mean excess kurtosis of the features of a regime that vary, and its standard error."""
    assert moments.fourth is not None
    n, variance = float(moments.n or 0), np.diagonal(moments.covariance)
    varies = variance > np.finfo(np.float64).eps * variance.max()
    spread = np.sqrt(variance[varies])
    correlation = moments.covariance[np.ix_(varies, varies)] / np.outer(spread, spread)
    excess = moments.fourth[varies] / variance[varies] ** 2 - 3.0 * (n - 1) / (n + 1)
    return float(excess.mean()), float(np.sqrt(24.0 / n * np.mean(correlation**4)))
