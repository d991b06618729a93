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

Differences are strengths: 1 is the edge of chance, and a strength grows as the square root of the
number of rows. Exact moments are taken about the control's mean, where a shift is one more part of
D, and their edge of chance is rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import few, number
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.nulls import FALSE_ALARM, ratio_edges, shift_edge
from jigsaw_crl.client.white import White
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.rows import tail_factor
from jigsaw_crl.moments.regime import Moments, inverse_square_root

__all__ = ["beyond", "check_regimes"]


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


def beyond(values: FloatArray, interval: FloatArray) -> FloatArray:
    """How far ascending eigenvalues leave an interval on a log scale; 1 is its edge, 0 if none.

    Parameters
    ----------
    values : array, shape (..., k)
    interval : array, shape (..., 2)

    Returns
    -------
    array, shape (...)
    """
    if not values.shape[-1]:
        return np.zeros(values.shape[:-1])
    ends = np.log(np.maximum(values[..., [0, -1]], np.finfo(np.float64).tiny)) / np.log(interval)
    return np.asarray(ends.max(axis=-1))


@dataclass(frozen=True, eq=False)
class _Regimes:
    """The control, at position 0, and the regimes of a client, with the sensors' noise."""

    client: Client
    white: White
    names: tuple[str, ...]
    moments: tuple[Moments, ...]
    level: float

    @classmethod
    def of(cls, client: Client, white: White) -> _Regimes:
        named = [(client.control_name, client.control)]
        named += [(label, m) for label, ms in client.interventions.items() for m in ms]
        names, moments = zip(*named, strict=True)
        return cls(client, white.rows, names, moments, FALSE_ALARM / (len(named) - 1))

    @property
    def M(self) -> FloatArray:
        """The second moments, that of the control as well, shape (r + 1, p, p)."""
        return np.concatenate([np.eye(self.white.dimension)[None], self.white.M])

    def interval(self, base: int, other: int, most: float = np.inf) -> tuple[float, float]:
        """The interval that holds the eigenvalues of one regime against another by chance.

        `most` is the number of rows that the base counts for at most.
        """
        p, one, two = self.white.dimension, self.moments[base], self.moments[other]
        if one.n is None or two.n is None:
            rounding = 100 / np.sqrt(self.white.n_control)
            return 1 / (1 + rounding), 1 + rounding
        m, n = ((x - 1) / tail_factor(y) for x, y in ((min(one.n, most), one), (two.n, two)))
        return ratio_edges(p, m, n, self.level)

    def shifts(self) -> FloatArray:
        """How far the mean of every regime is from the control's; 1 is the edge of chance."""
        if self.white.exact:
            return np.zeros(len(self.white.n))
        errors, d = self.white.errors, self.white.d
        edge = shift_edge(d.shape[1], self.white.n_control - 1, self.level)
        return np.where(errors.known, np.sqrt((d**2).sum(axis=1) / errors.variance / edge), 0.0)

    def apart(self, i: int, j: int) -> float:
        """How far two regimes are apart, in their covariances or means; 1 is the edge of chance."""
        M, errors, rows = self.M, self.white.errors, self.moments[j].n or 0
        root = inverse_square_root(M[j])
        values = np.linalg.eigvalsh(root @ M[i] @ root)
        spread = float(beyond(values, np.array(self.interval(j, i))))
        if not (errors.known[i - 1] and errors.known[j - 1]):
            return spread
        step, degrees = self.white.d[i - 1] - self.white.d[j - 1], self.white.n_control - 1
        # Too few rows for their own covariance vary as the control does.
        if rows > 2 * len(step):
            step, degrees = root @ step, rows - 1
        edge = shift_edge(len(step), degrees, self.level)
        return max(spread, float(np.sqrt(step @ step / errors.between(i - 1, j - 1) / edge)))


def check_regimes(client: Client, white: White) -> tuple[list[Finding], dict[str, float]]:
    """Findings about the regimes, and the strength of each label.

    A strength of 1 is the edge of chance; it is the larger of that of the covariance and that of
    the mean.
    """
    regimes = _Regimes.of(client, white)
    ends = np.array([regimes.interval(0, k) for k in range(1, len(regimes.names))])
    unbias = [1.0 if m.n is None else m.n / (m.n - 1) for m in regimes.moments[1:]]
    values = white.seen * np.array(unbias)[:, None]
    values = values if white.dimension > 1 else values[:, :1]
    strength: dict[str, float] = {}
    third: dict[str, float] = {}
    own = np.maximum(beyond(values, ends), regimes.shifts())
    for label, strong, more in zip(
        regimes.names[1:], own.tolist(), beyond(values[:, 1:-1], ends).tolist(), strict=True
    ):
        strength[label] = max(strength.get(label, 0.0), strong)
        third[label] = max(third.get(label, 0.0), more)
    several = [
        finding("several-targets", x, CLEARLY, client=client.name, regime=label)
        for label, x in third.items()
        if x > CLEARLY
    ]
    findings = [*several, *_same_regimes(regimes, strength)]
    copies = {f.regime for f in findings if f.check == "duplicated-regime"}
    weak = {x: s for x, s in strength.items() if s <= 1 and x not in copies}
    findings += _weak(client, weak, everything=len(weak) == len(strength))
    if len(several) >= 2:
        findings += _swapped_control(regimes, values)
    return findings, strength


