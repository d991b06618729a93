"""Do control rows of different times and batches follow the same law?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isnan, sqrt

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.nulls import FALSE_ALARM, LENIENT
from jigsaw_crl.base.text import few
from jigsaw_crl.client.client import Client
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.moments.regime import coarsened

# Standard deviations by which neighbouring stretches must be more alike than distant ones.
TRENDING = 3.0


def check_drift(client: Client) -> Iterator[Finding]:
    """A finding about control rows whose mean moves from the beginning of the file to its end.

    With stretches k of n_k rows, `Σ n_k |W(μ_k − μ)|²` is χ² with (K − 1) r degrees of freedom
    when the mean stands still (W whitens by the control). Autocorrelated rows increase it, and so
    do directions with heavy tails, such as what a clipped sensor lacks; but no more over long
    distances than between neighbouring stretches, and then there is no drift.
    """
    W = client.white.rows.W
    # Neighbours are merged until the shortest one is long enough.
    parts = client.control.parts
    while len(parts) > 1 and min(part.n or 0 for part in parts) <= 2 * len(W):
        parts = coarsened(parts, len(parts) - 1)
    if len(parts) < 2:
        return
    steps = np.array([np.sqrt(m.n or 0) * (W @ (m.mean - client.control.mean)) for m in parts])
    moved = float(np.sum(steps**2))
    edge = float(chdtri((len(steps) - 1) * steps.shape[1], FALSE_ALARM))
    # If the middle step between neighbours is within chance, rows are independent from one stretch
    # to the next, and the mean moves by a few jumps.
    each = [(W @ (b.mean - a.mean), 1 / (a.n or 1) + 1 / (b.n or 1)) for a, b in pairwise(parts)]
    squares = sorted(float(step @ step) / variance for step, variance in each)
    jumps = squares[(len(squares) - 1) // 2] <= float(chdtri(len(W), LENIENT))
    if moved > edge and (jumps or _trends(steps)):
        # With more than half of its variance along some direction, the control's covariance is not
        # that of the system, and no regime can be compared with it.
        mostly = 2 * float(np.linalg.eigvalsh(steps.T @ steps)[-1]) > sum(
            part.n or 0 for part in parts
        )
        severity = "error" if mostly else "warning"
        than = "the rows vary otherwise" if mostly else "chance allows"
        place = client.control_name
        yield finding("drifting-control", moved, edge, regime=place, severity=severity, than=than)


def _trends(values: FloatArray) -> bool:
    """Whether values of consecutive stretches, shape (K, dims), follow one another.

    Von Neumann's ratio `η = Σ|x_{k+1} − x_k|²/Σ|x_k − x|²` is 2 on average if the stretches are
    exchangeable, however much they vary, with the variance `4(K − 2)/((K² − 1) dims)`. Drift makes
    it smaller. Of two stretches it is always 2, and nothing can be told: they count as a trend.
    """
    K, dims = values.shape
    if K < 3:
        return True
    away = values - values.mean(axis=0)
    ratio = float(np.sum(np.diff(values, axis=0) ** 2) / max(np.sum(away**2), np.finfo(float).tiny))
    return ratio < 2 - TRENDING * sqrt(4 * (K - 2) / ((K**2 - 1) * dims))


def check_batches(client: Client) -> Iterator[Finding]:
    """Findings about the batches of a client whose rows are in several."""
    wander = client.white.errors.wander
    if wander is None:
        return
    if wander.strength > 1:
        where = ", in the direction where they differ most" if wander.uneven else ""
        yield finding("batch-wander", wander.strength, 1.0, size=wander.size, where=where)
    controls = {batch.name for batch in client.control.batches}
    named = client.named_regimes[1:]
    apart = [x for x, m in named if not {batch.name for batch in m.batches} <= controls]
    if not apart:
        return
    labels, severity = few(dict.fromkeys(apart)), "warning"
    cost = f"their means are uncertain by the {wander.size:.2g} that batches differ"
    if isnan(wander.size):
        cost = "no regime is in two batches to show how much they differ: these means are not used"
    elif wander.strength <= 1:
        cost = "batches do not differ by more than chance, so this costs little"
        severity = "info"
    value = None if isnan(wander.size) else wander.size
    yield finding("batch-without-control", value, labels=labels, severity=severity, cost=cost)


CHECKS = [check_drift, check_batches]
