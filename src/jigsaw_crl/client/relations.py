"""Sensors that do not respond linearly: they break the relations between sensors.

With `X = c + G Z + ε`, p latents and d > p features, there are d − p relations b with `bᵀG = 0`.
The mean of `bᵀX` and its covariances are then `bᵀc` and `bᵀΨ` in every regime, whatever the system
and its interventions are. A sensor that bends, or whose gain, offset or noise changes between
regimes, breaks the relations that it takes part in, and no others.

Each feature is taken in units of what the others do not explain. Within regimes, let V be the p
directions of most variance and N the others. With the covariance A_j of regime j, `S_j = Vᵀ A_j V`,
and its mean μ_j,

    S_j⁻¹ Vᵀ A_j N = E + S_j⁻¹ D ,        Nᵀ μ_j = Eᵀ Vᵀ μ_j + f

with the same E, D and f in all regimes, even where N and V are only near the relations and the
space of G. Relations are the columns of `B = N − V E`. Given the latents, the errors of the two
equations are independent from regime to regime, with covariances `S_j⁻¹/n_j` and `1/n_j` between
their rows, and `Bᵀ A B` between their columns (A the average of the A_j). In units of these errors,
the residuals R of least squares have ν degrees of freedom for each relation, and `|R|²` is χ² with
ν (d − p). A sensor adds to R along its own row of B alone. So the sensor along whose row R is
largest is left out, and all begins again, until the relations of the others hold.

A sensor that varies within no regime, or that repeats another one in other units, is left out
first: its relation has no variance, so that the others do not look like noise beside it, and every
direction would pass for a latent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.base.nulls import CLEARLY, FALSE_ALARM
from jigsaw_crl.client.noise import ENOUGH_ROWS, MOST_TRIED, LatentCount, count_latents
from jigsaw_crl.moments.checks import RANK_TOLERANCE, varying
from jigsaw_crl.moments.regime import Moments

# Where many sensors break relations, all of them drift, or latents are miscounted: most relations
# must be left to show that the others hold. Where it was half of them, 3 of 60 clients with hidden
# latents and 1 of 60 whose gains drift lost sensors.
MOST_BENT, SHARE_BENT = 3, 1 / 3
# A sensor takes part in relations if they explain this share of it. Those that alone show what
# passes for a latent had mostly below .1, those that share a hidden latent above .6.
TAKES_PART = 0.5
# Two regimes can be fitted by any relations.
FEWEST_REGIMES = 3


def linear_sensors(
    control: Moments, others: Sequence[Moments], labels: int, n_latent: int | None
) -> tuple[LatentCount | None, dict[int, float]]:
    """The number of latents, None if it is given, and how clearly each sensor that bends does.

    What a bent sensor adds may pass for a latent, so fewer are tried. 1 is the edge of chance; 0
    stands for a sensor that says nothing of its own.
    """
    every = (control, *others)
    own = _own(every, labels if n_latent is None else n_latent)
    idle = dict.fromkeys(np.setdiff1d(np.arange(len(control.mean)), own).tolist(), 0.0)
    if n_latent is not None:
        return None, idle | (_bent(every, n_latent, own) or {})
    first, *rest = (m.select(own) for m in every) if idle else every
    counted = count_latents(first, rest, labels)
    for p in range(labels, min(counted.used, labels + MOST_TRIED) + 1):
        bent = _bent(every, p, own)
        if bent is not None and not bent:
            break
        if bent:
            first, *rest = (m.select(np.setdiff1d(own, list(bent))) for m in every)
            again = count_latents(first, rest, labels)
            # A hidden latent breaks relations as well: the latents must be seen, and one more must
            # not explain the sensor.
            misfit, _, part = _misfit(every, p + 1, own)
            hidden = misfit <= CLEARLY and part[np.isin(own, list(bent))].min() > TAKES_PART
            seen = again.reason not in ("features", "uneven", "rows")
            if again.used == p and seen and not hidden:
                return again, idle | bent
    return counted, idle


def broken_relations(regimes: Sequence[Moments], latents: int) -> float:
    """How far the relations between all sensors are from holding; 1 is the edge of chance.

    They hold in a system that bends, and break if many sensors do. 0 if there are too few to tell,
    or if one more latent explains it.
    """
    own = _own(regimes, latents)
    tried = [p for p in (latents, latents + 1) if p < len(own) - 1]
    return min((_misfit(regimes, p, own)[0] for p in tried), default=0.0)


def _own(regimes: Sequence[Moments], latents: int) -> IntArray:
    """Sensors that vary within some regime, and do not repeat an earlier one.

    Without any noise, sensors repeat what others say together: then all that vary are kept.
    """
    varies = np.any([varying([(m.mean, m.covariance)]) for m in regimes], axis=0)
    every = np.flatnonzero(varies)
    if len(every) <= latents:
        return np.arange(len(varies), dtype=np.intp)
    if regimes[0].n is None:
        return every
    A = np.sum([(m.n or 0) * m.covariance[np.ix_(every, every)] for m in regimes], axis=0)
    unit = np.sqrt(np.diagonal(A))
    A /= np.outer(unit, unit)
    alone = ~(np.triu(np.abs(A), 1) > 1.0 - RANK_TOLERANCE).any(axis=0)
    values = np.linalg.eigvalsh(A[np.ix_(alone, alone)])
    noisy = alone.sum() > latents and values[0] > RANK_TOLERANCE * values[-1]
    return every[alone] if noisy else every


def _bent(regimes: Sequence[Moments], p: int, own: IntArray) -> dict[int, float] | None:
    """The sensors without which the relations of p latents hold; None if few do not explain it."""
    spare, bent = len(own) - p, dict[int, float]()
    most = min(max(int(SHARE_BENT * spare), 1), MOST_BENT)
    while spare > 1:
        kept = np.setdiff1d(own, list(bent))
        misfit, left, _ = _misfit(regimes, p, kept)
        if misfit <= (1.0 if bent else CLEARLY):
            break
        first, second = np.argsort(left)[:2]
        # Nothing is named where another sensor in its place would do.
        if len(bent) == most or left[second] <= 1.0:
            return None
        bent[int(kept[first])] = misfit
    return bent


def _misfit(
    regimes: Sequence[Moments], p: int, kept: IntArray
) -> tuple[float, FloatArray, FloatArray]:
    """How far the relations between some sensors are from holding, and how far without each.

    1 is the edge of chance. The last value is the share of each sensor that relations explain.
    """
    regimes = [m for m in regimes if m.n is not None and m.n >= ENOUGH_ROWS * p]
    if len(regimes) < FEWEST_REGIMES:
        return 0.0, np.zeros(len(kept)), np.zeros(len(kept))
    n = np.array([m.n for m in regimes], dtype=np.float64)
    C = [m.covariance[np.ix_(kept, kept)] for m in regimes]
    A = np.average(C, axis=0, weights=n)
    # Sensors without any noise have that of rounding.
    A[np.diag_indices(len(A))] *= 1.0 + RANK_TOLERANCE
    unit = np.sqrt(np.diagonal(np.linalg.inv(A)))
    A = unit[:, None] * A * unit
    size, vectors = np.linalg.eigh(A)
    N, V = vectors[:, :-p], vectors[:, -p:] / np.sqrt(size[-p:])
    rows, values = list[FloatArray](), list[FloatArray]()
    for m, own, weight in zip(regimes, C, n, strict=True):
        image = (unit[:, None] * own * unit) @ V
        # A target that is held has no variance, and its direction says nothing.
        spread, turn = np.linalg.eigh(V.T @ image)
        seen = spread > RANK_TOLERANCE * spread[-1]
        root = np.sqrt(weight * spread[seen])[:, None]
        # In these directions, errors of the first equation are independent.
        S = turn[:, seen].T
        rows.append(root * np.hstack([S, S / spread[seen, None], np.zeros((len(S), 1))]))
        values.append(root / spread[seen, None] * (S @ image.T @ N))
        if not m.batches:
            # Means of batches have offsets of their own.
            rate, shift = np.sqrt(m.mean_rows), unit * (m.mean - regimes[0].mean)[kept]
            rows.append(rate * np.hstack([shift @ V, np.zeros(p), [1.0]])[None])
            values.append(rate * (shift @ N)[None])
    X, Y = np.vstack(rows), np.vstack(values)
    found, _, rank, _ = np.linalg.lstsq(X, Y, rcond=None)
    B = N - V @ found[:p]
    size, turn = np.linalg.eigh(B.T @ A @ B)
    R, B = (Y - X @ found) @ turn / np.sqrt(size), B @ turn / np.sqrt(size)
    part = np.sum(B**2, axis=1)
    along = np.sum((R @ B.T) ** 2, axis=0) / np.maximum(part, np.finfo(np.float64).tiny)
    free, q, total = len(X) - int(rank), R.shape[1], float(np.sum(R**2))
    most, less = (float(chdtri(max(free * k, 1), FALSE_ALARM)) for k in (q, q - 1))
    return total / most, (total - along) / less, part
