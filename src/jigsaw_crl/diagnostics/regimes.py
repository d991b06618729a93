"""Does each regime look like an intervention on one node?

In coordinates whitened by the control, a regime's second moment is `M = I + D`. For a single-node
intervention D has at most one positive and one negative eigenvalue. So, against the null of the
ratio of two sample covariances:

- if neither the largest nor the smallest eigenvalue of M leaves it, the regime is too weak to see;
- if the second largest or second smallest does, the regime moves more than one node. (With
  signature (1, 1) the second largest eigenvalue of M lies below the largest of the null, so the
  test is exact or conservative.)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.extremes import TOGETHER, Extremes, Form, Regimes, extreme_pairs
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.diagnostics.labels import several_targets, weak_intervention
from jigsaw_crl.client.nulls import ratio_edges
from jigsaw_crl.moments.regime import Moments, inverse_square_root, second_moment_about, solve_lower

__all__ = ["Contrast", "check_regimes", "contrast", "excess_spread"]

FloatArray = npt.NDArray[np.float64]

# Chance of a false alarm of one kind in one client.
FALSE_ALARM = 1e-3
# Two regimes this many times further apart than samples of one law are on average need no test:
# even tails four times as heavy as a Gaussian's do not explain that.
CLEARLY_APART = 16.0
# Eigenvalues are needed to this share of the interval that chance fills.
CLOSE = 1e-2
# Rows of a random sketch: distances between regimes are then known to about a half, and those
# between samples of one law, which differ in all directions, much better.
SKETCH = 8
# The same moments to this relative difference are the same rows.
SAME_ROWS = 1e-9


@dataclass(frozen=True, eq=False)
class Contrast:
    """Eigenvalues of one regime against another, and the interval that holds them by chance."""

    values: Sequence[float]
    low: float
    high: float

    @property
    def seen(self) -> bool:
        """Does any direction differ?"""
        return bool(self.values[-1] > self.high or self.values[0] < self.low)

    @property
    def strength(self) -> float:
        """Size of the strongest direction on a log scale; 1 is the edge of chance."""
        return _beyond(self.values[0], self.values[-1], self.low, self.high)

    @property
    def third(self) -> float:
        """The same for the strongest direction beside one increase and one decrease."""
        if len(self.values) < 2:
            return 0.0
        return _beyond(self.values[1], self.values[-2], self.low, self.high)


def _beyond(lowest: float, highest: float, low: float, high: float) -> float:
    return max(log(highest) / log(high), log(lowest) / log(low))


def excess_spread(moments: Moments) -> float:
    """The factor by which heavy tails increase the variance of a variance: `(κ − 1)/2`, at least 1.

    κ is the mean kurtosis of the features (3 for Gaussian rows). Divided by this factor, n is the
    number of Gaussian rows with the same error.
    """
    if moments.fourth is None:
        return 1.0
    variance = np.diagonal(moments.covariance)
    live = variance > 0
    kurtosis = float(np.mean(moments.fourth[live] / variance[live] ** 2))
    return max(1.0, (kurtosis - 1) / 2)


def contrast(
    base: FloatArray,
    base_moments: Moments,
    other: FloatArray,
    moments: Moments,
    level: float,
) -> Contrast:
    """Eigenvalues of `base^(−½) other base^(−½)` and their null interval.

    `base` and `other` are second moments in the reduced space.
    """
    root = inverse_square_root(base)
    values = _positive(np.asarray(np.linalg.eigvalsh(root @ other @ root), dtype=np.float64))
    return Contrast(values.tolist(), *_edges(base, base_moments, moments, level))


def _positive(values: FloatArray) -> FloatArray:
    return np.maximum(values, np.finfo(np.float64).tiny)


def _edges(
    base: FloatArray, base_moments: Moments, moments: Moments, level: float
) -> tuple[float, float]:
    """Interval that holds the eigenvalues of one regime against another by chance."""
    p = len(base)
    if base_moments.n is None or moments.n is None:
        size = np.linalg.eigvalsh(base)
        rounding = 100 * p * np.finfo(np.float64).eps * max(float(size[-1] / size[0]), 1.0)
        return 1 / (1 + rounding), 1 + rounding
    m = (base_moments.n - 1) / excess_spread(base_moments)
    n = moments.n / excess_spread(moments)
    return ratio_edges(p, m, n, level)


def check_regimes(
    client: Client, spectrum: Spectrum
) -> tuple[list[Finding], dict[str, float], Extremes]:
    """Findings about the regimes, the strength of each label, and the regimes' extreme eigenpairs.

    A strength of 1 is the edge of chance. The eigenpairs are the outermost ones of every regime in
    the coordinates `L⁻¹ Bᵀ x`, with `L Lᵀ` the control's covariance, noise included, in the leading
    space B.
    """
    regimes = [(label, m) for label, ms in client.interventions.items() for m in ms]
    level = FALSE_ALARM / len(regimes)
    base = _inner(client.control_second_moment(), spectrum)
    L: FloatArray = np.asarray(np.linalg.cholesky(base), dtype=np.float64)
    W = np.ascontiguousarray(solve_lower(L, spectrum.basis.T))
    form = Form(Regimes.of(client), W)
    strength: dict[str, float] = {}
    third: dict[str, float] = {}
    edges, extremes = _against_control(client, form, base, level)
    outermost = extremes.values if len(base) > 1 else extremes.values[:, :1]
    for (label, _), edge, values in zip(regimes, edges, _positive(outermost).tolist(), strict=True):
        c = Contrast(values, *edge)
        strength[label] = max(strength.get(label, 0.0), c.strength)
        if c.third > 1:
            third.setdefault(label, c.third)
    several = [several_targets(client.name, label, x) for label, x in third.items()]
    findings = [*several, *_same_regimes(client, spectrum, form, extremes, level, strength)]
    copies = {f.regime for f in findings if f.check == "duplicated-regime"}
    weak = [label for label, s in strength.items() if s <= 1 and label not in copies]
    for label in weak:
        more = None if client.is_population else (1 / max(strength[label], 0.1)) ** 2
        findings.append(weak_intervention(client.name, label, strength[label], more_rows=more))
    if len(weak) == len(strength):
        findings.append(_no_signal(client, max(strength.values())))
    if sum(f.severity == "error" for f in several) >= 2:
        findings += _swapped_control(client, spectrum, level)
    return findings, strength, extremes


def _against_control(
    client: Client, form: Form, base: FloatArray, level: float
) -> tuple[list[tuple[float, float]], Extremes]:
    """The interval of chance of every regime, and its two outermost eigenpairs at either end."""
    moments = [m for ms in client.interventions.values() for m in ms]
    if client.is_population:
        edges = [_edges(base, client.control, client.control, level)] * len(moments)
    else:
        m0 = ((client.control.n or 0) - 1) / excess_spread(client.control)
        sizes = [(m.n or 0) / excess_spread(m) for m in moments]
        edges = [ratio_edges(len(base), m0, n, level) for n in sizes]
    low, high = np.array(edges).T
    inside = np.repeat(low[:, None], 4, axis=1), np.repeat(high[:, None], 4, axis=1)
    return edges, extreme_pairs(form, inside, CLOSE * (high - low))


def _inner(second_moment: FloatArray, spectrum: Spectrum) -> FloatArray:
    """A second moment in the leading space, noise included: both sides of a contrast have it."""
    return np.asarray(spectrum.basis.T @ second_moment @ spectrum.basis)


def _second(moments: Moments, centre: Moments, spectrum: Spectrum) -> FloatArray:
    return _inner(second_moment_about(moments, centre.mean), spectrum)


def _no_signal(client: Client, strongest: float) -> Finding:
    return Finding(
        "no-signal",
        "error",
        "no regime differs from the control: the data carry no signal about the order",
        "Check that the regime column is right; otherwise intervene more strongly or take more "
        "rows.",
        value=strongest,
        threshold=1.0,
        client=client.name,
    )


def _same_regimes(
    client: Client,
    spectrum: Spectrum,
    form: Form,
    extremes: Extremes,
    level: float,
    strength: Mapping[str, float],
) -> Iterator[Finding]:
    """Findings about regimes with the same rows, or the same law, as another one."""
    regimes = [(label, m) for label, ms in client.interventions.items() for m in ms]
    named = [(client.control_name, client.control), *regimes]
    variances = np.array([np.diagonal(m.covariance) for _, m in named])
    for i, j, distance in _nearest_before(form):
        (label, m), (other, twin) = named[i], named[j]
        if m.n == twin.n and _same_rows(m, twin, variances[i], variances[j]):
            yield Finding(
                "duplicated-regime",
                "error",
                f"the regime holds the same rows as {other!r}",
                "Replace the copy by the rows that belong there.",
                value=0.0,
                threshold=SAME_ROWS,
                client=client.name,
                regime=label,
            )
            continue
        if j == 0 or other == label or min(strength[label], strength[other]) <= 1:
            continue
        if m.n is None or twin.n is None or distance > CLEARLY_APART * (1 / m.n + 1 / twin.n):
            continue
        if _differ_along(form, extremes, i - 1, j - 1, _edges(form.W, twin, m, level)):
            continue
        seconds = [_second(x, client.control, spectrum) for x in (twin, m)]
        c = contrast(seconds[0], twin, seconds[1], m, level)
        if not c.seen:
            yield Finding(
                "like-regimes",
                "warning",
                f"the regime cannot be told from {other!r}, though both differ from the control: "
                "they may be one intervention under two labels",
                "Check the labels.",
                value=c.strength,
                threshold=1.0,
                client=client.name,
                regime=label,
            )


def _differ_along(
    form: Form, extremes: Extremes, i: int, j: int, edges: tuple[float, float]
) -> bool:
    """Does `vᵀM_i v / vᵀM_j v` leave the interval of chance for an outermost v of either regime?

    The extreme eigenvalues of M_i against M_j lie at least as far out, so they need not be found.
    """
    v = np.concatenate([extremes.vectors[i, ::3], extremes.vectors[j, ::3]])
    both = form(np.stack([v, v]), np.array([i, j]))
    along = np.einsum("kvp,vp->kv", both, v)
    ratio = along[0] / along[1]
    return bool((ratio < edges[0]).any() or (ratio > edges[1]).any())


def _nearest_before(form: Form) -> list[tuple[int, int, float]]:
    """For each regime, the nearest one before it and the distance to it; a copy is the nearest.

    The control is number 0 and whitened to I. The distance is `‖M_i − M_j‖²` over
    `tr(M_j)² + ‖M_j‖²`: for two samples of one law with Gaussian rows it is `1/n_i + 1/n_j` on
    average. In many dimensions `‖M‖²` is read off `Ω M`, with Ω a few random rows.
    """
    p, r = form.dimension, len(form.regimes)
    if p <= 4 * SKETCH:
        flat = np.concatenate([np.eye(p)[None], form.dense]).reshape(r + 1, -1)
    else:
        omega = np.random.default_rng(p).normal(size=(SKETCH, p)) / np.sqrt(SKETCH)
        flat = np.empty((r + 1, SKETCH * p))
        flat[0] = omega.ravel()
        for k in range(0, r, TOGETHER):
            rows = np.arange(k, min(k + TOGETHER, r))
            start = np.broadcast_to(omega, (len(rows), SKETCH, p))
            flat[rows + 1] = form(start, rows).reshape(len(rows), -1)
    products = flat @ flat.T
    squares = np.diagonal(products)
    traces = np.append(p, form.regimes.inner(form.W.T @ form.W))
    apart = np.maximum(squares + squares[:, None] - 2 * products, 0.0)
    apart[np.triu_indices(r + 1)] = np.inf
    nearest = apart.argmin(axis=1)[1:]
    distance = apart[np.arange(1, r + 1), nearest] / (traces[nearest] ** 2 + squares[nearest])
    return list(zip(range(1, r + 1), nearest.tolist(), distance.tolist(), strict=True))


def _same_rows(a: Moments, b: Moments, variance: FloatArray, other: FloatArray) -> bool:
    # The diagonal holds the largest entry, and nearly always the difference: one number tells
    # most regimes apart, and all variances nearly all.
    size = float(variance.max())
    if abs(variance[0] - other[0]) > SAME_ROWS * size:
        return False
    if np.abs(variance - other).max() > SAME_ROWS * size:
        return False
    return bool(np.allclose(a.covariance, b.covariance, rtol=0, atol=SAME_ROWS * size)) and bool(
        np.allclose(a.mean, b.mean, rtol=0, atol=SAME_ROWS * np.sqrt(size))
    )


def _swapped_control(client: Client, spectrum: Spectrum, level: float) -> Iterator[Finding]:
    """Findings about a regime that fits better as control than the given one.

    If the control is swapped with a regime, every other regime moves two nodes against it: its own
    and that of the swapped regime. Against the true control each moves one.
    """
    regimes = [(label, m) for label, ms in client.interventions.items() for m in ms]
    for label, candidate in regimes:
        rest = [m for _, m in regimes if m is not candidate] + [client.control]
        base = _inner(candidate.covariance, spectrum)
        if all(
            contrast(base, candidate, _second(m, candidate, spectrum), m, level).third <= 1
            for m in rest
        ):
            yield Finding(
                "swapped-control",
                "error",
                f"{client.control_name!r} and {label!r} look swapped: with {label!r} as the "
                "control every regime moves one node, as given they do not",
                "Check which rows are observational.",
                client=client.name,
            )
