"""What each regime shows of its target: its line q, the vector c, and its shift of the mean.

In coordinates whitened by the control, with every regime about its own mean, regime j shows

    d = m u + e ,        D = λ u uᵀ + c uᵀ + u cᵀ + N ,        c ⊥ u, ‖u‖ = 1

(T1, T7): u is the line of q, `λ u/2 + c` is the vector c of T1, and m is how far the intervention
moved the mean of its target. With `w_d = 1/(1/n + 1/n₀)` and `w_D = 1/(1/n + 1/n_eff)` (offsets of
batches add to the error of the mean, see `client.batches`: w_d is then the smaller), the log
likelihood of a line u, maximised over λ, c and m, is up to terms without u

    c free:   F(u) = ½ w_d (u·d)² + ½ w_D (‖Du‖² − ½ (uᵀDu)²)
    c = 0:    G(u) = ½ w_d (u·d)² + ¼ w_D (uᵀDu)² .

Candidate lines are the local maxima of F (at most two are kept) and the maximum of G. Without a
mean the maxima of F are the two null lines of D and F is the same at both; with one, F chooses.
Exact moments have their rank: see `exact`.

A target is *single* when c is not clear, no mean holds its line, and a c of ordinary size would
have been seen. Then the reading with c = 0 counts beside the free ones. A regime moved the *mean
alone* when its covariance about its own mean is the control's. It shows q and says nothing about c,
so that nothing follows about the ancestors of its target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.base.nulls import FALSE_ALARM, RARE_ALARM, mean_square_edge
from jigsaw_crl.client.white import White
from jigsaw_crl.nullcone.search import search

# Two free lines and the line of "c = 0".
READINGS = 3
ZERO = READINGS - 1
# Log likelihood of a reading that does not exist.
IMPOSSIBLE = -1e6
# A line less likely by e^12 than another is no candidate.
NO_CANDIDATE = 12.0
# The fit of noise to the p − 1 free directions of c is worth (p − 1)/2 on average with a known line
# and up to twice that without; evidence must exceed it by this factor.
OCCAM = 1.6
# Mean shifts are used if their χ² off the lines is at most this many times its expectation.
MISFIT = 2.0
# Where nothing holds a line, the rotation that noise leaves open is a quarter of its largest size.
ROTATION = 0.25
# An unseen c is taken to have this share of the lower quartile of the seen ones; where noise alone
# shows more than that, nothing is known about c.
UNSEEN = 0.5
# Log odds of "c is free" from which c counts as seen. Up to there a target counts as single: what
# is said about its ancestors needs a clear second direction. Of 2,504 regimes that changed noise
# alone, 11 pass 2 and none passes 5.
SEEN = 5.0
# Probability that a regime that moved the mean alone is taken for one that changed the covariance.
MEAN_ALONE = 0.01


@dataclass(frozen=True, eq=False)
class Readings:
    """Readings of every regime: two lines with c free (slots 0, 1) and one with c = 0 (slot 2)."""

    # What was read, without the matrices M, and without shifts where these do not fit.
    white: White
    # Unit line, and the part of `Du` orthogonal to it (zeros in slot 2), shape (r, 3, p).
    u: FloatArray
    c: FloatArray
    # By slot, shape (r, 3): which readings exist, and their log likelihood with the advantage of a
    # free c over noise taken off (`IMPOSSIBLE` where there is no reading); uᵀDu and u·d.
    has: BoolArray
    log_likelihood: FloatArray
    lam: FloatArray
    m: FloatArray
    # ‖c‖² without what noise adds to it, `√(‖c‖⁴ − null²)`, as for a spiked covariance, and what
    # noise alone shows of ‖c‖² when c = 0.
    signal: FloatArray
    null: FloatArray
    # α, the information about a rotation of u per direction, and the part of it that only bounds a
    # rotation which nothing determines.
    precision: FloatArray
    loose: FloatArray
    # By regime, shape (r,): w_d and w_D.
    w_mean: FloatArray
    w_cov: FloatArray
    # How clearly the regime differs from the control: 1 is the edge of chance.
    strength: FloatArray
    # Log odds of "c is free" against "c = 0".
    odds: FloatArray
    # The mean fixes the line, so that c is known to first order however small it is.
    held: BoolArray
    # Regimes that show one target; of these, the ones that moved a single direction where a second
    # would have been seen, and those that moved the mean and nothing else.
    usable: BoolArray
    single: BoolArray
    mean_alone: BoolArray
    # Change of the covariance along the shift of the mean; up to 1 it is chance.
    change: FloatArray
    # Length of c, the unit of effects on it.
    size: FloatArray
    # Some c is clearly seen, so that interventions tell about ancestry.
    identified: bool = True
    # Do the mean shifts lie on lines that the covariances allow? And their χ² off those lines over
    # its degrees of freedom, on average, with the edge beyond which they do not.
    means_fit: bool = True
    misfit: float = float("nan")
    most_misfit: float = MISFIT


def estimate(white: White) -> Readings:
    """Candidate readings of every regime, with the means if these fit and without them otherwise.

    For each regime whose covariance fixes its line, the shift off the line costs
    `X = 2 [best without the mean + ½ w_d ‖d‖² − best with it]`, about χ² with p − 1 degrees of
    freedom if the shift is that of an intervention. A batch offset points anywhere: X is then of
    the size of the offset. The means of a client are used if ΣX is at most twice its expectation,
    or within chance, given that shifts share the control's error.
    Sensor noise, which the whitening leaves out, makes the errors of means larger: they have the
    covariance `I + noise`.
    """
    p, errors = white.dimension, white.errors
    free = max(p - 1, 1)
    w_mean = errors.precision
    joint = _describe(white, w_mean)
    if not white.d.any():
        return joint
    alone = _describe(white, np.zeros_like(w_mean))
    best_alone, best_joint = (
        np.maximum(r.log_likelihood[:, 0] - (gain := np.maximum(r.odds, 0.0)), 0.0) + gain
        for r in (alone, joint)
    )
    spread = np.ones(p) if white.noise is None else 1.0 + np.linalg.eigvalsh(white.noise)
    length = np.einsum("rp,rp->r", white.d, white.d)
    misfit = 2.0 * (best_alone + 0.5 * w_mean * length - best_joint) / (free * spread.mean())
    # The covariance fixes the line where it says three times what noise alone does: about p for
    # many rows, and more for few.
    chance = free * (1.0 + 0.5 * np.sqrt(p / white.size)) ** 2
    known = (best_alone > 3.0 * chance) & errors.known
    if not known.any():
        return joint
    # Shifts have the error of the control's mean in common: the eigenvalues of the correlations of
    # their errors are the variances of the independent parts, on average 1.
    error = np.sqrt(errors.variance[known])
    R = errors.shared[known][:, known] / (errors.n_control * error * error[:, None])
    np.fill_diagonal(R, 1.0)
    parts = np.outer(np.linalg.eigvalsh(R), spread / spread.mean()).ravel()
    most = max(MISFIT, mean_square_edge(parts, free / p, RARE_ALARM))
    mean = float(misfit[known].mean())
    if mean <= most:
        return joint
    without = replace(alone.white, d=np.zeros_like(white.d))
    return replace(alone, white=without, means_fit=False, misfit=mean, most_misfit=most)


def _describe(white: White, w_mean: FloatArray) -> Readings:
    p, r = white.dimension, len(white.n)
    free = max(p - 1, 1)
    # Fewer than 2p rows fit some c by chance, and p rows or fewer fit one perfectly. Control rows
    # make up for those that are missing: `w_D/2p` of D is fitted, with the weight of 2p rows.
    fitted = np.minimum(white.size / (2.0 * p), 1.0)
    w_cov = white.size * fitted
    x, height = search(white, w_mean, w_cov)
    has = np.isfinite(height) & (height > height[:, :1] - NO_CANDIDATE)
    has[:, ZERO] = True
    change, basis = white.eigen.values[:, None] - 1.0, white.eigen.vectors.mT
    u, image = x @ basis, (x * change) @ basis
    lam = np.einsum("rsp,rsp->rs", u, image)
    c = image - lam[:, :, None] * u
    c[:, ZERO] = 0.0
    m = np.einsum("rsp,rp->rs", u, white.d)
    wd, wD, spread = w_mean[:, None], w_cov[:, None], 1.0 / white.size[:, None]
    m2 = np.maximum(m**2 - np.divide(1.0, wd, out=np.zeros_like(wd), where=wd > 0), 0.0)
    own = 1.0 + np.maximum(lam, -0.9)
    # What noise makes of ‖c‖²: with the line known, and by turning the line where it is not.
    edge = 2.0 * np.abs(lam) * np.sqrt(free * spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = np.where(wd * m2 > 0, lam**2 * free / (wd * m2), np.inf)
    loose = np.minimum(edge, turned)
    null = loose + free * np.maximum(own, 1.0) * spread
    signal = np.sqrt(np.maximum(np.einsum("rsp,rsp->rs", c, c) ** 2 - null**2, 0.0))
    bound = np.maximum(wD * (ROTATION * loose - signal), 0.0)
    precision = wd * m2 + wD * signal + bound
    by_variance = wD[:, 0] * lam[:, ZERO] ** 2 / own[:, ZERO] - free
    precision[:, ZERO] = wd[:, 0] * m2[:, ZERO] + np.maximum(by_variance, 0.0)
    # Noise alone gains this by a free c.
    gained = fitted * free * (0.5 + 0.5 * loose[:, 0] / null[:, 0])
    for value in (null, signal, bound):
        value[:, ZERO] = 0.0
    # Given u, the coordinates off u are standard normal and u's is regressed on them, so that the
    # Gaussian log likelihood is `½ w_D (λ − log s²)` with s² the residual variance: `1/(uᵀM⁻¹u)` if
    # c is free, `1 + λ` if c = 0. F and G are its expansions for small D.
    share = fitted[:, None]
    inverse = (x**2 / np.maximum(1.0 + share[:, :, None] * change, 1e-12)).sum(axis=2)
    residual = 1.0 / np.maximum(inverse, 1e-12)
    residual[:, ZERO] = 1.0 + (share * lam)[:, ZERO]
    fit = share * lam - np.log(np.clip(residual, 1e-6, None))
    likelihood = 0.5 * (wD / share**2 * fit + wd * m**2)
    odds = likelihood[:, 0] - likelihood[:, ZERO] - OCCAM * gained
    different = likelihood[:, ZERO] + np.maximum(odds, 0.0)
    # Twice the likelihood that noise reaches is below the quantile of a χ² with 2p degrees of
    # freedom: p of the shift, and up to p of the covariance (from p = 2 to 60 and 12 rows to
    # thousands).
    strength = different / (0.5 * chdtri(p * (1.0 + fitted), FALSE_ALARM))
    likelihood[:, ZERO] = likelihood[:, 0] - odds
    none = np.zeros(r, dtype=bool)
    return Readings(
        white=replace(white, M=white.M[:, :0, :0]),
        u=u,
        c=c,
        has=has,
        log_likelihood=np.where(has, likelihood, IMPOSSIBLE),
        lam=lam,
        m=m,
        signal=signal,
        null=null,
        precision=precision + 1e-9,
        loose=bound,
        w_mean=w_mean,
        w_cov=w_cov,
        strength=strength,
        odds=odds,
        held=loose[:, 0] < 0.5 * edge[:, 0],
        usable=strength >= 1.0,
        single=none,
        mean_alone=none,
        change=np.zeros(r),
        size=np.ones(r),
    )


def decided(white: White, usable: BoolArray) -> Readings:
    """The readings with what is decided about every regime, from all of them together.

    `usable` are the regimes in which one target moved.
    """
    found = estimate(white)
    usable = usable & found.usable
    clear = usable & (found.odds > SEEN)
    identified = bool(clear.any())
    size, single = np.ones(len(usable)), np.zeros(len(usable), dtype=bool)
    if identified:
        root = np.sqrt(found.signal[:, 0])
        low = UNSEEN * float(np.quantile(root[clear], 0.25))
        size = np.where(found.odds > 0, np.fmax(root, low), low)
        single = (found.odds < SEEN) & ~found.held & (np.sqrt(found.null[:, 0]) < low)
    has = found.has.copy()
    has[:, ZERO] &= single
    best = np.where(has, found.log_likelihood, -np.inf).max(axis=1, keepdims=True)
    # The change of the covariance about the own mean along the shift. With u the direction of the
    # shift, which does not depend on the covariance of Gaussian rows, `w_D (½λ² + ‖c‖²)` is χ² with
    # p degrees of freedom if D = 0, and its first term with one.
    rows, norm = white.rows, np.linalg.norm(white.rows.d, axis=1, keepdims=True)
    u = np.divide(rows.d, norm, out=np.zeros_like(rows.d), where=norm > 0)
    image = (rows.M @ u[:, :, None])[:, :, 0] - u
    lam = np.einsum("rp,rp->r", u, image)
    both = np.einsum("rp,rp->r", image, image) - 0.5 * lam**2
    limits = chdtri(1, MEAN_ALONE / 2), chdtri(white.dimension, MEAN_ALONE / 2)
    change = white.size * np.maximum(0.5 * lam**2 / limits[0], both / limits[1])
    return replace(
        found,
        has=has,
        log_likelihood=np.where(has, found.log_likelihood - best, IMPOSSIBLE),
        usable=usable,
        single=single & usable,
        mean_alone=usable & found.held & (change <= 1.0) & found.means_fit,
        change=change,
        size=size,
        identified=identified,
    )
