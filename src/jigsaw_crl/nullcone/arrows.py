"""What one intervention did: its line q, the vector c, and its shift of the mean.

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

Every maximum lies in the span of the outermost eigenvectors of D and of d, Dd, D²d, …: of the
outermost eigenvectors alone without a mean, and with one because u solves
`(D² − λD − μ) u = −(w_d/w_D)(u·d) d`, where the rest of D's spectrum is narrow. The search
therefore works with matrices of dimension `SPAN`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.client.batches import MeanErrors
from jigsaw_crl.client.white import White
from jigsaw_crl.nullcone.arrow_search import search

__all__ = ["Arrows", "estimate", "shifts_fit"]


# Powers of D applied to the mean shift; with two eigenvectors the span has two dimensions more.
POWERS = 4
SPAN = POWERS + 2
# Two free lines and the line of "c = 0".
READINGS = 3
ZERO = 2
# Lines closer than a degree are one candidate (two null lines can be close: where λ is large, their
# angle is about 2‖c‖/λ); one less likely by e^12 is none.
SAME_LINE, NEGLIGIBLE = 0.9999, 12.0
# The fit of noise to the p − 1 free directions of c is worth (p − 1)/2 on average with a known line
# and up to twice that without; evidence must exceed it by this factor.
OCCAM = 1.6
# Probability that a regime that follows the control counts as different. Twice the likelihood that
# noise reaches is then below the quantile of a χ² with 2p degrees of freedom: p of the shift, and
# up to p of the covariance (from p = 2 to 60 and 12 rows to thousands).
CHANCE = 1e-3
# Mean shifts are used if their χ² off the lines is at most this many times its expectation.
MISFIT = 2.0
# Where nothing holds a line, the rotation that noise leaves open is a quarter of its largest size.
OPEN_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class Arrows:
    """Readings of every regime: two lines with c free (slots 0, 1) and one with c = 0 (slot 2).

    Parameters
    ----------
    u, c : array, shape (r, 3, p)
        Unit line, and the part of `Du` orthogonal to it (zeros in slot 2).
    has : array of bool, shape (r, 3)
        Which readings exist.
    log_likelihood : array, shape (r, 3)
        With the advantage of a free c over noise taken off; −inf where there is no reading.
    lam, m : array, shape (r, 3)
        `uᵀDu` and `u·d`.
    signal : array, shape (r, 3)
        ‖c‖² without what noise adds to it, `√(‖c‖⁴ − null²)`, as for a spiked covariance.
    null : array, shape (r, 3)
        ‖c‖² that noise alone shows when c = 0.
    precision : array, shape (r, 3)
        α: information about a rotation of u, per direction.
    loose : array, shape (r, 3)
        The part of α that only bounds a rotation which nothing determines.
    odds : array, shape (r,)
        Log odds of "c is free" against "c = 0".
    held : array of bool, shape (r,)
        The mean fixes the line, so that c is known to first order however small it is.
    strength : array, shape (r,)
        How clearly the regime differs from the control: 1 is the edge of chance.
    n, w_mean, w_cov : array, shape (r,)
        Rows, w_d and w_D.
    errors : MeanErrors
    n_eff : float
    noise : array, shape (p, p), or None
        Covariance of the sensors' noise in these coordinates; None without any.
    """

    u: FloatArray
    c: FloatArray
    has: BoolArray
    log_likelihood: FloatArray
    lam: FloatArray
    m: FloatArray
    signal: FloatArray
    null: FloatArray
    precision: FloatArray
    loose: FloatArray
    odds: FloatArray
    held: BoolArray
    strength: FloatArray
    n: FloatArray
    w_mean: FloatArray
    w_cov: FloatArray
    errors: MeanErrors
    n_eff: float
    noise: FloatArray | None = None

    @property
    def seen(self) -> BoolArray:
        """Regimes that differ from the control, shape (r,)."""
        return self.strength >= 1.0

    def keep(self, has: BoolArray) -> Arrows:
        """The same with some readings only."""
        return replace(self, has=has, log_likelihood=np.where(has, self.log_likelihood, -np.inf))


@dataclass(frozen=True, eq=False)
class _Span:
    """Regimes restricted to a few directions: rows `B`, images `DB`, and their products."""

    B: FloatArray
    DB: FloatArray
    first: FloatArray
    second: FloatArray
    d: FloatArray
    size: FloatArray


def _span(M: FloatArray, d: FloatArray, low: FloatArray, high: FloatArray) -> _Span:
    """`B D Bᵀ`, `B D² Bᵀ` and `B d`, B spanning the extreme eigenvectors and powers of D on d."""
    r, p = d.shape
    if p <= SPAN:
        B = np.broadcast_to(np.eye(p), (r, p, p))
    else:
        block = [low, high, d]
        for _ in range(POWERS - 1):
            last = block[-1]
            size = np.sqrt(np.einsum("rp,rp->r", last, last))[:, None]
            last = last / np.where(size > 0, size, 1.0)
            block.append((M @ last[:, :, None])[:, :, 0] - last if size.any() else last)
        Q, _ = np.linalg.qr(np.stack(block, axis=2))
        B = np.ascontiguousarray(np.swapaxes(Q, 1, 2))
    DB = B @ M - B
    first = B @ np.swapaxes(DB, 1, 2)
    return _Span(
        B,
        DB,
        np.ascontiguousarray((first + np.swapaxes(first, 1, 2)) / 2),
        np.ascontiguousarray(DB @ np.swapaxes(DB, 1, 2)),
        np.einsum("rkp,rp->rk", B, d),
        np.einsum("rp,rp->r", d, d),
    )


def _covariance_weight(n: FloatArray, n_eff: float, p: int) -> tuple[FloatArray, FloatArray]:
    """Weight of D in the likelihood, and the share of D that is fitted.

    Fewer than 2p rows fit some c by chance, and p rows or fewer fit one perfectly. Control rows
    make up for those that are missing: `w_D/2p` of D is fitted, with the weight of 2p rows.
    """
    w = 1.0 / (1.0 / n + 1.0 / n_eff)
    share = np.minimum(w / (2.0 * p), 1.0)
    return w * share, share


def _readings(
    span: _Span, w_mean: FloatArray, w_cov: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Coordinates of the candidate lines in the span, their likelihoods, and which exist."""
    r, k = span.d.shape
    x, value = np.zeros((r, READINGS, k)), np.full((r, READINGS), -np.inf)
    values, vectors = np.linalg.eigh(span.first)
    eigen = values, np.ascontiguousarray(np.swapaxes(vectors, 1, 2))
    given = (span.first, span.second, span.d, *eigen, w_mean, w_cov, SAME_LINE)
    search(*given, x, value)
    has = np.isfinite(value) & (value > value[:, :1] - NEGLIGIBLE)
    has[:, ZERO] = True
    return x, value, has


