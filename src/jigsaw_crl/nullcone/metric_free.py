"""Ancestry without a metric: from means and differences of covariances alone (T10).

All other readings whiten by the control covariance without the noise of the sensors. With as many
features as latents, or one more, that noise cannot be estimated. But means, and differences of
covariances, are free of it, whatever its size and shape, as long as it is the same in all regimes.

Let every latent of a linear client have a regime with a shifted mean, D the matrix of the shifts as
columns and K a left inverse of D. Row k of K reads the noise E_k of latent k over its shift, and

    t_jk = [K (C_j − C₀) Kᵀ]_jk = Cov(E_k, ξ_j) / (s_j s_k) ,     k ≠ j .

It vanishes unless k is an ancestor of j, or a hidden cause joins k to j or to an ancestor of j.
Where nothing is hidden it says everything; otherwise "no" stands, and "yes" may be a hidden cause.
"""

from __future__ import annotations

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.base.nulls import CLEAR_ERRORS
from jigsaw_crl.client.white import White
from jigsaw_crl.evidence.effects import Sizes
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.nullcone.changes import Changes, changes_of
from jigsaw_crl.nullcone.readings import UNSEEN


def read_metric_free(
    white: White, *, hidden: bool, scales: tuple[float, ...]
) -> tuple[BayesFactors, Sizes] | None:
    """Evidence and share of every pair; None where the noise is known, or this does not apply.

    It applies if every latent is the target of a regime that clearly shifts its mean.

    Parameters
    ----------
    white : White
    hidden : bool
        A hidden cause may join two targets.
    scales : tuple of float
        Effect scales of the hypotheses.
    """
    p, labels = white.dimension, np.unique(white.owner)
    if white.exact or white.space.known or not 1 < p == len(labels):
        return None
    changes, _ = changes_of(white, labels.tolist())
    shift = np.sqrt(changes.w_mean) * np.linalg.norm(changes.d, axis=1)
    if (shift <= CLEAR_ERRORS + np.sqrt(p)).any():
        return None
    value, error = _products(changes)
    tau = np.array(scales)[:, None, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = (value / error) ** 2 * tau**2 / (tau**2 + error**2)
        ancestor = 0.5 * (gain - np.log1p((tau / error) ** 2))
    for table in ancestor:
        np.fill_diagonal(table, np.nan)
    settled = ~np.eye(len(value), dtype=bool)
    # Of what changed in the equation of the column, the part that goes with the row. Where nothing
    # changed beyond chance, what an ordinary intervention would have changed counts.
    own = np.where(settled, value, np.nan)
    whole = np.sqrt(np.maximum(np.nansum(own**2, axis=0) - np.sum(error**2, axis=0), 0.0))
    seen = np.nanmax(np.abs(own) / error, axis=0) > CLEAR_ERRORS
    ordinary = UNSEEN * float(np.quantile(whole[seen], 0.25)) if seen.any() else np.nan
    whole = np.where(seen, np.fmax(whole, ordinary), ordinary)
    shares = Sizes(np.abs(own) / whole, np.where(settled, error / whole, np.nan))
    if not hidden:
        district = np.where(settled, 0.0, np.nan)
        return BayesFactors(scales, ancestor, district, settled=settled), shares
    # One product that differs from zero is as probable under a hidden cause that reaches one of
    # the targets weakly; if both do, no ancestry explains it.
    with np.errstate(invalid="ignore"):
        either = np.logaddexp.reduce(ancestor, axis=0) - np.log(len(scales))
        ways = [either, either.T, either + either.T]
        district = np.logaddexp.reduce(ways, axis=0) - np.log(len(ways))
    return BayesFactors(scales, ancestor, district), shares


def _products(changes: Changes) -> tuple[FloatArray, FloatArray]:
    """`[k, j]`: t_jk in units of the control, and its standard error, shape (p, p) each.

    Errors are those of both covariances and, to first order, of the shifts in K:
    `δt_jk = −Σ_m t_jm (K δd_m)_k − t_jk (K δd_j)_j`, where all shifts share the control's mean.
    """
    K = np.linalg.pinv(changes.d.T)
    T = K @ changes.D @ K.T
    control = K @ K.T
    own = T + control
    rows = np.arange(len(K))
    t = T[rows, rows]
    variance = np.zeros_like(t)
    # Variance of (K δd_m)_k, shape (m, k), and what the control's mean adds to all of them.
    diagonal = np.einsum("rkk->rk", own)
    of_mean = diagonal / changes.n_mean[:, None]
    shared = float(changes.control_mean.mean()) * np.diagonal(control)
    for j in rows:
        C = own[j]
        variance[j] = (C[j, j] * np.diagonal(C) + C[j] ** 2) / changes.n[j]
        variance[j] += (control[j, j] * np.diagonal(control) + control[j] ** 2) / changes.n_control
        variance[j] += t[j] ** 2 @ of_mean + t[j].sum() ** 2 * shared
        variance[j] += t[j] ** 2 * (of_mean[j, j] + shared[j])
    # In standard deviations of the control, or in shifts where these are smaller: noise, of unknown
    # size, adds to the former.
    size = np.minimum(np.sqrt(np.diagonal(control)), 1.0)
    unit = size[:, None] * size
    return (t / unit).T, (np.sqrt(variance) / unit).T
