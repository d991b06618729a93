"""Do control rows of different times and batches follow the same law?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import isnan, sqrt

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding, Severity
from jigsaw_crl.base.text import few
from jigsaw_crl.client.batches import BatchVariance, Means
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.noise import NoiseModel
from jigsaw_crl.client.nulls import FALSE_ALARM, ratio_edges
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.regimes import beyond
from jigsaw_crl.diagnostics.rows import tail_factor
from jigsaw_crl.moments.regime import Moments, inverse_square_root

__all__ = ["check_batches", "check_drift"]


# When more than half of the control's variance along some direction is drift, its covariance is not
# that of the system, and no regime can be compared with it.
MOSTLY_DRIFT = 0.5
# Standard deviations by which neighbouring stretches must be more alike than distant ones.
TRENDING = 3.0
# Chance that the middle step between neighbours is called larger than independent rows allow.
AGREEING = 0.05


def check_drift(client: Client, spectrum: NoiseModel) -> list[Finding]:
    """Findings about early and late control rows that follow different laws.

    With stretches k of n_k rows, `Σ n_k |W(μ_k − μ)|²` is χ² with (K − 1) r degrees of freedom
    when the mean stands still (W whitens by the control), and the covariances of the first and
    second half differ by no more than chance. Autocorrelated rows increase both, and so do
    directions with heavy tails, such as what a clipped sensor lacks; but no more over long
    distances than between neighbouring stretches, and then there is no drift.
    """
    parts = _long_enough(client.control.parts, 2 * spectrum.rank)
    if len(parts) < 2:
        return []
    findings = []
    place = {"client": client.name, "regime": client.control_name}
    base = spectrum.basis.T @ client.control_second_moment() @ spectrum.basis
    W = inverse_square_root(base) @ spectrum.basis.T
    steps = np.array([np.sqrt(m.n or 0) * (W @ (m.mean - client.control.mean)) for m in parts])
    moved, degrees = float(np.sum(steps**2)), (len(steps) - 1) * steps.shape[1]
    edge = float(chdtri(degrees, FALSE_ALARM))
    if moved > edge and (_trends(steps) or _jumps(parts, W)):
        rows = sum(part.n or 0 for part in parts)
        mostly = float(np.linalg.eigvalsh(steps.T @ steps)[-1]) > MOSTLY_DRIFT * rows
        name = "drifting-control/mostly" if mostly else "drifting-control"
        what = "the mean of the control rows moves"
        findings.append(finding(name, moved, edge, what=what, **place))
    whole, upper = W @ client.control.covariance @ W.T, np.triu_indices(len(W))
    # Scaled to equal variances, as the steps of the means are.
    spreads = np.array([np.sqrt(m.n or 0) * (W @ m.covariance @ W.T - whole)[upper] for m in parts])
    if not _trends(spreads):
        return findings
    first, second = _halves(parts)
    root = inverse_square_root(W @ first.covariance @ W.T)
    values = np.asarray(np.linalg.eigvalsh(root @ W @ second.covariance @ W.T @ root))
    n = [((m.n or 0) - 1) / tail_factor(m) for m in (first, second)]
    changed = float(beyond(values, np.array(ratio_edges(len(W), *n, FALSE_ALARM))))
    if changed > 1:
        what = "the spread of the control rows changes"
        findings.append(finding("drifting-control", changed, 1.0, what=what, **place))
    return findings


def _trends(values: FloatArray) -> bool:
    """Do values of consecutive stretches, shape (K, dims), follow one another more than chance?

    All values must have the same variance, whatever the lengths of the stretches.

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


def _jumps(parts: list[Moments], W: FloatArray) -> bool:
    """Is the middle one of the steps between neighbouring stretches within chance?

    Then rows are independent from one stretch to the next, and the mean moves by a few jumps.
    """
    squares = []
    for a, b in pairwise(parts):
        step = W @ (b.mean - a.mean)
        squares.append(float(step @ step) / (1 / (a.n or 1) + 1 / (b.n or 1)))
    return sorted(squares)[(len(squares) - 1) // 2] <= float(chdtri(len(W), AGREEING))


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


def check_batches(client: Client, means: Means) -> list[Finding]:
    """Findings about batches; none if all rows are in one batch or batches are unknown."""
    wander = means.wander
    if wander is None:
        return []
    findings = []
    if wander.strength > 1:
        where = ", in the direction where they differ most" if wander.uneven else ""
        words = {"size": wander.size, "where": where}
        findings.append(finding("batch-wander", wander.strength, 1.0, client=client.name, **words))
    alone, without = _without_controls(client)
    for name, labels in (("batch-is-regime", alone), ("batch-without-control", without)):
        if labels:
            findings.append(_carried(client, name, labels, wander))
    return findings


def _carried(client: Client, name: str, labels: Iterable[str], wander: BatchVariance) -> Finding:
    """Regimes whose mean is not compared with control rows of its own batch."""
    severity: Severity = "warning"
    if isnan(wander.size):
        cost = (
            "how much batches differ is unknown, because no regime is in two of them: these means "
            "are not used"
        )
    elif wander.strength > 1:
        cost = f"their means are uncertain by the {wander.size:.2g} that batches differ"
    else:
        cost = "batches do not differ by more than chance, so this costs little"
        severity = "info"
    value = None if isnan(wander.size) else wander.size
    words = {"labels": few(labels), "cost": cost}
    return finding(name, value, client=client.name, severity=severity, **words)


def _without_controls(client: Client) -> tuple[list[str], list[str]]:
    """Labels that are alone in all their batches, and others with rows in batches without controls.

    A label that is alone in its batches is one whose offset nothing else shows.
    """
    controls = {batch.name for batch in client.control.batches}
    own = {
        label: {batch.name for m in regimes for batch in m.batches}
        for label, regimes in client.interventions.items()
    }
    alone: list[str] = []
    without: list[str] = []
    for label, batches in own.items():
        if not batches <= controls:
            others = controls.union(*(names for other, names in own.items() if other != label))
            (without if batches & others else alone).append(label)
    return alone, without
