"""The noise of the sensors, the number of latents, and the space that the latents span.

With sensor noise, `X = G Z + ε` and `Cov(ε) = Ψ` (diagonal), regime j has the covariance
`C_j = G Σ_j Gᵀ + Ψ`. All regimes share the space of G and Ψ.

*Equal noise*, `Ψ = σ² I`. The covariance of the rows within regimes, with ν degrees of freedom, has
r eigenvalues of signal; the other d − r are those of pure noise with ν − r degrees of freedom: the
largest exceeds their mean by no more than Marchenko–Pastur's edge with Tracy–Widom's margin
(`noise_edge`). The number of latents is the smallest r, at least the number of labels, for which
that holds.

*Unequal noise* is fitted with r latents. In coordinates scaled by a current Ψ, write `A_j` for the
sample covariance, V for an orthonormal basis of the space of G, P for the projector off it,
`S_j = Vᵀ A_j V` and `T_j = S_j − I` (the signal). To first order in δ, the change of log Ψ, and in
E, the turn of V,

    P (A − I) P = P δ P + noise ,      P A_j V = E T_j + P δ V + noise ,

with δ as a diagonal matrix, A the average of the A_j, and the last noise of covariance `S_j/n_j` a
row. Generalised least squares gives E for every δ, and for δ the normal equations `H δ = g`:

    H = (ν/2) P∘P + P∘(V F Vᵀ) ,     F = Σ n_j S_j⁻¹ − B K⁻¹ Bᵀ ,
    B = Σ n_j S_j⁻¹ T_j ,            K = Σ n_j T_j S_j⁻¹ T_j .

The first term of H is that of factor analysis of one sample. The second is what regimes with
different Σ_j add: they share the space of G, which the noise does not. The errors of log Ψ have the
covariance H⁻¹. If the noise is equal, `(ν/2) gᵀ (P∘P)⁺ g` with `g = diag(P (A − I) P)` is about χ²
(Rao's score test), which needs at least two features more than latents. The number of latents is
then the smallest for which the noise is equal in units of Ψ^½. Where the features are too few to
tell the noise of each sensor, the widest gap between eigenvalues decides if it is wide; otherwise
the number of labels is used. Exact moments have the rank that their eigenvalues show.

*Known noise.* Readings that were rounded to a step s have noise of at least `s²/12`, and the user
may state what the sensors add before they are rounded. What is stated of all sensors is Ψ. With as
many latents as features nothing can be estimated, and Ψ is the noise of rounding: whatever else the
sensors add is unknown (`NoiseModel.known`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import AnyArray, FloatArray
from jigsaw_crl.base.nulls import FALSE_ALARM, noise_edge
from jigsaw_crl.client.checks import rank_of
from jigsaw_crl.moments.checks import RANK_TOLERANCE
from jigsaw_crl.moments.lattice import common_steps
from jigsaw_crl.moments.regime import Moments

if TYPE_CHECKING:
    from jigsaw_crl.client.client import Client

# The variance along the weakest direction of the signal exceeds that along the strongest of the
# noise by this factor: variances of unequal sensors follow each other more closely. It gave 357 of
# 500 sampled clients the right number; 1.25 and, where the gap alone decides, 2 gave 354.
GAP = 1.5
# Numbers of latents that are tried with unequal noise.
MOST_TRIED = 8
# Steps on log Ψ: their number, and the share of the sampling error (of rounding, for exact moments)
# at which they end. None is longer than 1.
MOST_STEPS, NEGLIGIBLE, ROUNDING = 60, 0.05, 1e-10
# Exact moments with log Ψ closer than this have equal noise; directions in which P∘P is smaller
# than this share of its largest eigenvalue are not determined.
EVEN = SINGULAR = 1e-6
# A sensor's noise is at most this many times below or above the typical one: a sensor without noise
# of its own would otherwise be the only one that counts.
SPREAD = 1e3
# Regimes with fewer rows than this many times the latents (of gains: the features) are not used:
# S_j has no good inverse.
ENOUGH_ROWS = 4
# The floor is an estimate: subtracting more than this share of the weakest direction could leave a
# covariance that is not positive definite.
MOST_SUBTRACTED = 0.9
# With fewer features beyond the latents than this, the noise of each sensor is not known well.
SPARE = 3
# Rounding adds s²/12 to the variance of a feature whose standard deviation is at least so many
# steps; what it adds to a narrower one depends on where its values lie.
FEWEST_STEPS = 0.5


# -- the number of latents ------------------------------------------------------------------------


@dataclass(frozen=True)
class LatentCount:
    """The number of latents that a client's features show, and what it rests on.

    Parameters
    ----------
    used : int
        The number of latents to use: at least the number of labels.
    visible : int
        Directions that stand out of the noise; fewer than the labels if some latents are drowned.
    reason : {"noise", "sensors", "gap", "rank", "features", "uneven", "rows"}
        "noise", "sensors", "gap": the other directions look like noise of equal variance, do so in
        units of the noise of each sensor, or are far below the signal; "rank": the features span
        `visible` dimensions, up to rounding. Otherwise the labels are counted. "features": there is
        at most one feature more; "uneven": more directions stand out, but no gap separates them
        from noise of unequal variance; "rows": the control has too few rows for them.
    """

    used: int
    visible: int
    reason: Literal["noise", "sensors", "gap", "rank", "features", "uneven", "rows"]


def count_latents(control: Moments, others: Sequence[Moments], labels: int) -> LatentCount:
    """The number of latents that the moments of a client with `labels` labels show."""
    d = len(control.mean)
    if d <= labels:
        return LatentCount(labels, d, "features")
    count = (_exact if control.n is None else _estimated)(control, others, labels)
    if count.used == labels:
        return count
    if control.n is not None and count.used + 1 > control.n:
        return LatentCount(labels, count.visible, "rows")
    # The control has all latents, so a direction that it lacks is none.
    rank = rank_of(control.covariance)
    return count if count.used <= rank else LatentCount(max(rank, labels), rank, "rank")


def _exact(control: Moments, others: Sequence[Moments], labels: int) -> LatentCount:
    """The rank of exact moments, without a floor that two or more directions share."""
    values = np.linalg.eigvalsh(_pooled(control, others)[0])[::-1]
    rounding = RANK_TOLERANCE * values[0]
    rank = int(np.count_nonzero(values > rounding))
    if rank < len(values):
        return LatentCount(max(rank, labels), rank, "rank")
    above = int(np.count_nonzero(values - values[-1] > rounding))
    if above == len(values) - 1:
        # Any covariance has one lowest direction: it may be noise or a latent.
        return LatentCount(labels, above, "features" if above == labels else "uneven")
    return LatentCount(max(above, labels), above, "noise")


def _estimated(control: Moments, others: Sequence[Moments], labels: int) -> LatentCount:
    """The number of directions that stand out of the noise of a sample."""
    covariance, degrees = _pooled(control, others)
    values = np.linalg.eigvalsh(covariance)[::-1]
    d = len(values)
    rank = int(np.count_nonzero(values > RANK_TOLERANCE * values[0]))
    # Fewer directions than features and rows: there is no noise, or some features are copies.
    degenerate = rank < min(d, degrees)
    if degenerate:
        values, d = values[:rank], rank
        if rank <= labels:
            return LatentCount(labels, rank, "rank")
    found = first_noise(values, degrees, labels)
    least_bulk = 3 if degenerate else 2
    if found == labels and d - found >= least_bulk:
        return LatentCount(labels, first_noise(values, degrees, 0), "noise")
    told_apart = True
    for r in () if degenerate else range(labels, min(found, labels + MOST_TRIED)):
        enough, noise = d >= needed_features(r), sensor_noise(control, others, r)[1]
        if noise is not None:
            scaled = np.linalg.eigvalsh(covariance / np.sqrt(np.outer(noise, noise)))[::-1]
            if first_noise(scaled, degrees, r) == r:
                if enough:
                    return LatentCount(r, first_noise(scaled, degrees, 0), "sensors")
                # With so few features any number would fit.
                told_apart = False
        if not enough:
            break
    if d - found < least_bulk and degenerate:
        return LatentCount(rank, rank, "rank")
    if d - found >= least_bulk and found > labels and values[found - 1] > GAP * values[found]:
        return LatentCount(found, found, "noise")
    if d == labels + 1:
        return LatentCount(labels, first_noise(values, degrees, 0), "features")
    ratios = values[labels - 1 : -1] / values[labels:]
    widest = labels + int(np.argmax(ratios))
    if told_apart and d - widest >= least_bulk and ratios.max() > GAP:
        # The gap may also be that at the number of labels, which is then confirmed.
        return LatentCount(widest, widest, "gap")
    return LatentCount(labels, found, "uneven")


def first_noise(
    values: AnyArray, degrees: float, least: int, d: int | None = None, rest: float = 0.0
) -> int:
    """The smallest r from `least` on for which all values from r on are within those of noise.

    `values` are the largest of d eigenvalues, by default all; the others sum to `rest`.
    """
    d = len(values) if d is None else d
    last = min(len(values), d - 1)
    means = (np.cumsum(values[::-1])[::-1] + rest) / (d - np.arange(len(values)))
    for r in range(least, last):
        if values[r] <= means[r] * noise_edge(d - r, max(degrees - r, 1.0), FALSE_ALARM):
            return r
    return max(last, least)


def needed_features(latents: int) -> int:
    """Features from which unequal noise can be told from further latents (Ledermann's bound)."""
    # The fewest spare ones s with s(s − 1)/2 > latents.
    return latents + (1 + isqrt(8 * latents + 1)) // 2 + 1


def _pooled(control: Moments, others: Iterable[Moments]) -> tuple[FloatArray, float]:
    """Covariance of the rows within regimes, and its degrees of freedom (infinite if exact)."""
    regimes = (control, *others)
    if control.n is None:
        return np.mean([m.covariance for m in regimes], axis=0), np.inf
    degrees = float(sum((m.n or 0) - 1 for m in regimes))
    return np.asarray(sum((m.n or 0) * m.covariance for m in regimes)) / max(degrees, 1.0), degrees


# -- the noise of each sensor ---------------------------------------------------------------------


def sensor_noise(
    control: Moments, others: Sequence[Moments], r: int
) -> tuple[float, FloatArray | None]:
    """How far the noise of the sensors of a client with r latents is from equal, and its variance.

    1 is the edge of chance. The variance of each sensor, shape (n_features,), is None if the noise
    is equal, or the features are too few to tell.
    """
    covariance, degrees = _pooled(control, others)
    d = len(covariance)
    if d - r < 2 or not np.diagonal(covariance).all():
        return 0.0, None
    values, vectors = np.linalg.eigh(covariance)
    floor, off = float(values[: d - r].mean()), vectors[:, : d - r]
    if floor <= RANK_TOLERANCE * float(values.sum()):
        return 0.0, None
    # The score statistic of equal noise over its quantile; 0 if nothing can be tested.
    gap = off**2 @ (values[: d - r] / floor - 1)
    beyond = float(np.abs(gap).max()) / EVEN
    if control.n is not None:
        sizes, turn = np.linalg.eigh((off @ off.T) ** 2)
        kept = sizes > SINGULAR * sizes[-1]
        # The common size of the noise was fitted.
        freedom, g = int(kept.sum()) - 1, gap @ turn[:, kept]
        edge = float(chdtri(freedom, FALSE_ALARM)) if freedom else np.inf
        beyond = 0.5 * degrees * float(g @ (g / sizes[kept])) / edge
    # What is unequal is fitted in units of each feature, so that the user's units do not matter.
    unit = np.sqrt(np.diagonal(covariance))
    ratio = np.outer(unit, unit)
    regimes = [
        (float(m.n or 1), m.covariance / ratio)
        for m in (control, *others)
        if m.n is None or m.n >= ENOUGH_ROWS * r
    ]
    if beyond <= 1 or not regimes:
        return beyond, None
    try:
        psi = _fitted(regimes, degrees, covariance / ratio, r)
        return beyond, None if psi is None else psi * unit**2
    except np.linalg.LinAlgError:
        # Some regime has no variance at all along some direction: it has no noise either.
        return 0.0, None


def _fitted(
    regimes: list[tuple[float, FloatArray]],
    degrees: float,
    covariance: FloatArray,
    r: int,
) -> FloatArray | None:
    """Ψ by Newton's steps; None if they do not settle."""
    least = ROUNDING if np.isinf(degrees) else NEGLIGIBLE * np.sqrt(2.0 / degrees)
    d = len(covariance)
    psi = np.full(d, float(np.linalg.eigvalsh(covariance)[: d - r].mean()))
    if degrees > 2 * d:
        # What the other sensors do not explain: a noisy one is not taken for a latent then.
        psi = 1 / np.diagonal(np.linalg.inv(covariance))
    V = np.linalg.eigh(covariance / np.sqrt(np.outer(psi, psi)))[1][:, -r:]
    for _ in range(MOST_STEPS):
        H, g, alone, along = _equations(regimes, np.sqrt(psi), V)
        H[np.diag_indices(d)] += SINGULAR * float(np.trace(H)) / d
        step = np.asarray(np.linalg.solve(H, g), dtype=np.float64)
        step /= max(float(np.abs(step).max()), 1.0)
        before, psi = psi, psi * np.exp(step)
        typical = float(np.exp(np.log(psi).mean()))
        psi = np.clip(psi, typical / SPREAD, typical * SPREAD)
        # The space in the new units, turned.
        turned = (V + alone - along(step)) * np.sqrt(before / psi)[:, None]
        V = np.asarray(np.linalg.qr(turned)[0], dtype=np.float64)
        if float(np.abs(np.log(psi / before)).max()) <= least:
            return psi if np.diagonal(np.linalg.inv(H)).min() > 0 else None
    return None


def _equations(
    regimes: list[tuple[float, FloatArray]], root: FloatArray, V: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, Callable[[FloatArray], FloatArray]]:
    """H and g of the module's docstring, and the turn `P E` of V as a function of δ."""
    d, r = V.shape
    P = np.eye(d) - V @ V.T
    average, identity = np.zeros(d), np.eye(r)
    J, B, K = np.zeros((3, r, r))
    Y, Z, total = np.zeros((d, r)), np.zeros((d, r)), 0.0
    for n, C in regimes:
        image = (C @ (V / root[:, None])) / root[:, None]
        S = V.T @ image
        inner = np.linalg.inv(S)
        T = S - identity
        outside = image - V @ S
        J += n * inner
        B += n * (inner @ T)
        K += n * (T @ inner @ T)
        Y += n * outside @ inner
        Z += n * outside @ inner @ T
        # diag(P A P), without the product of the large matrices.
        across = np.einsum("dr,dr->d", V, outside)
        average += n * (np.diagonal(C) / root**2 - np.einsum("dr,dr->d", V @ S, V) - 2 * across)
        total += n
    K[np.diag_indices(r)] += SINGULAR * float(np.trace(K)) / r
    inverse = np.linalg.inv(K)
    F = J - B @ inverse @ B.T
    H = 0.5 * total * P**2 + P * (V @ F @ V.T)
    g = 0.5 * (average - total * np.diagonal(P))
    g = g + np.einsum("dr,dr->d", Y - Z @ inverse @ B.T, V)
    return H, g, Z @ inverse, lambda step: P @ (step[:, None] * V) @ B @ inverse


# -- the space of the latents ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """Leading space and noise of a client, d features in p dimensions (its `n_latent`).

    Eigenvalues, floor and `weakest` are variances of the features times `scale`.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> from jigsaw_crl.client.noise import noise_model
    >>> client = jc.simulate.setting("A", 0).client(0)
    >>> model = noise_model(client)
    >>> model.basis.shape == (client.n_features, client.n_latent), model.noise_floor
    (True, 0.0)
    """

    # Takes features to the leading space, shape (d, p): orthonormal columns times `scale`.
    basis: FloatArray
    # Of the average covariance of the regimes, largest first; exact moments are about the control's
    # mean.
    eigenvalues: FloatArray
    # σ², the variance of the sensor noise in each direction; 0 if there is none, or if there are as
    # many latents as features, so that it cannot be estimated, and nothing is known of it.
    noise_floor: float
    # Smallest variance of the control along any direction of the leading space.
    weakest: float
    # What each feature is multiplied by, so that the noise of all sensors is equal; None for 1.
    scale: FloatArray | None
    # The noise variance of each feature that is subtracted, shape (d,): the floor, or a little less
    # than `weakest`.
    sensors: FloatArray
    # Whether the floor could be estimated, or something is known of it.
    visible: bool
    # Whether the noise of each sensor is known, and small enough to be taken off.
    known: bool
    # How far the sensors' noise is from equal; 1 is the edge of chance.
    unevenness: float
    # `λ_p / λ_{p+1}`; infinite if λ_{p+1} is zero up to rounding or does not exist.
    gap: float
    # Noise variance over signal variance, both summed over features. Where sensors are unequal, in
    # units of each feature: in those of its noise, one quiet sensor would be most of the signal.
    noise_share: float


def noise_model(client: Client) -> NoiseModel:
    """Leading `n_latent`-dimensional space of a client's features, and the noise of the sensors."""
    p, d = client.n_latent, client.n_features
    spare = d - p
    given = np.array([client.sensor_noise.get(x, np.nan) for x in client.features])
    stated = client.reduction is None and not np.isnan(given).any()
    scale, stated_floor, unevenness = None, None, 0.0
    if stated or not spare:
        variance = given**2 if stated else np.zeros(d)
        step = common_steps(m.step for m in (client.control, *client.regimes))
        if step is not None:
            fine = np.diagonal(client.control.covariance) >= (FEWEST_STEPS * step) ** 2
            variance += np.where(fine, step**2 / 12, 0.0)
        scale, stated_floor = _equalising(variance)
    basis, values, weakest, floor = _leading(client, scale)
    if stated_floor is not None:
        floor = stated_floor
    elif spare >= 2 and floor > 0:
        unevenness, uneven = sensor_noise(client.control, client.regimes, p)
        if uneven is not None:
            scale, _ = _equalising(uneven)
            basis, values, weakest, floor = _leading(client, scale)
    subtracted = min(floor, MOST_SUBTRACTED * weakest)
    below = float(values[p]) if spare else 0.0
    signal, noise = float(values.sum()) - floor * d, floor * d
    if scale is not None:
        variance = np.maximum(np.diagonal(client.control.covariance), np.finfo(np.float64).tiny)
        noise = float(np.minimum(floor / (scale**2 * variance), 1.0).sum())
        signal = d - noise
    return NoiseModel(
        basis,
        values,
        floor,
        weakest,
        scale,
        sensors=np.full(d, subtracted) / (1.0 if scale is None else scale**2),
        visible=spare > 0 or stated or floor > 0,
        known=subtracted == floor and (stated or spare >= SPARE or (spare > 0 and floor == 0)),
        unevenness=unevenness,
        gap=float(values[p - 1]) / below if below > RANK_TOLERANCE * values[0] else np.inf,
        noise_share=noise / signal if signal > 0 else np.inf,
    )


def _equalising(variance: FloatArray) -> tuple[FloatArray | None, float]:
    """Factors that make all sensors as noisy as the typical one, and its variance.

    A sensor without noise counts as one with little of it.
    """
    if not variance.any():
        return None, 0.0
    typical = float(np.exp(np.log(variance[variance > 0]).mean()))
    return np.sqrt(typical / np.where(variance > 0, variance, typical / SPREAD)), typical


def _leading(
    client: Client, scale: FloatArray | None
) -> tuple[FloatArray, FloatArray, float, float]:
    """Basis, eigenvalues, weakest variance and estimated floor of the features times `scale`."""
    p, d = client.n_latent, client.n_features
    # A shift of the mean may be an offset of the sensors, which no latent causes: only exact
    # moments are taken about the control's mean.
    every = [client.control_second_moment, *(m.covariance for m in client.regimes)]
    if client.is_population:
        every[1:] = [S for label in client.labels for S in client.second_moments(label)]
    # Each regime is scaled to the control's trace, so that none dominates the average; one of fewer
    # than 2d rows is mostly noise and counts as much less.
    traces = np.array([np.trace(S) for S in every])
    counts = np.array([1.0, *(min((m.n or 2 * d) / (2 * d), 1.0) for m in client.regimes)])
    shares = counts * traces[0] / np.maximum(traces, np.finfo(np.float64).tiny)
    average = sum(w * S for w, S in zip(shares.tolist(), every, strict=True)) / counts.sum()
    units = np.ones(d) if scale is None else scale
    values, vectors = np.linalg.eigh(units[:, None] * average * units)
    values, vectors = values[::-1].copy(), vectors[:, ::-1]
    basis = np.ascontiguousarray(vectors[:, :p]) * units[:, None]
    weakest = float(np.linalg.eigvalsh(basis.T @ every[0] @ basis)[0])
    floor = 0.0
    if d > p:
        beyond = vectors[:, p:] * units[:, None]
        rows = np.array([m.n or 1 for m in (client.control, *client.regimes)], dtype=np.float64)
        total = np.asarray(sum(n * S for n, S in zip(rows.tolist(), every, strict=True)))
        floor = float(np.sum(beyond * (total @ beyond))) / (rows.sum() * (d - p))
        if not client.is_population:
            # The trailing directions were chosen for their low variance, which costs p degrees of
            # freedom of one sample with the sampling error of the average, `(Σs)² / Σ(s²/n)` rows.
            n = float(shares.sum() ** 2 / np.sum(shares**2 / rows))
            floor *= n / max(n - p, 1.0)
        if floor <= RANK_TOLERANCE * values[0]:
            floor = 0.0
    return basis, values, weakest, floor
