"""The control that all regimes support, and how each regime differs from it: judged once for all.

In coordinates whitened by the control, `M_j − I = D_j` has at most one positive and one negative
eigenvalue in the population (T1). From samples, chance fills an interval around 1
(`base.nulls.ratio_edges`). Eigenvalues are judged as the checks judge them, on a log scale on
which 1 is the edge of that interval: a direction beyond it was moved.

Every regime j agrees with the control covariance `C₀` except on the plane ⟨q_j, c_j⟩ that its
intervention moves. So every regime says something about `C₀`. With `P_j` the projector off the
outermost directions that it may have moved, each round corrects the control by

    H = [n₀ (M₀ − I) + Σ_j n_j P_j (M_j − I) P_j] / (n₀ + Σ_j n_j) ,

as if every regime agreed with it on its plane, and the coordinates become `(I + H)^(−½) x`, until H
is small. "May have moved" is judged leniently: effects of one cause all change a little along its
direction, and those that are not seen would together move the control there. How many rows say
something about an entry of H depends on its two directions: with `K = n₀ I + Σ_j n_j P_j` and N all
rows, its error is

    Var tr(S H) ≈ 2 tr(S Y S) ,       Y = 2 K⁻¹ − I/N ,

where regimes see both directions or neither, and not below it. Effects of one cause share its
direction, and about that only the control and the regimes of other targets tell.

Along all directions but those that targets may have moved, `D_j` is the sampling error of n rows.
Its squared size there over what is expected is the regime's *misfit*. If it is above chance in most
regimes, rows say less than their number: rows of one subject are alike and the subjects are not
named, gains drift, or the sensors are not linear. All errors then count so many times fewer rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from jigsaw_crl.base.algebra import inverse_square_root
from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.nulls import CLEARLY, FALSE_ALARM, LENIENT, beyond, ratio_edges
from jigsaw_crl.client.white import White

# Chance allows so many standard deviations of a misfit; a larger one than WORST is that of a model
# that does not fit, not of rows that are alike.
DEVIATIONS, WORST = 4.0, 25.0
# Sound clients show this share of the expected misfit: the pooled control fits every regime.
FITTED = 0.8
# Numbers in the random matrices behind the null.
NUMBERS = 500_000
# A round leaves of a correction about the share of the rows that do not see it. One below
# STEADY of its own sampling error no longer matters.
MAX_ROUNDS, STEADY = 10, 0.02


@dataclass(frozen=True, eq=False)
class Judged:
    """How clearly each regime differs from the control, shape (r,); 1 is the edge of chance."""

    # By the smallest and the largest eigenvalue, and by the next ones inwards: beyond `CLEARLY`,
    # more than one target moved.
    low: FloatArray
    high: FloatArray
    third: FloatArray
    misfit: FloatArray  # see the module's docstring; NaN in few dimensions
    edges: FloatArray  # the interval of chance, shape (r, 2)
    several: BoolArray  # more than one target moved
    # Whether the largest and the smallest eigenvalue may be more than chance, shape (r, 2). At the
    # level of findings 14 of 2,400 studies of stars with hard interventions had a false one, and
    # two of the 14 have it so. Projecting off both ends always leaves none, but then one label in
    # twenty whose interventions change noise alone seems to move a second direction, and one in
    # eighty so.
    perhaps: BoolArray


def judge(white: White) -> Judged:
    """Which directions each regime moved, and how well "one target" fits it."""
    p, values = white.dimension, white.rows.eigen.values
    # The direction that a target moved is none of the noise.
    n0 = white.n_pooled
    edges, wide = (
        np.array([ratio_edges(max(p - 1, 1), n0, n, level) for n in white.n.tolist()])
        for level in (FALSE_ALARM, LENIENT)
    )
    below, above = beyond(values, edges)
    third = np.maximum(below[:, 1], above[:, -2]) if p > 2 else np.zeros(len(values))
    misfit = np.full(len(values), np.nan)
    # Targets may have moved the two directions at either end of the spectrum.
    if p > 4 and not white.exact:
        bulk = ((values[:, 2:-2] - 1.0) ** 2).sum(axis=1)
        misfit = bulk / (1.0 / white.n + 1.0 / n0) / _null(p)[0]
    perhaps = np.stack([values[:, -1] > wide[:, 1], values[:, 0] < wide[:, 0]], axis=1)
    return Judged(below[:, 0], above[:, -1], third, misfit, edges, third > CLEARLY, perhaps)


def spread_edge(p: int, regimes: int) -> float:
    """The median misfit that chance allows in p dimensions."""
    # The median of r numbers varies by 1.25 of their mean's error.
    return max(CLEARLY, 1.0 + DEVIATIONS * 1.25 * _null(p)[1] / float(np.sqrt(regimes)))


@lru_cache(maxsize=64)
def _null(p: int) -> tuple[float, float]:
    """Mean and relative standard deviation of the misfit's sum, for errors of variance 1.

    A target takes one direction at either end, so that of p − 2 others the outermost are left out.
    """
    draws = int(np.clip(NUMBERS // p**2, 60, 3000))
    A = np.random.default_rng(p).normal(size=(draws, p - 2, p - 2))
    values = np.linalg.eigvalsh((A + A.mT) / np.sqrt(2.0))
    bulk = np.sum(values[:, 1:-1] ** 2, axis=1)
    return float(bulk.mean()), float(bulk.std() / bulk.mean())


def pool(white: White) -> tuple[White, Judged]:
    """Whiten all regimes by the control covariance that all of them support, and judge them.

    Exact moments are left as they are.
    """
    judged, p = judge(white), white.dimension
    M0 = identity = np.eye(p)
    for _ in range(0 if white.exact else MAX_ROUNDS):
        # A regime with several targets differs from C₀ in more directions than are projected off.
        n = np.where(judged.several, 0.0, white.n)
        ends = white.eigen.vectors[:, :, [-1, 0]].mT
        V = ends * judged.perhaps[:, :, None]
        P = identity - V.mT @ V
        H = white.n_control * (M0 - identity)
        H += np.einsum("r,rpq->pq", n, P @ (white.M - identity) @ P)
        H /= white.n_control + n.sum()
        if float(np.linalg.norm(H)) / p < STEADY / np.sqrt(white.n_pooled):
            break
        step = inverse_square_root(identity + H)
        M0 = step @ M0 @ step
        K, total = white.n_control * identity + np.tensordot(n, P, 1), white.n_control + n.sum()
        Y = 2.0 * np.linalg.inv(K) - identity / total
        # A product with a line of the plane errs by the mean of Y there and elsewhere.
        own = np.linalg.eigvalsh(ends @ Y @ ends.mT)[:, -1]
        n_eff = 2.0 / (own + np.median(np.linalg.eigvalsh(Y)))
        white = replace(white.moved(step), whitening=Y, n_eff=n_eff)
        judged = judge(white)
    return white, judged