def estimate(white: White, *, use_mean: bool = True) -> Arrows:
    """Candidate readings of every regime.

    Parameters
    ----------
    white : White
        Regimes about their own means.
    use_mean : bool
        False where the means do not fit the lines (see `shifts_fit`).
    """
    span = _span(white.M, white.d, white.eigen.low, white.eigen.high)
    return _describe(span, white, white.errors.precision * float(use_mean))


def _describe(span: _Span, white: White, w_mean: FloatArray) -> Arrows:
    p, n, n_eff = white.dimension, white.n, white.n_eff
    free = max(p - 1, 1)
    w_cov, fitted = _covariance_weight(n, n_eff, p)
    spread = (1.0 / n + 1.0 / n_eff)[:, None]
    x, _, has = _readings(span, w_mean, w_cov)
    u = x @ span.B
    image = x @ span.DB
    lam = np.einsum("rsp,rsp->rs", u, image)
    c = image - lam[:, :, None] * u
    c[:, ZERO] = 0.0
    m = np.einsum("rsk,rk->rs", x, span.d)
    size = np.einsum("rsp,rsp->rs", c, c)
    wd, wD = w_mean[:, None], w_cov[:, None]
    noise = np.divide(1.0, wd, out=np.zeros_like(wd), where=wd > 0)
    m2 = np.maximum(m**2 - noise, 0.0)
    own = 1.0 + np.maximum(lam, -0.9)
    # What noise makes of ‖c‖²: with the line known, and by turning the line where it is not.
    edge = 2.0 * np.abs(lam) * np.sqrt(free * spread)
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = np.where(wd * m2 > 0, lam**2 * free / (wd * m2), np.inf)
    loose = np.minimum(edge, turned)
    null = loose + free * np.maximum(own, 1.0) * spread
    signal = np.sqrt(np.maximum(size**2 - null**2, 0.0))
    bound = np.maximum(wD * (OPEN_SHARE * loose - signal), 0.0)
    precision = wd * m2 + wD * signal + bound
    by_variance = wD[:, 0] * lam[:, ZERO] ** 2 / own[:, ZERO] - free
    precision[:, ZERO] = wd[:, 0] * m2[:, ZERO] + np.maximum(by_variance, 0.0)
    share = loose[:, 0] / null[:, 0]
    for value in (null, signal, bound):
        value[:, ZERO] = 0.0
    likelihood, gained = _likelihoods(x, span, lam, m, wd, wD, fitted, share, free)
    odds = likelihood[:, 0] - likelihood[:, ZERO] - OCCAM * gained
    seen = likelihood[:, ZERO] + np.maximum(odds, 0.0)
    needed = 0.5 * chdtri(p * (1.0 + fitted), CHANCE)
    likelihood[:, ZERO] = likelihood[:, 0] - odds
    likelihood[~has] = -np.inf
    return Arrows(
        u=u,
        c=c,
        has=has,
        log_likelihood=likelihood,
        lam=lam,
        m=m,
        signal=signal,
        null=null,
        precision=precision + 1e-9,
        loose=bound,
        odds=odds,
        held=loose[:, 0] < 0.5 * edge[:, 0],
        strength=seen / needed,
        n=n,
        w_mean=w_mean,
        w_cov=w_cov,
        errors=white.errors,
        n_eff=n_eff,
        noise=white.noise,
    )


