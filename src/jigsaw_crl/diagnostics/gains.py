"""Are the sensors' gains the same in all regimes?

In every regime the features lie in the space of the latents, up to the sensors' noise. The smallest
m − p eigenvalues of a regime's covariance are therefore noise alone, and if the space is the same
in all regimes, so are those of their average covariance. Gains that differ between regimes turn the
space, and the average then has more variance outside any one space than the regimes have on
average. Regimes of few rows tell nothing and are left out.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.diagnostics.findings import finding

__all__ = ["check_gains"]

# How many times the noise of single regimes the average has, from which the space has turned. Equal
# noise, equal spaces and at least ROWS rows per feature give at most 1.3.
TURNED, ROWS = 2.0, 4.0
# The turn matters when it is no longer small beside the error of a variance: turn² · rows.
MATTERS = 0.25
# Every regime needs an eigendecomposition; tables with more features are not checked, and so many
# regimes show what all of them do.
MOST_FEATURES, MOST_REGIMES = 400, 16
# Variance relative to the largest that is rounding.
ROUNDING = 1e-11


def check_gains(client: Client, spectrum: Spectrum) -> list[Finding]:
    """A finding if the sensors' gains differ between regimes; the client cannot be used then."""
    d, p = client.n_features, spectrum.rank
    regimes = [client.control, *(m for each in client.interventions.values() for m in each)]
    if client.is_population or p == d or d > MOST_FEATURES:
        return []
    long = [m for m in regimes if (m.n or 0) >= ROWS * d]
    if len(long) < 2:
        return []
    chosen = np.unique(np.linspace(0, len(long) - 1, min(len(long), MOST_REGIMES)).astype(np.intp))
    long = [long[k] for k in chosen]
    rows = np.array([m.n or 0 for m in long], dtype=np.float64)
    factor = np.ones(d) if spectrum.scale is None else spectrum.scale
    scale = np.outer(factor, factor)
    each = np.linalg.eigvalsh([scale * m.covariance for m in long])
    # The smallest eigenvalues of a sample are too small: p directions were fitted.
    own = float(np.average(each[:, :-p].sum(axis=1) * rows / (rows - p), weights=rows))
    together = np.linalg.eigvalsh(
        scale * sum(n * m.covariance for n, m in zip(rows, long, strict=True)) / rows.sum()
    )
    pooled, signal = float(together[:-p].sum()), float(together[-p:].sum()) * (d - p) / d
    turn = (pooled - own) / signal
    if pooled <= ROUNDING * signal or pooled <= TURNED * own:
        return []
    value = turn * float(rows.mean())
    if value <= MATTERS:
        return []
    percent = 100 * float(np.sqrt(turn))
    return [finding("drifting-gains", value, MATTERS, client=client.name, percent=percent)]