def _weak(client: Client, weak: Mapping[str, float], *, everything: bool) -> Iterator[Finding]:
    """Findings about labels whose regimes do not differ in the directions of the latents."""
    moved = {label: how for label in weak if (how := _plain_difference(client, label))}
    for label, strength in weak.items():
        place = {"client": client.name, "regime": label}
        if label in moved:
            yield finding("weak-intervention/moved", strength, 1.0, how=moved[label], **place)
            continue
        more = 0.0 if client.is_population else (1 / max(strength, 0.1)) ** 2
        # A regime at the edge of chance needs hardly more rows, and how many is not known.
        need = f" (about {more:.1f} times)" if more >= 1.1 else ""
        yield finding("weak-intervention", strength, 1.0, need=need, **place)
    if everything:
        name, how = ("no-signal/moved", few(moved.values(), 1)) if moved else ("no-signal", "")
        yield finding(name, max(weak.values()), 1.0, client=client.name, how=how)


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
            # Few rows may not vary at all in a feature that is rarely seen.
            spread = np.maximum(own, other)
            t = (m.mean - base.mean) / np.sqrt(spread / m.mean_rows + other / base.mean_rows)
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


def _same_regimes(regimes: _Regimes, strength: Mapping[str, float]) -> Iterator[Finding]:
    """Findings about regimes with the same rows, or the same law, as the nearest one before."""
    for i, j, distance in _nearest_before(regimes):
        label, other = regimes.names[i], regimes.names[j]
        m, twin = regimes.moments[i], regimes.moments[j]
        place = {"client": regimes.client.name, "regime": label, "other": other}
        if m.n == twin.n and _same_rows(m, twin):
            yield finding("duplicated-regime", 0.0, SAME_ROWS, **place)
            continue
        if j == 0 or other == label or min(strength[label], strength[other]) <= TELLING:
            continue
        if m.n is None or twin.n is None or distance > CLEARLY_APART * (1 / m.n + 1 / twin.n):
            continue
        apart = regimes.apart(i, j)
        if apart <= 1:
            yield finding("like-regimes", apart, 1.0, **place)


def _nearest_before(regimes: _Regimes) -> list[tuple[int, int, float]]:
    """For each regime, the nearest one before it and the distance to it; a copy is the nearest.

    The control is number 0 and whitened to I. The distance is the larger of `‖M_i − M_j‖²` over
    `tr(M_j)² + ‖M_j‖²` and `|δ_i − δ_j|²` over `tr(M_j)`, with δ the shifts of the means: for two
    samples of one law with Gaussian rows both are `1/n_i + 1/n_j` on average.
    """
    M = regimes.M
    flat, traces = M.reshape(len(M), -1), np.trace(M, axis1=1, axis2=2)
    shifts = np.vstack([np.zeros(M.shape[1]), regimes.white.d])

    def squared(points: FloatArray) -> FloatArray:
        products = points @ points.T
        squares = np.diagonal(products)
        return np.asarray(np.maximum(squares + squares[:, None] - 2 * products, 0.0))

    spread = squared(flat) / ((flat**2).sum(axis=1) + traces**2)
    apart = np.maximum(spread, squared(shifts) / traces)
    apart[~np.tri(len(M), k=-1, dtype=bool)] = np.inf
    nearest = apart.argmin(axis=1)
    return [(i, int(nearest[i]), float(apart[i, nearest[i]])) for i in range(1, len(M))]


def _same_rows(a: Moments, b: Moments) -> bool:
    size = float(a.covariance.diagonal().max())
    return bool(np.allclose(a.covariance, b.covariance, rtol=0, atol=SAME_ROWS * size)) and bool(
        np.allclose(a.mean, b.mean, rtol=0, atol=SAME_ROWS * np.sqrt(size))
    )


def _swapped_control(regimes: _Regimes, values: FloatArray) -> Iterator[Finding]:
    """Findings about a regime that fits better as control than the given one.

    If the control is swapped with a regime, the others move two nodes against it: their own and
    that of the swapped regime. Against the true control each moves one. A small sample fits
    whatever a large one refuses, so the given control is judged as if it had no more rows than the
    candidate. `values` are the outermost eigenvalues against the given control.
    """
    client, M = regimes.client, regimes.M

    def third(base: int, other: int, found: FloatArray, rows: int | None) -> float:
        """How far the third direction exceeds chance against a base of at most `rows`."""
        interval = np.array(regimes.interval(base, other, rows or np.inf))
        return float(beyond(found[1:-1], interval))

    for c in range(1, len(M)):
        label, candidate = regimes.names[c], regimes.moments[c]
        others = [j for j in range(1, len(M)) if j != c]
        given = [third(0, j, values[j - 1], candidate.n) > CLEARLY for j in others]
        if sum(given) < max(2, len(others) / 2):
            continue
        root = inverse_square_root(M[c])
        against = np.linalg.eigvalsh(root @ M @ root)
        if all(third(c, j, against[j], client.control.n) <= 1 for j in (0, *others)):
            words = {"control": client.control_name, "label": label}
            yield finding("swapped-control", client=client.name, **words)
