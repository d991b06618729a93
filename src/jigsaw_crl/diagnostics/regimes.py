"""Does each regime look like an intervention on one node?

In coordinates whitened by the control, a regime's covariance about its own mean is `M = I + D`. For
a single-node intervention D has at most one positive and one negative eigenvalue, and the mean
moves along one direction. So, against the null of the ratio of two sample covariances and of the
difference of two means:

- if neither the largest nor the smallest eigenvalue of M leaves its null, nor the shift of the
  mean, the regime is too weak to see;
- if the second largest or second smallest eigenvalue does, the regime moves more than one node.
  (With signature (1, 1) the second largest eigenvalue of M lies below the largest of the null, so
  the test is exact or conservative.) A shift of the mean is no such direction.

Exact moments are taken about the control's mean, where a shift is one more part of D.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import few, number
from jigsaw_crl.client.batches import Means
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.nulls import FALSE_ALARM, ratio_edges, shift_edge
from jigsaw_crl.client.spectrum import Spectrum
from jigsaw_crl.client.white import White
from jigsaw_crl.diagnostics.contrasts import (
    Contrast,
    beyond,
    contrast,
    edges,
    gaussian_kurtosis,
    tail_factor,
)
from jigsaw_crl.diagnostics.drift import wandering
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.moments.regime import Moments, inverse_square_root

__all__ = ["check_regimes"]


# The null knows the tails of the features, not those of the latents, which are heavier. A regime is
# left out only when it exceeds the edge of chance by half. The same holds for a single feature that
# differs from the control.
CLEARLY = 1.5
# Two regimes this many times further apart than samples of one law are on average need no test:
# even tails four times as heavy as a Gaussian's do not explain that.
CLEARLY_APART = 16.0
# Two regimes of this strength that move different directions are told apart: their contrast is at
# least 1/√2 as strong as the weaker one. Below it, both may simply be weak.
TELLING = 2.0
# The same moments to this relative difference are the same rows.
SAME_ROWS = 1e-9


@dataclass(frozen=True, eq=False)
class _Whitened:
    """A client's regimes, noise of the sensors included, whitened by the control."""

    client: Client
    spectrum: Spectrum
    means: Means
    white: White
    level: float

    @cached_property
    def named(self) -> list[tuple[str, Moments]]:
        """Label and moments of every regime."""
        return [(label, m) for label, ms in self.client.interventions.items() for m in ms]

    def edges(self) -> list[tuple[float, float]]:
        """For every regime, the interval that holds its eigenvalues by chance."""
        p, control = self.white.dimension, self.client.control
        if control.n is None:
            size = np.linalg.eigvalsh(_inner(control.covariance, self.spectrum))
            rounding = 100 * p * np.finfo(np.float64).eps * max(float(size[-1] / size[0]), 1.0)
            return [(1 / (1 + rounding), 1 + rounding)] * len(self.named)
        base = (control.n - 1) / tail_factor(control)
        own = [((m.n or 0) - 1) / tail_factor(m) for _, m in self.named]
        return [ratio_edges(p, base, n, self.level) for n in own]

    def shift_strengths(self) -> FloatArray:
        """How far the mean of every regime is from the control's; 1 is the edge of chance."""
        n0 = self.client.control.n
        if n0 is None:
            return np.zeros(len(self.named))
        errors = self.means.errors
        squares = np.einsum("rp,rp->r", self.white.d, self.white.d)
        edge = shift_edge(self.white.dimension, n0 - 1, self.level)
        moved = np.sqrt(squares / errors.variance / edge)
        return np.where(errors.known, moved, 0.0)

    def apart(self, i: int, j: int, covariance: FloatArray) -> float:
        """How far the means of two regimes are apart; 1 is the edge of chance."""
        errors, twin = self.means.errors, self.named[j][1]
        if not (errors.known[i] and errors.known[j]):
            return 0.0
        rows, apart = twin.n or 0, self.white.d[i] - self.white.d[j]
        square, degrees = float(apart @ apart), (self.client.control.n or 0) - 1
        # Too few rows for their own covariance vary as the control does.
        if rows > 2 * self.white.dimension:
            between = self.spectrum.basis.T @ (self.means.regimes[i] - self.means.regimes[j])
            square, degrees = float(between @ np.linalg.solve(covariance, between)), rows - 1
        edge = shift_edge(len(apart), degrees, self.level)
        return float(np.sqrt(square / errors.between(i, j) / edge))


