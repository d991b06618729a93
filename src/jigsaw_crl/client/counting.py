"""How many independent Gaussian rows the rows of each regime count for.

Rows that follow one another in time and rows with heavy tails make means and second moments vary
more than n independent Gaussian rows would. How much more is read off the parts k of a regime
(`Moments.parts`), consecutive stretches of its rows or sets of its groups.
In coordinates in which the regime is nearly white, let part k have ν_k = n_k − 1 degrees of
freedom, the mean m_k and the covariance S_k, with averages m and S. For independent Gaussian rows

    E Σ_k n_k |m_k − m|²   = (K − 1) tr S ,
    E Σ_k ν_k (tr(A_k)² + 2 ‖A_k‖²)   = (K − 1) (2 tr(S)² + 4 tr(S²)) ,      A_k = S_k − S .

What is observed, divided by this, gives the two factors. The second sum is, up to a constant, the
variance of `uᵀS_k u` averaged over all directions u. Both are about χ² over their degrees of
freedom: `(K − 1) tr(S)²/tr(S²)` for means; for second moments see `_of_covariances`.

Serial dependence with autocorrelations r_l gives `1 + 2 Σ r_l` for means and `1 + 2 Σ r_l²` for
second moments; tails with an excess kurtosis κ of every latent give `1 + 3κ/(2p + 4)` for second
moments and nothing for means. Neither needs to be known: the factors measure what they do.

Groups of g rows with correlation r within a group give `1 + (g − 1) r` and `1 + (g − 1) r²`. If a
regime has so few groups that a part holds one or two, parts hide how groups differ in their second
moments; then r follows from the first factor and gives the second.

Regimes of one client are alike in this, so their factors are pooled. A pooled factor counts if it
exceeds 1 by more than chance allows, so that independent Gaussian rows lose nothing; and a regime
has a factor of its own if it differs from the pooled one by more than chance allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.algebra import inverse_square_root
from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.nulls import FALSE_ALARM, RARE_ALARM
from jigsaw_crl.moments.regime import MOST_PARTS, Moments

# Covariances of parts with few rows vary more than normal variables: the degrees of freedom are
# divided by 1 + FEW_ROWS p/ν_k (from simulated Gaussian rows).
FEW_ROWS = 3.0
# Parts of fewer degrees of freedom say next to nothing.
FEWEST_FREE = 4


# Observed over expected variation, and its degrees of freedom; 0 where it is unknown.
_Factor = tuple[float, float]
_UNKNOWN: _Factor = (1.0, 0.0)


def count_rows(every: Sequence[Moments], rank: int) -> list[Moments]:
    """The moments of a client, its control first, with the number of rows that they count for.

    Rows are looked at in the leading directions of the control, as many as latents (`rank`). Parts
    of interventional regimes are dropped, because this is all they are for, and so are those of a
    control whose rows come in groups: they show no drift. Moments without parts count as the pooled
    factors say, and moments that were counted before are left as they are.
    """
    control = every[0]
    if control.n is None or all(m.counted or len(m.parts) < 2 for m in every):
        return list(every)
    basis = np.linalg.eigh(control.covariance)[1][:, ::-1][:, :rank]
    found = [_factors(m, basis, control) for m in every]
    means, covariances = (_shared([f[i] for f in found]) for i in (0, 1))
    counted = []
    for m, mean, covariance in zip(every, means, covariances, strict=True):
        # Of fewer than two groups for each part, most parts hold one: the factor follows from that
        # of the means.
        if m.groups is not None and m.groups < 2 * MOST_PARTS:
            each = (m.rows or 0) / max(m.groups, 1)
            less = 1 + (mean - 1) * min((mean - 1) / max(each - 1, 1.0), 1.0)
            covariance = max(covariance, less)
        counted.append(m if m.counted else m.counting(mean, covariance, least=rank + 2))
    kept = counted[0].parts if control.groups is None else ()
    return [replace(m, parts=kept if m is counted[0] else ()) for m in counted]


def _factors(m: Moments, basis: FloatArray, control: Moments) -> tuple[_Factor, _Factor]:
    """The factors of the mean and of the covariance of one regime.

    If S is white, `tr(A)² + 2‖A‖²` is a sum of p(p+1)/2 − 1 squares of weight 4 and one (of the
    trace) of weight 2(p + 2), which gives the degrees of freedom `(Σw)²/Σw²`. If it is not, they
    are fewer, as for ‖A‖², whose weights are `s_i s_j` for i ≤ j with s the eigenvalues of S.
    """
    parts = [part for part in m.parts if part.n is not None and part.n > FEWEST_FREE]
    if m.counted or len(parts) < 2 or m.n is None or m.n < 2:
        return _UNKNOWN, _UNKNOWN
    # Half the control's covariance bounds the eigenvalues, however few rows the regime has.
    both = sum(x.covariance * (n / max(n - 1, 1)) for x in (control, m) if (n := x.n))
    W = inverse_square_root(basis.T @ both @ basis / 2) @ basis.T
    rows = np.array([part.n for part in parts], dtype=np.float64)
    S = W @ np.array([part.covariance for part in parts]) @ W.T
    S *= (rows / (rows - 1))[:, None, None]
    of_mean, p, free, degrees = _UNKNOWN, len(W), len(rows) - 1, rows - 1
    if len(m.batches) < 2:
        means, share = np.array([part.mean for part in parts]) @ W.T, rows / rows.sum()
        away = means - share @ means
        # The covariance of all rows: parts of one group each lack what groups differ by.
        pooled = np.einsum("k,kpq->pq", share, S) + (share * away.T) @ away
        trace, square = float(np.trace(pooled)), float(np.vdot(pooled, pooled))
        value = float(rows @ np.einsum("kp,kp->k", away, away)) / (free * trace)
        of_mean = value, free * trace**2 / square
    total = float(degrees.sum())
    within = np.einsum("k,kpq->pq", degrees / total, S)
    A, s = S - within, np.linalg.eigvalsh(within)
    traces, squares = np.einsum("kpp->k", A), np.einsum("kpq,kpq->k", A, A)
    seen = float(degrees @ (traces**2 + 2 * squares))
    a, b, fourth = float(s.sum()) ** 2, float(s @ s), float(np.sum(s**4))
    # `a` and `b` contain the error of S itself.
    expected = 2 * (a - 2 * b / total) + 4 * (b - (a + b) / total)
    white = (p * (p + 2)) ** 2 / (4 * (p * (p + 1) / 2 - 1) + (p + 2) ** 2)
    uneven = (a + b) ** 2 / (b**2 + fourth) / (p * (p + 1))
    few = 1 + FEW_ROWS * p / float(degrees.min())
    return of_mean, (seen / (free * expected), free * white * uneven / few)


def _shared(own: Sequence[_Factor]) -> list[float]:
    """The factor to use for every regime: the pooled one, or its own where that differs."""
    value, degrees = np.array(own).T
    seen, known = value * degrees, degrees > 0
    if not known.any():
        return [1.0] * len(own)
    # What passes for the same factor; NaN where it is unknown, which nothing is beyond.
    low, high = chdtri(degrees, 1 - RARE_ALARM / len(own)), chdtri(degrees, RARE_ALARM / len(own))
    # Regimes that stand out of the middle one do not count for the others.
    middle = max(float(np.median(value[known])), 1.0)
    alike = (seen >= middle * low) & (seen <= middle * high)
    alike = alike if alike.any() else known
    total = float(degrees[alike].sum())
    pooled = float(seen[alike].sum()) / total
    if pooled * total <= float(chdtri(total, FALSE_ALARM)):
        pooled = 1.0
    differs = (seen < pooled * low) | (seen > pooled * high)
    return [float(x) for x in np.maximum(np.where(differs, value, pooled), 1.0)]