def _likelihoods(
    x: FloatArray,
    span: _Span,
    lam: FloatArray,
    m: FloatArray,
    wd: FloatArray,
    wD: FloatArray,
    fitted: FloatArray,
    loose: FloatArray,
    free: int,
) -> tuple[FloatArray, FloatArray]:
    """Gaussian log likelihood of every reading, and what noise alone gains by a free c.

    Given u, the coordinates off u are standard normal and u's is regressed on them, so that the
    likelihood is `½ w_D (λ − log s²)` with s² the residual variance: `1/(uᵀM⁻¹u)` if c is free,
    `1 + λ` if c = 0. F and G are its expansions for small D, of which the share `fitted` counts.
    """
    k = span.d.shape[1]
    own = fitted[:, None]
    M = np.eye(k) + own[:, :, None] * span.first
    inverse = np.linalg.solve(M, np.swapaxes(x, 1, 2))
    residual = 1.0 / np.maximum(np.einsum("rsk,rks->rs", x, inverse), 1e-12)
    residual[:, ZERO] = 1.0 + (own * lam)[:, ZERO]
    residual = np.clip(residual, 1e-6, None)
    value = 0.5 * wd * m**2 + 0.5 * wD / own**2 * (own * lam - np.log(residual))
    return value, fitted * free * (0.5 + 0.5 * loose)


def shifts_fit(white: White) -> tuple[bool, FloatArray, Arrows]:
    """Do the mean shifts lie on lines that the covariances allow? And the readings that follow.

    For each regime whose covariance fixes its line, the shift off the line costs
    `X = 2 [best without the mean + ½ w_d ‖d‖² − best with it]`, about χ² with p − 1 degrees of
    freedom if the shift is that of an intervention. A batch offset points anywhere: X is then of
    the size of the offset. The means of a client are used if ΣX is at most twice its expectation,
    or within chance, given that shifts share the control's error. Sensor noise, which the whitening
    leaves out, makes the errors of means larger: they have the covariance `I + noise`.

    Returns
    -------
    fit : bool
    misfit : array, shape (r,)
        X over its expectation; nan where the covariance says too little.
    arrows : Arrows
        What `estimate` returns with the means if they fit, and without them otherwise.
    """
    p, errors = white.dimension, white.errors
    free = max(p - 1, 1)
    span = _span(white.M, white.d, white.eigen.low, white.eigen.high)
    w_mean = errors.precision
    best, found = [], []
    # Without any shift, the readings are the same with and without the means.
    for w in (np.zeros_like(w_mean), w_mean) if white.d.any() else (w_mean,):
        a = _describe(span, white, w)
        found.append(a)
        gain = np.maximum(a.odds, 0.0)
        best.append(np.maximum(a.log_likelihood[:, 0] - gain, 0.0) + gain)
    alone, joint = best[0], best[-1]
    spread = np.ones(p) if white.noise is None else 1.0 + np.linalg.eigvalsh(white.noise)
    misfit = 2.0 * (alone + 0.5 * w_mean * span.size - joint) / (free * float(spread.mean()))
    # The covariance fixes the line where it says three times what noise alone does: about p for
    # many rows, and more for few.
    chance = free * (1.0 + 0.5 * np.sqrt(p / white.size)) ** 2
    misfit[(alone <= 3.0 * chance) | ~errors.known] = np.nan
    known = ~np.isnan(misfit)
    fit = True
    if known.any():
        even = float(spread.mean() ** 2 / np.mean(spread**2))
        degrees = free * even * errors.independent(known)
        most = max(MISFIT, float(chdtri(degrees, CHANCE)) / degrees)
        fit = float(misfit[known].mean()) <= most
    return fit, misfit, found[-1 if fit else 0]