def check_regimes(
    client: Client, spectrum: Spectrum, means: Means, white: White
) -> tuple[list[Finding], dict[str, float]]:
    """Findings about the regimes, and the strength of each label.

    A strength of 1 is the edge of chance; it is the larger of that of the covariance and that of
    the mean.
    """
    count = len(white.n)
    found = _Whitened(client, spectrum, means, white.rows, FALSE_ALARM / count)
    intervals = found.edges()
    ends = np.array(intervals)
    unbias = [1.0 if m.n is None else m.n / (m.n - 1) for _, m in found.named]
    unbiased = white.seen * np.array(unbias)[:, None]
    unbiased = unbiased if white.dimension > 1 else unbiased[:, :1]
    strongest = np.maximum(beyond(unbiased, *ends.T), found.shift_strengths()).tolist()
    third: dict[str, float] = {}
    strength: dict[str, float] = {}
    for (label, _), own in zip(found.named, strongest, strict=True):
        strength[label] = max(strength.get(label, 0.0), own)
    for k in np.flatnonzero(beyond(unbiased[:, 1:-1], *ends.T) > 1).tolist():
        label, m = found.named[k]
        left = _without_simpler_reasons(found, m, Contrast(unbiased[k].tolist(), *intervals[k]))
        if left > 1:
            third.setdefault(label, left)
    where = {label: {"client": client.name, "regime": label} for label in strength}
    several = [
        finding(
            "several-targets" if x > CLEARLY else "several-targets/used", x, 1.0, **where[label]
        )
        for label, x in third.items()
    ]
    findings = [*several, *_same_regimes(found, strength)]
    copies = {f.regime for f in findings if f.check == "duplicated-regime"}
    weak = [label for label, s in strength.items() if s <= 1 and label not in copies]
    moved: dict[str, str] = {}
    for label in weak:
        if how := _plain_difference(client, label):
            moved[label] = how
            words = {"how": how, **where[label]}
            findings.append(finding("weak-intervention/moved", strength[label], 1.0, **words))
            continue
        more = 0.0 if client.is_population else (1 / max(strength[label], 0.1)) ** 2
        # A regime at the edge of chance needs hardly more rows, and how many is not known.
        need = f" (about {more:.1f} times)" if more >= 1.1 else ""
        told = finding("weak-intervention", strength[label], 1.0, need=need, **where[label])
        findings.append(told)
    if len(weak) == len(strength):
        name, how = ("no-signal/moved", few(moved.values(), 1)) if moved else ("no-signal", "")
        findings.append(finding(name, max(strength.values()), 1.0, client=client.name, how=how))
    if sum(f.severity == "error" for f in several) >= 2:
        findings += _swapped_control(found, unbiased)
    return findings, strength


