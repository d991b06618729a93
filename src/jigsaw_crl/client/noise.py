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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.nulls import FALSE_ALARM, noise_edge
from jigsaw_crl.client.checks import numerical_rank
from jigsaw_crl.moments.checks import RANK_TOLERANCE
from jigsaw_crl.moments.lattice import common_steps
from jigsaw_crl.moments.regime import Moments

if TYPE_CHECKING:
    from jigsaw_crl.client.client import Client

Reason = Literal["noise", "sensors", "gap", "rank", "features", "uneven", "rows"]

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
# Regimes with fewer rows than this many times the latents are not used: S_j has no good inverse.
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
        - "noise": the other directions look like noise of equal variance;
        - "sensors": they do in units of the noise of each sensor, which is unequal;
        - "gap": the other directions are noise of unequal variance, far below the signal;
        - "rank": the features span `visible` dimensions, up to rounding;
        - "features": there is at most one feature more than labels, so further latents cannot be
          told from noise;
        - "uneven": more directions than labels stand out, but no gap separates them from noise of
          unequal variance, so the labels are counted;
        - "rows": the control has too few rows for the visible directions, so the labels are
          counted.
    """

    used: int
    visible: int
    reason: Reason


def count_latents(control: Moments, others: Sequence[Moments], labels: int) -> LatentCount:
    """The number of latents that the moments of a client with `labels` labels show."""
    d = control.n_features
    if d <= labels:
        return LatentCount(labels, d, "features")
    count = (_exact if control.n is None else _estimated)(control, others, labels)
    if count.used == labels:
        return count
    if control.n is not None and count.used + 1 > control.n:
        return LatentCount(labels, count.visible, "rows")
    # The control has all latents, so a direction that it lacks is none.
    rank = numerical_rank(control.covariance)
    return count if count.used <= rank else LatentCount(max(rank, labels), rank, "rank")


def _exact(control: Moments, others: Sequence[Moments], labels: int) -> LatentCount:
    """The rank of exact moments, without a floor that two or more directions share."""
    values = _descending(_pooled(control, others)[0])
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
    values = _descending(covariance)
    d = len(values)
    rank = int(np.count_nonzero(values > RANK_TOLERANCE * values[0]))
    # Fewer directions than features and rows: there is no noise, or some features are copies.
    degenerate = rank < min(d, degrees)
    if degenerate:
        values, d = values[:rank], rank
        if rank <= labels:
            return LatentCount(labels, rank, "rank")
    found = _first_noise(values, degrees, labels)
    least_bulk = 3 if degenerate else 2
    if found == labels and d - found >= least_bulk:
        return LatentCount(labels, _first_noise(values, degrees, 0), "noise")
    told_apart = True
    for r in () if degenerate else range(labels, min(found, labels + MOST_TRIED)):
        enough, noise = d >= needed_features(r), sensor_noise(control, others, r).variance
        if noise is not None:
            scaled = _descending(covariance / np.sqrt(np.outer(noise, noise)))
            if _first_noise(scaled, degrees, r) == r:
                if enough:
                    return LatentCount(r, _first_noise(scaled, degrees, 0), "sensors")
                # With so few features any number would fit.
                told_apart = False
        if not enough:
            break
    if d - found < least_bulk and degenerate:
        return LatentCount(rank, rank, "rank")
    if d - found >= least_bulk and found > labels and values[found - 1] > GAP * values[found]:
        return LatentCount(found, found, "noise")
    if d == labels + 1:
        return LatentCount(labels, _first_noise(values, degrees, 0), "features")
    ratios = values[labels - 1 : -1] / values[labels:]
    widest = labels + int(np.argmax(ratios))
    if told_apart and d - widest >= least_bulk and ratios.max() > GAP:
        # The gap may also be that at the number of labels, which is then confirmed.
        return LatentCount(widest, widest, "gap")
    return LatentCount(labels, found, "uneven")


def _descending(matrix: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.eigvalsh(matrix)[::-1], dtype=np.float64)


def _first_noise(values: FloatArray, degrees: float, least: int) -> int:
    """The smallest r from `least` on for which all values from r on are within those of noise."""
    d = len(values)
    means = np.cumsum(values[::-1])[::-1] / np.arange(d, 0, -1)
    for r in range(least, d - 1):
        if values[r] <= means[r] * noise_edge(d - r, max(degrees - r, 1.0), FALSE_ALARM):
            return r
    return max(d - 1, least)


def needed_features(latents: int) -> int:
    """Features from which unequal noise can be told from further latents (Ledermann's bound)."""
    spare = 2
    while spare * (spare - 1) // 2 <= latents:
        spare += 1
    return latents + spare


def _pooled(control: Moments, others: Iterable[Moments]) -> tuple[FloatArray, float]:
    """Covariance of the rows within regimes, and its degrees of freedom (infinite if exact)."""
    regimes = (control, *others)
    if control.n is None:
        return np.mean([m.covariance for m in regimes], axis=0), np.inf
    total, degrees = np.zeros_like(control.covariance), 0.0
    for m in regimes:
        total += (m.n or 0) * m.covariance
        degrees += (m.n or 0) - 1
    return total / max(degrees, 1.0), degrees


# -- the noise of each sensor ---------------------------------------------------------------------


class SensorNoise(NamedTuple):
    """How far the sensors' noise is from equal (1 is the edge of chance), and Ψ if it is unequal.

    `variance` has the shape (n_features,); None if the features are too few to tell.
    """

    unevenness: float
    variance: FloatArray | None = None


def sensor_noise(control: Moments, others: Sequence[Moments], r: int) -> SensorNoise:
    """Noise variance of each sensor, if it is unequal, of a client with r latents."""
    covariance, degrees = _pooled(control, others)
    d = len(covariance)
    if d - r < 2 or not np.diagonal(covariance).all():
        return SensorNoise(0.0)
    values, vectors = np.linalg.eigh(covariance)
    floor, off = float(values[: d - r].mean()), vectors[:, : d - r]
    if floor <= RANK_TOLERANCE * float(values.sum()):
        return SensorNoise(0.0)
    beyond = _unevenness((off @ off.T) ** 2, off**2 @ (values[: d - r] / floor - 1), degrees)
    regimes = [
        (float(m.n or 1), m.covariance)
        for m in (control, *others)
        if m.n is None or m.n >= ENOUGH_ROWS * r
    ]
    if beyond <= 1 or not regimes:
        return SensorNoise(beyond)
    try:
        return SensorNoise(beyond, _fitted(regimes, degrees, covariance, r, floor))
    except np.linalg.LinAlgError:
        # Some regime has no variance at all along some direction: it has no noise either.
        return SensorNoise(0.0)


def _fitted(
    regimes: list[tuple[float, FloatArray]],
    degrees: float,
    covariance: FloatArray,
    r: int,
    floor: float,
) -> FloatArray | None:
    """Ψ by Newton's steps; None if they do not settle."""
    least = ROUNDING if np.isinf(degrees) else NEGLIGIBLE * np.sqrt(2.0 / degrees)
    d = len(covariance)
    psi = np.full(d, floor)
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


def _unevenness(H: FloatArray, gap: FloatArray, degrees: float) -> float:
    """The score statistic of equal noise over its quantile; 0 if nothing can be tested."""
    if np.isinf(degrees):
        return float(np.abs(gap).max()) / EVEN
    values, vectors = np.linalg.eigh(H)
    kept = values > SINGULAR * values[-1]
    # The common size of the noise was fitted.
    freedom, g = int(kept.sum()) - 1, gap @ vectors[:, kept]
    if freedom < 1:
        return 0.0
    return 0.5 * degrees * float(g @ (g / values[kept])) / float(chdtri(freedom, FALSE_ALARM))


# -- the space of the latents ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """Leading space and noise of a client, d features in p dimensions (its `n_latent`).

    Eigenvalues and variances are those of the features times `scale`.

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
    # How far the sensors' noise is from equal; 1 is the edge of chance.
    unevenness: float = 0.0
    # What each feature is multiplied by, so that the noise of all sensors is equal; None for 1.
    scale: FloatArray | None = None
    # The user states the noise of every sensor.
    stated: bool = False

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    @property
    def visible(self) -> bool:
        """Whether the floor could be estimated, or something is known of it."""
        return self.rank < len(self.eigenvalues) or self.stated or self.noise_floor > 0

    @property
    def known(self) -> bool:
        """Whether the noise of each sensor is known, and small enough to be taken off."""
        spare = len(self.eigenvalues) - self.rank
        told = self.stated or spare >= SPARE or (spare > 0 and self.noise_floor == 0)
        return told and self.subtracted == self.noise_floor

    @property
    def subtracted(self) -> float:
        """The variance that `project` subtracts: the floor, or a little less than `weakest`."""
        return min(self.noise_floor, MOST_SUBTRACTED * self.weakest)

    @property
    def sensors(self) -> float | FloatArray:
        """The noise variance of each feature as given that `project` subtracts."""
        return self.subtracted if self.scale is None else self.subtracted / self.scale**2

    @property
    def gap(self) -> float:
        """`λ_p / λ_{p+1}`; infinite if λ_{p+1} is zero up to rounding or does not exist."""
        if self.rank == len(self.eigenvalues):
            return float("inf")
        last, below = self.eigenvalues[self.rank - 1 : self.rank + 1].tolist()
        negligible = RANK_TOLERANCE * float(self.eigenvalues[0])
        return float("inf") if below <= negligible else float(last / below)

    @property
    def noise_share(self) -> float:
        """Noise variance over signal variance, both summed over features."""
        noise = self.noise_floor * len(self.eigenvalues)
        signal = float(self.eigenvalues.sum()) - noise
        return noise / signal if signal > 0 else float("inf")

    def project(self, second_moment: FloatArray) -> FloatArray:
        """`Bᵀ S B − σ² I`, shape (p, p): the second moment without the sensors' noise."""
        inner = self.basis.T @ second_moment @ self.basis
        return np.asarray((inner + inner.T) / 2 - self.subtracted * np.eye(self.rank))


def noise_model(client: Client) -> NoiseModel:
    """Leading `n_latent`-dimensional space of a client's features, and the noise of the sensors."""
    rounding = _rounding(client)
    stated = np.array([client.sensor_noise.get(x, np.nan) for x in client.features])
    if client.reduction is None and not np.isnan(stated).any():
        return replace(_with_noise(client, stated**2 + rounding), stated=True)
    if client.n_latent == client.n_features:
        return _with_noise(client, rounding)
    found = _leading(client, None)
    if found.rank + 2 > client.n_features or found.noise_floor == 0:
        return found
    noise = sensor_noise(client.control, client.regimes, client.n_latent)
    if noise.variance is not None:
        found = _leading(client, _equalising(noise.variance)[0])
    return replace(found, unevenness=noise.unevenness)


def _rounding(client: Client) -> FloatArray:
    """The variance that rounding adds to each feature, shape (n_features,)."""
    step = common_steps(m.step for m in (client.control, *client.regimes))
    if step is None:
        return np.zeros(client.n_features)
    fine = np.diagonal(client.control.covariance) >= (FEWEST_STEPS * step) ** 2
    return np.where(fine, step**2 / 12, 0.0)


def _with_noise(client: Client, variance: FloatArray) -> NoiseModel:
    """The model of features whose noise has this variance, shape (n_features,)."""
    if not variance.any():
        return replace(_leading(client, None), noise_floor=0.0)
    scale, typical = _equalising(variance)
    return replace(_leading(client, scale), noise_floor=typical)


def _equalising(variance: FloatArray) -> tuple[FloatArray, float]:
    """Factors that make all sensors as noisy as the typical one, and its variance."""
    typical = float(np.exp(np.log(variance[variance > 0]).mean()))
    return np.sqrt(typical / np.maximum(variance, typical / SPREAD)), typical


def _leading(client: Client, scale: FloatArray | None) -> NoiseModel:
    """The model of the features times `scale`."""
    exact, p, d = client.is_population, client.n_latent, client.n_features
    control = client.control_second_moment()
    # A shift of the mean may be an offset of the sensors, which no latent causes: only exact
    # moments are taken about the control's mean.
    regimes = [m.covariance for m in client.regimes]
    if exact:
        regimes = [S for label in client.labels for S in client.second_moments(label)]

    def summed(weights: FloatArray) -> FloatArray:
        total = weights[0] * control
        for w, S in zip(weights[1:].tolist(), regimes, strict=True):
            total += w * S
        return np.asarray(total if scale is None else scale[:, None] * total * scale)

    # Each regime is scaled to the control's trace, so that none dominates the average; one of fewer
    # than 2d rows is mostly noise and counts as much less.
    traces = np.array([np.trace(S) for S in (control, *regimes)])
    counts = np.array([1.0, *(min((m.n or 2 * d) / (2 * d), 1.0) for m in client.regimes)])
    shares = counts * traces[0] / np.maximum(traces, np.finfo(np.float64).tiny)
    values, vectors = np.linalg.eigh(summed(shares) / counts.sum())
    values, vectors = values[::-1].copy(), vectors[:, ::-1]
    basis = np.ascontiguousarray(vectors[:, :p])
    if scale is not None:
        basis *= scale[:, None]
    weakest = float(np.linalg.eigvalsh(basis.T @ control @ basis)[0])
    floor = 0.0
    if d > p:
        rows = np.array([m.n or 1 for m in (client.control, *client.regimes)], dtype=np.float64)
        beyond = vectors[:, p:]
        floor = float(np.sum(beyond * (summed(rows) @ beyond))) / (rows.sum() * (d - p))
        if not exact:
            # The trailing directions were chosen for their low variance, which costs p degrees of
            # freedom of one sample with the sampling error of the average, `(Σs)² / Σ(s²/n)` rows.
            n = float(shares.sum() ** 2 / np.sum(shares**2 / rows))
            floor *= n / max(n - p, 1.0)
        if floor <= RANK_TOLERANCE * values[0]:
            floor = 0.0
    return NoiseModel(basis, values, floor, weakest, scale=scale)
