"""What each regime of a client shows of its target: readings, sizes of c, single directions.

Estimated moments are read as arrows (`arrows`): up to two lines with c free, and one with c = 0.
Exact moments have their rank: a target shows its two null lines, or one line and no c.

A target is *single* when c = 0 fits, no mean holds its line, and a c of ordinary size would have
been seen. Then the reading with c = 0 counts beside the free ones.

A regime moved the *mean alone* when its covariance about its own mean is the control's. It shows q
and says nothing about c, so that nothing follows about the ancestors of its target.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import chdtri

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.white import White
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.arrow_pairs import arrow_statistics
from jigsaw_crl.nullcone.arrows import ZERO, Arrows, shifts_fit
from jigsaw_crl.nullcone.choice import IMPOSSIBLE
from jigsaw_crl.nullcone.effects import Arrow, chosen_arrows
from jigsaw_crl.nullcone.lines import Lines, duals, null_lines
from jigsaw_crl.nullcone.pairs import by_reading, pair_statistics, untold
from jigsaw_crl.nullcone.second_targets import Second
from jigsaw_crl.nullcone.spikes import MARGIN, Spikes

__all__ = ["Targets", "arrow_targets", "exact_targets"]


# An unseen c is taken to have this share of the lower quartile of the seen ones; where noise alone
# shows more than that, nothing is known about c.
UNSEEN = 0.5
# Log odds of "c is free" from which the size of c counts as seen.
CLEAR = 2.0
# Probability that a regime that moved the mean alone is taken for one that changed the covariance.
MEAN_ALONE = 0.01


@dataclass(frozen=True, eq=False)
class Targets:
    """Readings of all regimes, in the form that pairs of them are compared in.

    Parameters
    ----------
    lines : array, shape (r, s, p)
        Unit line of each reading; zeros where there is none.
    log_likelihood : array, shape (r, s)
        Of each reading by the regime alone; `IMPOSSIBLE` where there is none.
    size : array, shape (r,)
        Length of c, the unit of effects on it.
    strength : array, shape (r,)
        How clearly each regime differs from the control: 1 is the edge of chance.
    usable : array of bool, shape (r,)
        Regimes that show one target.
    single : array of bool, shape (r,)
    mean_alone : array of bool, shape (r,)
        Usable regimes that moved the mean and nothing else.
    change : array, shape (r,)
        Change of the covariance along the shift of the mean; up to 1 it is chance.
    statistics : Statistics
        Of all pairs of usable regimes of different labels.
    identified : bool
        Some c is clearly seen, so that interventions tell about ancestry.
    means_fit : bool
        The mean shifts lie on lines that the covariances allow.
    misfit : float
        χ² over its degrees of freedom of the shifts off those lines, on average.
    lean : array, shape (r,)
        How far the line of a single target leans on another line beyond what a missed second
        direction explains, in standard errors: the most that a regime's line leans; −∞ if none.
    arrows : Arrows or None
        None for exact moments.
    planes : Lines or None
        Null lines of exact moments; None for estimates.
    shifts : array, shape (r, p)
        Whitened shifts of the means.
    unseen : array, shape (r,)
        Standard error of each coordinate of a c that does not show.
    natural : array, shape (r,)
        What takes c of the statistics to its natural length.
    length : array, shape (r,)
        `‖u − c‖` in natural lengths, the unit of the effects of hard interventions (T8).
    """

    lines: FloatArray
    log_likelihood: FloatArray
    size: FloatArray
    strength: FloatArray
    usable: BoolArray
    single: BoolArray
    mean_alone: BoolArray
    change: FloatArray
    statistics: Statistics
    identified: bool
    shifts: FloatArray
    unseen: FloatArray
    natural: FloatArray
    length: FloatArray
    means_fit: bool = True
    misfit: float = float("nan")
    lean: FloatArray = field(default_factory=lambda: np.zeros(0))
    arrows: Arrows | None = None
    planes: Lines | None = None

    def claimed(self, hard: BoolArray) -> Targets:
        """The targets if the interventions of some regimes (a mask) are hard.

        If such a regime does not change the covariance, c is zero. Of any other, nothing is known.
        """
        alone = self.mean_alone & ~hard
        statistics = _without_unmoved(self.statistics, alone)
        return replace(self, mean_alone=alone, single=self.single & ~alone, statistics=statistics)

    def chosen(self, reading: IntArray) -> Arrow:
        """The chosen readings in natural lengths, each line in the direction of its shift."""
        if self.arrows is not None:
            return chosen_arrows(self.arrows, self.shifts, reading)
        assert self.planes is not None
        rows = np.arange(len(reading))
        u, other = self.lines[rows, reading], self.planes.n[rows, 1 - reading]
        c = other - np.einsum("rp,rp->r", u, other)[:, None] * u
        # Du = ‖n‖ n' + …, so that c is ‖n‖ times the other line's part off u.
        c *= np.linalg.norm(self.planes.n[rows, reading], axis=1)[:, None]
        sign = np.where(np.einsum("rp,rp->r", u, self.shifts) < 0, -1.0, 1.0)[:, None]
        size = np.einsum("rp,rp->r", c, c)
        return Arrow(sign * u, sign * c, self.shifts, size, None, reading)

    def basis_lines(self, reading: IntArray) -> tuple[Lines, IntArray]:
        """The chosen readings as lines and duals, and which line of each is q: see `basis`."""
        if self.arrows is None:
            assert self.planes is not None
            return self.planes, reading
        return _held_lines(self.arrows, reading, self.usable), np.zeros_like(reading)


def _pairs(
    owner: IntArray, usable: BoolArray, second: Second | None = None
) -> tuple[IntArray, IntArray]:
    """Pairs of usable regimes of different labels, neither the second target of the other."""
    i, j = np.triu_indices(len(owner), 1)
    keep = usable[i] & usable[j] & (owner[i] != owner[j])
    if second is not None:
        other = np.where(second.found, owner[second.regime], -1)
        keep &= (other[i] != owner[j]) & (other[j] != owner[i])
    return i[keep], j[keep]


def exact_targets(white: White, spikes: Spikes) -> Targets:
    """Targets of exact moments, which show the rank itself."""
    planes = null_lines(spikes)
    usable = (planes.rank > 0) & ~spikes.several
    pairs = _pairs(white.owner, usable)
    rounding = 1.0 / np.sqrt(white.n)
    found = pair_statistics(planes, rounding, *pairs)
    change = _change_beside_shift(white, spikes)
    mean_alone = usable & (planes.rank == 1) & spikes.has_high & (change <= 1.0)
    complete = len(np.unique(white.owner[usable])) == white.dimension
    told = ~untold(found, planes, rounding, complete)
    norm = np.linalg.norm(planes.n, axis=2, keepdims=True)
    has = norm[:, :, 0] > 0
    unit = np.divide(planes.n, norm, out=np.zeros_like(planes.n), where=norm > 0)
    fit = _fit_of_shifts(unit, white.d, white.n, planes.errors(rounding))
    between = np.einsum("rp,rp->r", unit[:, 0], unit[:, 1])
    natural = np.where(planes.rank == 2, norm.prod(axis=(1, 2)) * np.sqrt(1 - between**2), 1.0)
    return Targets(
        lines=unit,
        log_likelihood=np.where(has, fit, IMPOSSIBLE),
        size=np.ones(len(usable)),
        strength=spikes.excess / MARGIN,
        usable=usable,
        single=planes.rank == 1,
        mean_alone=mean_alone,
        change=change,
        statistics=by_reading(found, planes).of(told),
        identified=bool((planes.rank[usable] == 2).any()),
        planes=planes,
        shifts=white.d,
        unseen=np.zeros(len(usable)),
        natural=natural,
        length=np.sqrt(1.0 + np.where(planes.rank == 2, natural, 0.0) ** 2),
    )


def _fit_of_shifts(
    unit: FloatArray, shifts: FloatArray, n: FloatArray, error: FloatArray
) -> FloatArray:
    """Log likelihood of each line by the exact shift, which lies on the line of q (T7), (r, 2).

    `error` is how far the lines of each regime may be off, as an angle, shape (r,).
    """
    # The part off a line, not ‖d‖² − ⟨u, d⟩²: that difference is all rounding on the line of q.
    off = shifts[:, None] - np.einsum("rsp,rp->rs", unit, shifts)[:, :, None] * unit
    variance = 1.0 / n + np.einsum("rp,rp->r", shifts, shifts) * np.minimum(error, 1.0) ** 2
    fit = -0.5 * np.einsum("rsp,rsp->rs", off, off) / variance[:, None]
    return np.asarray(np.maximum(fit, 0.5 * IMPOSSIBLE))


def arrow_targets(white: White, spikes: Spikes, second: Second | None = None) -> Targets:
    """Targets of estimated moments, from means and covariances together.

    `second` are the second targets that were taken off the regimes.
    """
    fit, misfit, arrows = shifts_fit(white)
    usable = arrows.seen & ~spikes.several & (True if second is None else ~second.refused)
    size, low = _sizes(arrows, usable)
    identified = not np.isnan(low)
    single = np.zeros(len(usable), dtype=bool)
    if identified:
        visible = np.sqrt(arrows.null[:, 0]) < UNSEEN * low
        single = (arrows.odds < 0) & ~arrows.held & visible
    change = _change_along(white)
    mean_alone = usable & arrows.held & (change <= 1.0) & fit
    has = arrows.has.copy()
    has[:, ZERO] &= single
    arrows = arrows.keep(has)
    own = arrows.log_likelihood - arrows.log_likelihood.max(axis=1, keepdims=True)
    statistics = arrow_statistics(arrows, *_pairs(white.owner, usable, second))
    if second is not None:
        statistics = second.widened(statistics, arrows, size)
    return Targets(
        lines=arrows.u,
        log_likelihood=np.where(has, own, IMPOSSIBLE),
        size=size,
        strength=arrows.strength,
        usable=usable,
        single=single & usable,
        mean_alone=mean_alone,
        change=change,
        statistics=statistics,
        identified=identified,
        shifts=white.d if fit else np.zeros_like(white.d),
        unseen=np.sqrt(arrows.null[:, 0] / max(arrows.u.shape[2] - 1, 1)),
        natural=np.ones(len(usable)),
        length=np.sqrt(1.0 + arrows.signal[:, 0]),
        means_fit=fit,
        misfit=float(misfit[known].mean()) if (known := ~np.isnan(misfit)).any() else float("nan"),
        lean=_lean(arrows, statistics, single),
        arrows=arrows,
    )


def _lean(arrows: Arrows, statistics: Statistics, single: BoolArray) -> FloatArray:
    """The most that each single target's line leans on another one: see `Targets`.

    A c as large as noise hides, √null, tilts a line of eigenvalue λ by at most atan(√null/λ). Where
    the other target has two lines, the one that leans less counts.
    """
    size = np.maximum(np.abs(arrows.lam[:, ZERO]), np.finfo(np.float64).tiny)
    tilt = np.where(single, np.sin(np.arctan(np.sqrt(arrows.null[:, 0]) / size)), 0.0)
    first, second = statistics.first, statistics.second
    slots = arrows.has.shape[1]
    worst = np.full(len(single), -np.inf)
    for own, other, stride in ((first, second, (slots, 1)), (second, first, (1, slots))):
        rows = np.flatnonzero(single[own])
        own, other = own[rows], other[rows]
        least = np.full(len(rows), np.inf)
        for slot in range(ZERO):
            reading = np.where(single[other], ZERO, slot)
            pick = stride[0] * ZERO + stride[1] * reading
            g = np.abs(statistics.values[rows, pick, 0]) - tilt[own] - tilt[other]
            error = np.sqrt(statistics.covariance[rows, pick, 0, 0])
            there = arrows.has[other, reading] & (error > 0)
            score = np.divide(g, error, out=np.full_like(g, np.inf), where=there)
            least = np.minimum(least, score)
        known = np.isfinite(least)
        np.maximum.at(worst, own[known], least[known])
    return worst


def _without_unmoved(statistics: Statistics, mean_alone: BoolArray) -> Statistics:
    """The statistics without what they say about a c that was not moved.

    Such a c is free, and the product with it is zero with variance 1, whatever the relation is.
    """
    if not mean_alone.any():
        return statistics
    values, covariance = statistics.values.copy(), statistics.covariance.copy()
    free = statistics.free.copy()
    for side, (regime, at) in enumerate(((statistics.first, 2), (statistics.second, 1))):
        k = mean_alone[regime]
        values[k, :, at] = 0.0
        covariance[k, :, at, :] = covariance[k, :, :, at] = 0.0
        covariance[k, :, at, at] = 1.0
        free[k, :, side] = True
    return replace(statistics, values=values, covariance=covariance, free=free)


def _change_beside_shift(white: White, spikes: Spikes) -> FloatArray:
    """How far D of exact moments exceeds `d dᵀ`, d the shift of the mean; 1 is rounding."""
    left = spikes.high - np.einsum("rp,rp->r", spikes.high_vector, white.d) ** 2
    rounding = MARGIN * np.sqrt(white.dimension / white.n) * (1.0 + spikes.high)
    return np.asarray(np.abs(left) / rounding)


def _change_along(white: White) -> FloatArray:
    """How far each covariance about its own mean differs from the control's along the shift.

    Up to 1 it is chance, with probability 1 − `MEAN_ALONE`.

    With u the direction of the shift, which does not depend on the covariance of Gaussian rows,
    `w_D (½λ² + ‖c‖²)` is χ² with p degrees of freedom if D = 0, and its first term with one.
    """
    r, p = white.d.shape
    shifts = white.d
    if not shifts.any():
        return np.zeros(r)
    norm = np.linalg.norm(shifts, axis=1, keepdims=True)
    u = np.divide(shifts, norm, out=np.zeros_like(shifts), where=norm > 0)
    image = (white.M @ u[:, :, None])[:, :, 0] - u
    lam = np.einsum("rp,rp->r", u, image)
    c = image - lam[:, None] * u
    along, across = np.ones(r), 1.0
    if white.noise is not None:
        along = 1.0 + np.einsum("rp,pq,rq->r", u, white.noise, u)
        across = 1.0 + float(np.trace(white.noise)) / p
    own = white.size * 0.5 * (lam / along) ** 2
    rest = white.size * np.einsum("rp,rp->r", c, c) / (along * across)
    both = np.stack([own / chdtri(1, MEAN_ALONE / 2), (own + rest) / chdtri(p, MEAN_ALONE / 2)])
    return np.asarray(both.max(axis=0))


def _sizes(arrows: Arrows, usable: BoolArray) -> tuple[FloatArray, float]:
    """Size of c of every regime, and the lower quartile of the sizes that are clearly seen.

    The quartile is NaN, and all sizes one, if none is.
    """
    root = np.sqrt(arrows.signal[:, 0])
    clear = usable & (arrows.odds > CLEAR)
    if not clear.any():
        return np.ones(len(root)), np.nan
    low = _lower_quartile(root[clear])
    return np.where(arrows.odds > 0, np.fmax(root, UNSEEN * low), UNSEEN * low), low


def _lower_quartile(x: FloatArray) -> float:
    """As `np.quantile(x, 0.25)`, which takes ten times as long for a few numbers."""
    x = np.sort(x)
    whole, part = divmod(0.25 * (len(x) - 1), 1.0)
    below, above = x[int(whole)], x[min(int(whole) + 1, len(x) - 1)]
    return float(below + part * (above - below))


def _held_lines(arrows: Arrows, reading: IntArray, usable: BoolArray) -> Lines:
    """The chosen readings as lines and duals.

    Where c is seen and fixes the line at least as well as the mean does, both lines of the plane.
    Otherwise one line, with the eigenvalue `√(α/w_D)` that would fix it as well.
    """
    r, _, p = arrows.u.shape
    rows = np.arange(r)
    u, c, lam = arrows.u[rows, reading], arrows.c[rows, reading], arrows.lam[rows, reading]
    alpha, signal = arrows.precision[rows, reading], arrows.signal[rows, reading]
    n, m = np.zeros((r, 2, p)), np.zeros((r, 2, p))
    two = usable & (reading != ZERO) & (2.0 * arrows.w_cov * signal > alpha) & (arrows.odds > 0)
    one = usable & ~two
    full = c + 0.5 * lam[:, None] * u
    scale = np.sqrt(np.linalg.norm(full, axis=1))[two, None]
    n[two, 0], n[two, 1] = u[two] * scale, full[two] / scale
    m[two] = duals(n[two])
    size = np.sqrt(alpha / arrows.w_cov)[one, None]
    sign = np.zeros(r)
    sign[one] = np.where(lam[one] < 0, -1.0, 1.0)
    n[one, 0] = np.sqrt(size / 2) * u[one]
    m[one, 0] = sign[one, None] * u[one] / np.sqrt(2 * size)
    return Lines(n, m, two * 2 + one * 1, sign, np.zeros(r))