def _plain_difference(client: Client, label: str) -> str:
    """Which feature differs most from the control in its mean or variance; empty if none clearly.

    A feature by itself may differ where the directions of the latents, which mix all features, do
    not.
    """
    base, found = client.control, [(0.0, "")]
    for m in client.interventions[label]:
        if m.n is None or base.n is None:
            continue
        own, other = np.diagonal(m.covariance), np.diagonal(base.covariance)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (m.mean - base.mean) / np.sqrt(own / m.mean_rows + other / base.mean_rows)
            ratio = own / other
            error = np.sqrt(2.0 * (tail_factor(m) / m.n + tail_factor(base) / base.n))
            z = np.log(ratio) / error
        t, z = (np.where(np.isfinite(x), np.abs(x), 0.0) for x in (t, z))
        i, j = int(t.argmax()), int(z.argmax())
        by_mean = f"the mean of {client.features[i]!r} by {number(t[i])} standard errors"
        by_spread = f"the variance of {client.features[j]!r} by a factor of {number(ratio[j])}"
        found += [(float(t[i]), by_mean), (float(z[j]), by_spread)]
    edge = float(ndtri(1 - FALSE_ALARM / (4 * client.n_features * len(client.labels))))
    size, how = max(found)
    return how if size > CLEARLY * edge else ""


def _without_simpler_reasons(white: _Whitened, m: Moments, c: Contrast) -> float:
    """How far the third direction exceeds chance, given heavy tails and a control that wanders.

    Rows with heavy tails, and rows that follow one another in time, carry the information of fewer:
    the interval of chance is that of the fewer rows.
    """
    control = white.client.control
    if control.n is None or m.n is None:
        return c.third
    sizes = []
    wander = wandering(control, white.white.W)
    for one in (control, m):
        assert one.n is not None
        worst = tail_factor(one, worst=True)
        # Latents have heavier tails than their mixtures; the heaviest feature is nearest to them.
        level = white.level / white.client.n_features
        heavy = 2 * worst + 1 > gaussian_kurtosis(one.rows or 0, level)
        sizes.append((one.n - 1) / (worst if heavy else tail_factor(one)) / wander)
    return Contrast(c.values, *ratio_edges(white.white.dimension, *sizes, white.level)).third


def _inner(second_moment: FloatArray, spectrum: Spectrum) -> FloatArray:
    """A second moment in the leading space, noise included: both sides of a contrast have it."""
    return np.asarray(spectrum.basis.T @ second_moment @ spectrum.basis)


def _same_regimes(white: _Whitened, strength: Mapping[str, float]) -> Iterator[Finding]:
    """Findings about regimes with the same rows, or the same law, as another one."""
    client = white.client
    named = [(client.control_name, client.control), *white.named]
    nearest = _nearest_before(white)
    alike = _alike(np.array([m.covariance.diagonal() for _, m in named]), nearest)
    for (i, j, distance), same in zip(nearest, alike, strict=True):
        (label, m), (other, twin) = named[i], named[j]
        place = {"client": client.name, "regime": label, "other": other}
        if same and m.n == twin.n and _same_rows(m, twin):
            yield finding("duplicated-regime", 0.0, SAME_ROWS, **place)
            continue
        if j == 0 or other == label or min(strength[label], strength[other]) <= TELLING:
            continue
        if m.n is None or twin.n is None or distance > CLEARLY_APART * (1 / m.n + 1 / twin.n):
            continue
        interval = edges(white.white.dimension, twin, m, white.level)
        if _differ_along(white.white, i - 1, j - 1, interval):
            continue
        first, second = (_inner(x.covariance, white.spectrum) for x in (twin, m))
        c = contrast(first, second, interval)
        apart = max(c.strength, white.apart(i - 1, j - 1, first))
        if apart <= 1:
            yield finding("like-regimes", apart, 1.0, **place)


def _differ_along(white: White, i: int, j: int, edges: tuple[float, float]) -> bool:
    """Does `vᵀM_i v / vᵀM_j v` leave the interval of chance for an outermost v of either regime?

    The extreme eigenvalues of M_i against M_j lie at least as far out, so they need not be found.
    """
    eigen = white.eigen
    v = np.array([eigen.low[i], eigen.high[i], eigen.low[j], eigen.high[j]])
    along = np.einsum("kvp,vp->kv", v @ white.M[[i, j]], v)
    ratio = along[0] / along[1]
    return bool((ratio < edges[0]).any() or (ratio > edges[1]).any())


