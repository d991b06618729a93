"""Does each regime look like an intervention on one latent?

In coordinates whitened by the control, a regime's covariance about its own mean is `M = I + D`. For
a single-node intervention D has at most one positive and one negative eigenvalue, and the mean
moves along one direction. So, against the null of the ratio of two sample covariances and of the
difference of two means:

- if neither the largest nor the smallest eigenvalue of M leaves its null, nor the shift of the
  mean, the regime is too weak to see;
- if the second largest or second smallest eigenvalue does, the regime moves more than one latent.
  A shift of the mean is no such direction;
- if neither does of one regime against another, though both differ clearly from the control, the
  two are alike.

Differences are strengths: 1 is the edge of chance, and a strength grows as the square root of the
number of rows. Exact moments are taken about the control's mean, where a shift is one more part of
D, and their edge of chance is rounding.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtri

from jigsaw_crl.base.algebra import inverse_square_root
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.nulls import CLEARLY, FALSE_ALARM, beyond, ratio_edges, shift_edge
from jigsaw_crl.base.text import number
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.white import White
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.diagnostics.rows import differences
from jigsaw_crl.moments.regime import Moments

# Two regimes of this strength that move different directions are told apart: their contrast is at
# least 1/√2 as strong as the weaker one. Regimes of fewer rows than so many times the latents fit
# many laws, and are not compared.
TELLING, COMPARED_ROWS = 2.0, 10
# The same moments to this relative difference are the same rows.
SAME_ROWS = 1e-9


def _beyond_chance(
    values: FloatArray,
    white: White,
    base: Moments,
    other: Moments,
    level: float,
    most: float = np.inf,
) -> tuple[float, float]:
    """How far eigenvalues of one regime against another, ascending, are beyond what chance gives.

    The outermost ones, and the next ones inwards. `most` is the number of rows that the base counts
    for at most.
    """
    if base.n is None or other.n is None:
        rounding = 100 / np.sqrt(white.n_control)
        ends = 1 / (1 + rounding), 1 + rounding
    else:
        ends = ratio_edges(white.dimension, min(base.n, most) - 1, other.n - 1, level)
    below, above = beyond(values, np.array(ends))
    second = max(below[1], above[-2]) if len(values) > 1 else 0.0
    return float(max(below[0], above[-1])), float(second)


def check_regimes(client: Client) -> tuple[list[Finding], dict[str, float]]:
    """Findings about the regimes, and the strength of each label.

    A strength of 1 is the edge of chance; it is the larger of that of the covariance and that of
    the mean.
    """
    # Without the sensors' noise; exact moments have no mean of their own.
    white, named = client.white, client.named_regimes
    rows = white.rows
    level, moments = FALSE_ALARM / (len(named) - 1), [m for _, m in named]
    unbias = [1.0 if m.n is None else m.n / (m.n - 1) for m in moments[1:]]
    values = rows.eigen.values * np.array(unbias)[:, None]
    each = zip(values, moments[1:], strict=True)
    own, more = np.array([_beyond_chance(x, rows, moments[0], m, level) for x, m in each]).T
    if not rows.exact:
        edge = shift_edge(rows.d.shape[1], rows.n_control - 1, level)
        shifts = np.sqrt((rows.d**2).sum(axis=1) / rows.errors.variance / edge)
        own = np.maximum(own, np.where(rows.errors.known, shifts, 0.0))
    # Of several strengths of a label, the clearest.
    strength, third = (
        {x: float(found[white.owner == i].max()) for i, x in enumerate(client.labels)}
        for found in (own, more)
    )
    several = [
        finding("several-targets", x, CLEARLY, regime=label)
        for label, x in third.items()
        if x > CLEARLY
    ]
    copies = [
        finding("duplicated-regime", 0.0, SAME_ROWS, regime=label, other=twins[0])
        for i, (label, m) in enumerate(named)
        if (twins := [x for x, twin in named[:i] if same_rows(m, twin)])
    ]
    findings, copied = [*several, *copies], {f.regime for f in copies}
    # Labels whose regimes do not differ in the directions of the latents.
    weak = {x: s for x, s in strength.items() if s <= 1 and x not in copied}
    moved = {label: _plain_difference(client, label) for label in weak}
    for label, value in weak.items():
        times = 0.0 if client.is_population else (1 / max(value, 0.1)) ** 2
        # A regime at the edge of chance needs hardly more rows, and how many is not known.
        need = f"; about {times:.1f} times as many rows might show it" if times >= 1.1 else ""
        words = {"how": moved[label], "need": "" if moved[label] else need}
        findings.append(finding("weak-intervention", value, 1.0, regime=label, **words))
    if len(weak) == len(strength):
        how = max(moved.values())
        findings.append(finding("no-signal", max(weak.values()), 1.0, how=how))
    if not rows.exact:
        findings += _alike(client, rows, own, level)
    if len(several) >= 2:
        findings += _swapped_control(client, rows, values, level)
    return findings, strength


def _plain_difference(client: Client, label: str) -> str:
    """Which feature differs most from the control in its mean or variance; empty if none clearly.

    A feature by itself may differ where the directions of the latents, which mix all features, do
    not.
    """
    found = [(0.0, "")]
    for m in () if client.is_population else client.interventions[label]:
        t, z, ratio = differences(client.control, m)
        t, z = (np.where(np.isfinite(x), x, 0.0) for x in (t, z))
        i, j = int(t.argmax()), int(z.argmax())
        by_mean = f"the mean of {client.features[i]!r} by {number(t[i])} standard errors"
        by_spread = f"the variance of {client.features[j]!r} by a factor of {number(ratio[j])}"
        found += [(float(t[i]), by_mean), (float(z[j]), by_spread)]
    edge = float(ndtri(1 - FALSE_ALARM / (4 * client.n_features * len(client.labels))))
    size, how = max(found)
    return f" (but in {how})" if size > CLEARLY * edge else ""


def _alike(client: Client, white: White, strength: FloatArray, level: float) -> Iterator[Finding]:
    """Findings about regimes of two labels that cannot be told from each other.

    Each regime is compared with the nearest one before it.
    """
    named, M, d = client.named_regimes[1:], white.M, white.d
    for i in range(1, len(M)):
        off = np.sum((M[:i] - M[i]) ** 2, axis=(1, 2)) + np.sum((d[:i] - d[i]) ** 2, axis=1)
        j = int(off.argmin())
        (label, own), (other, base) = named[i], named[j]
        clear = min(strength[i], strength[j]) > TELLING and white.errors.known[[i, j]].all()
        clear &= min(own.n or 0, base.n or 0) >= COMPARED_ROWS * white.dimension
        if label == other or not clear or same_rows(own, base):
            continue
        root = inverse_square_root(M[j])
        step = root @ (d[i] - d[j])
        edge = shift_edge(len(step), (base.n or 0) - 1, level)
        apart = max(
            _beyond_chance(np.linalg.eigvalsh(root @ M[i] @ root), white, base, own, level)[0],
            float(np.sqrt(step @ step / white.errors.between[i, j] / edge)),
        )
        if apart <= 1:
            yield finding("like-regimes", apart, 1.0, regime=label, other=other)


def same_rows(a: Moments, b: Moments) -> bool:
    """Whether two regimes have the same moments to the last digits."""
    if a.n != b.n or a.covariance.shape != b.covariance.shape:
        return False
    size = float(a.covariance.diagonal().max())
    means, covariances = np.abs(a.mean - b.mean), np.abs(a.covariance - b.covariance)
    return bool(max(means.max() ** 2 / SAME_ROWS, covariances.max()) <= SAME_ROWS * size)


def _swapped_control(
    client: Client, white: White, values: FloatArray, level: float
) -> Iterator[Finding]:
    """Findings about a regime that fits better as control than the given one.

    If the control is swapped with a regime, the others move two nodes against it: their own and
    that of the swapped regime. Against the true control each moves one. A small sample fits
    whatever a large one refuses, so the given control is judged as if it had no more rows than the
    candidate. `values` are the outermost eigenvalues against the given control.
    """
    named = client.named_regimes
    M = np.concatenate([np.eye(white.dimension)[None], white.M])

    for c, (label, candidate) in list(enumerate(named))[1:]:
        others = [j for j in range(1, len(M)) if j != c]
        rows = candidate.n or np.inf
        given = (
            _beyond_chance(values[j - 1], white, client.control, named[j][1], level, rows)
            for j in others
        )
        if sum(third > CLEARLY for _, third in given) < max(2, len(others) / 2):
            continue
        root, rows = inverse_square_root(M[c]), client.control.n or np.inf
        against = np.linalg.eigvalsh(root @ M @ root)
        swapped = (
            _beyond_chance(against[j], white, candidate, named[j][1], level, rows)
            for j in (0, *others)
        )
        if all(third <= 1 for _, third in swapped):
            yield finding("swapped-control", control=client.control_name, label=label)
