"""The mean of every regime when whole batches of rows are offset, and its error.

Rows come in batches b (plates, days, runs). All rows of a batch share an offset `o_b ~ (0, Ω)`, in
whatever regime they are. With n_jb rows of regime j in batch b, of mean m_jb, the control being
regime 0, and whitened by the control,

    m_jb = μ_j + o_b + e_jb ,       e_jb ~ (0, M_j/n_jb) ,       M_j ≈ I .

Let `n_j = Σ_b n_jb`, `m_j = Σ_b h_jb m_jb` with the shares `h_jb = n_jb/n_j`, and

    L = Σ_j L_j ,       L_j = diag_b(n_jb) − n_j h_j h_jᵀ ,       r_b = Σ_j n_jb (m_jb − m_j) .

`r = L o + noise` with noise of covariance L: what the batches show by differing within a regime.

*How far batches wander.* `T = rᵀ L⁺ r` (p by p) has the expectation `Σ_j ν_j M_j + tr(L) Ω`, where
`ν_j = tr(L⁺ L_j)` are the degrees of freedom that regime j gives; ν is their sum, the rank of L.
With `s = Σ_j ν_j tr(M_j)/(νp)`, which is about 1, Ω is taken as ω I,

    s + ω tr(L)/ν = tr T/(νp − 2)       (the 2 makes up for the estimate's own error),

unless the largest eigenvalue of T stands out of what equal noise in all directions gives. Then ω is
that of the largest eigenvalue, so that `Ω ≤ ω I` and errors are stated too large rather than too
small.

*Means.* By generalised least squares the offsets and the means are

    o = P r ,   P = ω (I + ωL)⁻¹ ,   μ_j = m_j − Σ_b h_jb o_b ,

and with `g_j = h_j − h_0` the errors of the shifts `μ_j − μ_0` have the covariances

    V_jk = [j = k]/n_j + 1/n_0 + g_jᵀ P g_k .

So a shift is taken against the controls of the same batches where there are some (ω large: P is the
inverse of L), against all controls where batches do not wander (ω = 0: P = 0), and it carries ω
itself where its batch has no other regime. Regimes that share batches share errors. If no regime
lies in two batches, ω is unknown, and only the means of regimes in the control's batch are known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.nulls import FALSE_ALARM, LENIENT, noise_edge
from jigsaw_crl.moments.checks import RANK_TOLERANCE

if TYPE_CHECKING:
    from jigsaw_crl.client.client import Client


@dataclass(frozen=True, eq=False)
class MeanErrors:
    """Covariances of the errors of the mean shifts, in coordinates whitened by the control.

    The error of shift j has the covariance `M_j/n_j + (base_j/n_0) I`, with M_j that of the
    regime's rows, and those of shifts j and k the covariance `(shared_jk/n_0) I`.
    """

    n: FloatArray  # rows that the means of the regimes count for (`Moments.mean_rows`), shape (r,)
    n_control: float  # the same of the control, n_0
    base: FloatArray  # shape (r,); ones without batches, more where their offsets add to the error
    shared: FloatArray  # the same, shape (r, r)
    # Of each shift along a direction that its intervention does not change, shape (r,), and one
    # over it: zero where it is unknown.
    variance: FloatArray
    precision: FloatArray
    between: FloatArray  # of the difference of two shifts along a direction, shape (r, r)
    known: BoolArray  # False where the size of the error is unknown: the shift is not used
    wander: BatchVariance | None  # None where all rows are in one batch, or none are named


class BatchVariance(NamedTuple):
    """How far the means of batches wander by themselves.

    √ω, in standard deviations of the control's rows along a direction, NaN if unknown; ν; whether
    the offsets are larger along some directions, so that `size` is that of the largest; and tr T
    over the largest value that chance gives: above 1, batches wander.
    """

    size: float
    degrees: int
    uneven: bool
    strength: float


def batch_means(client: Client, W: FloatArray) -> tuple[FloatArray, MeanErrors]:
    """`μ_j − μ_0` of all regimes, shape (r, d), without the offsets of batches; and the errors.

    W whitens the rows of the control.
    """
    shifts = np.array([m.mean - client.control.mean for m in client.regimes])
    n, n0 = np.array([m.mean_rows for m in client.regimes]), client.control.mean_rows
    shared, known, wander = np.ones((len(n), len(n))), np.ones(len(n), dtype=bool), None
    if len(client.batches) > 1:
        g, apart, L, wander = _compared(client, W)
        if wander.degrees:
            omega = wander.size**2
            P = omega * np.linalg.inv(np.eye(len(L)) + omega * L)
            shared, shifts = 1.0 + n0 * (g @ P @ g.T), shifts - g @ (P @ apart)
        else:
            # Every regime lies in one batch, and nothing shows how much batches differ.
            known = ~np.any(g, axis=1)
    base = np.diagonal(shared).copy()
    with np.errstate(divide="ignore", invalid="ignore"):  # exact moments have no rows
        variance = 1.0 / n + base / n0
        between = 1.0 / n[:, None] + 1.0 / n + (base[:, None] + base - 2.0 * shared) / n0
    precision = 1.0 / variance * known
    return shifts, MeanErrors(n, n0, base, shared, variance, precision, between, known, wander)


def _compared(
    client: Client, W: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BatchVariance]:
    """g, r and L of the module's docstring, and how far batches wander."""
    every, names = (client.control, *client.regimes), client.batches
    # Rows in each batch that a regime's mean counts for, and the batch's mean less its own.
    counts = np.zeros((len(every), len(names)))
    apart = np.zeros((len(names), client.n_features))
    for row, m in zip(counts, every, strict=True):
        for batch in m.batches:
            k = names.index(batch.name)
            row[k] = batch.n / (1.0 if m.counted is None else m.counted.mean)
            apart[k] += row[k] * (batch.mean - m.mean)
    totals = counts.sum(axis=1)
    share = counts / totals[:, None]
    L = np.diag(counts.sum(axis=0)) - (share.T * totals) @ share
    # Rows R with `RᵀR = L⁺`, shape (rank of L, batches).
    values, vectors = np.linalg.eigh(L)
    kept = values > RANK_TOLERANCE * max(float(values[-1]), 1.0)
    root = vectors[:, kept].T / np.sqrt(values[kept])[:, None]
    # ν_j, the degrees of freedom that each regime gives.
    inverse = root.T @ root
    within = np.einsum("jb,bc,jc->j", share, inverse, share) * totals
    degrees = np.maximum(counts @ np.diagonal(inverse) - within, 0.0)
    noise = sum(v * m.covariance for v, m in zip(degrees, every, strict=True))
    # The whitening is an estimate, and the inverse of a Wishart matrix is larger on average.
    free = (client.control.n or 0) - 1
    inflation = free / max(free - len(W) - 1, 1)
    unexplained = inflation * float(np.trace(W @ noise @ W.T))
    # Differences of batches within regimes, whitened and times R, shape (ν, p).
    scaled, g = root @ apart @ W.T, share[1:] - share[0]
    nu, p = scaled.shape
    if not nu:
        return g, apart, L, BatchVariance(float("nan"), 0, False, float("nan"))
    # Eigenvalues of T are the squares of these.
    sizes = np.linalg.svd(scaled, compute_uv=False) ** 2
    total, largest = float(sizes.sum()), float(sizes[0])
    # To call equal offsets larger along some directions only costs precision, and to miss it would
    # state errors too small.
    uneven = p > 1 and nu > 1 and largest > total / p * noise_edge(p, nu, LENIENT)
    seen = largest / nu if uneven else total / max(nu * p - 2, 1)
    unit = unexplained / (nu * p)
    omega = max(seen - unit, 0.0) * nu / float(np.trace(L))
    strength = total / (unit * float(chdtri(nu * p, FALSE_ALARM)))
    return g, apart, L, BatchVariance(float(np.sqrt(omega)), nu, uneven, strength)