def _nearest_before(white: _Whitened) -> list[tuple[int, int, float]]:
    """For each regime, the nearest one before it and the distance to it; a copy is the nearest.

    The control is number 0 and whitened to I. The distance is the larger of `‖M_i − M_j‖²` over
    `tr(M_j)² + ‖M_j‖²` and `|δ_i − δ_j|²` over `tr(M_j)`, with δ the shifts of the means: for two
    samples of one law with Gaussian rows both are `1/n_i + 1/n_j` on average.
    """
    r, p = white.white.d.shape
    flat = np.concatenate([np.eye(p)[None], white.white.M]).reshape(r + 1, -1)
    traces = flat[:, :: p + 1].sum(axis=1)
    products = flat @ flat.T
    spread = _squared_distances(products) / (np.diagonal(products) + traces**2)
    shifts = np.vstack([np.zeros(p), white.white.d])
    apart = np.maximum(spread, _squared_distances(shifts @ shifts.T) / traces)
    apart[~np.tri(r + 1, k=-1, dtype=bool)] = np.inf
    nearest = apart.argmin(axis=1)[1:]
    distance = apart[np.arange(1, r + 1), nearest]
    return list(zip(range(1, r + 1), nearest.tolist(), distance.tolist(), strict=True))


def _squared_distances(products: FloatArray) -> FloatArray:
    """Squared distances between all pairs of points, from their inner products."""
    squares = np.diagonal(products)
    return np.asarray(np.maximum(squares + squares[:, None] - 2 * products, 0.0))


def _alike(variances: FloatArray, nearest: list[tuple[int, int, float]]) -> list[bool]:
    """Have regimes i and j of each triple the same variances? They tell nearly all copies."""
    one, other = variances[[i for i, _, _ in nearest]], variances[[j for _, j, _ in nearest]]
    apart = np.abs(one - other).max(axis=1)
    alike: list[bool] = (apart <= SAME_ROWS * one.max(axis=1)).tolist()
    return alike


def _same_rows(a: Moments, b: Moments) -> bool:
    size = float(a.covariance.diagonal().max())
    return bool(np.allclose(a.covariance, b.covariance, rtol=0, atol=SAME_ROWS * size)) and bool(
        np.allclose(a.mean, b.mean, rtol=0, atol=SAME_ROWS * np.sqrt(size))
    )


def _swapped_control(white: _Whitened, values: FloatArray) -> Iterator[Finding]:
    """Findings about a regime that fits better as control than the given one.

    If the control is swapped with a regime, the others move two nodes against it: their own and
    that of the swapped regime. Against the true control each moves one. A small sample fits
    whatever a large one refuses, so the given control is judged as if it had no more rows than the
    candidate. `values` are the outermost eigenvalues against the given control.
    """
    client, p = white.client, white.white.dimension
    every = [client.control, *(m for _, m in white.named)]
    M = np.concatenate([np.eye(p)[None], white.white.M])

    def third(base: int, other: int, found: FloatArray, rows: int | None) -> float:
        """How far the third direction exceeds chance against a base of at most `rows`."""
        one, two = every[base], every[other]
        if one.n is None or two.n is None:
            interval = white.edges()[0]
        else:
            interval = edges(p, one, two, white.level, rows=rows)
        return Contrast(found.tolist(), *interval).third

    for c, (label, candidate) in enumerate(white.named, start=1):
        others = [j for j in range(1, len(every)) if j != c]
        given = [third(0, j, values[j - 1], candidate.n) > CLEARLY for j in others]
        if sum(given) < max(2, len(others) / 2):
            continue
        root = inverse_square_root(M[c])
        against = np.linalg.eigvalsh(root @ M @ root)
        if all(third(c, j, against[j], client.control.n) <= 1 for j in (0, *others)):
            words = {"control": client.control_name, "label": label}
            yield finding("swapped-control", client=client.name, **words)
