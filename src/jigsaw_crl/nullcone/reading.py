"""From a client's moments to log Bayes factors: pooling, readings, pairs, choice of readings.

`see` runs the client's inference in the order of the modules beside this one, up to the statistics
of each pair. `read` takes it from there for a given claim on which interventions are hard, and
keeps what the later steps (structure, basis, statements, findings) need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.white import White, whiten
from jigsaw_crl.evidence.hypotheses import (
    HYPOTHESES,
    Hypotheses,
    Meaning,
    hard_hypotheses,
    quantities,
)
from jigsaw_crl.evidence.mixture import Densities, Statistics, by_label, densities
from jigsaw_crl.evidence.priors import STRONG
from jigsaw_crl.nullcone.choice import Choice, choose_readings
from jigsaw_crl.nullcone.exact import Rounding, exact_readings, exact_statistics
from jigsaw_crl.nullcone.judge import Judged, excess_spread
from jigsaw_crl.nullcone.pairs import statistics_of
from jigsaw_crl.nullcone.pooling import pool
from jigsaw_crl.nullcone.readings import READINGS, ZERO, Readings, decided, estimate
from jigsaw_crl.nullcone.second_targets import Second, second_targets

__all__ = ["RARE", "Reading", "Sight", "read", "see"]

# Probability of what an assembled order makes improbable: it is wrong about a cause of two labels,
# a cause without a label joins them, or an effect is too small to see. Blocks and bases are as good
# from .002 to .1 (random worlds of 10 to 40 latents and settings A to C, 10³ and 10⁴ rows).
RARE = 0.01


@dataclass(frozen=True, eq=False)
class Sight:
    """What a client's moments show of its targets, whichever interventions are hard.

    Regimes are indexed by r (a label has several when it was applied at several strengths), labels
    by p.

    Parameters
    ----------
    judged : Judged
        Of the regimes as they are, second targets included.
    targets : Readings
    statistics : Statistics
        Of all pairs of usable regimes of different labels.
    second : Second
    spread : float
        See `excess_spread`.
    rounding : Rounding or None
        Of exact moments.
    """

    judged: Judged
    targets: Readings
    statistics: Statistics
    second: Second
    spread: float
    rounding: Rounding | None

    @property
    def white(self) -> White:
        """Without the matrices M."""
        return self.targets.white

    @property
    def exact(self) -> bool:
        return self.white.exact

    @property
    def owner(self) -> IntArray:
        """Label of each regime, shape (r,)."""
        return self.white.owner

    def lean(self) -> FloatArray:
        """How far each single target's line leans on another one, in standard errors, shape (r,).

        Beyond what a missed second direction explains: a c as large as noise hides, √null, tilts a
        line of eigenvalue λ by at most atan(√null/λ). The most that a line leans; −∞ if it leans on
        none. Where the other target has two lines, the one that leans less counts.
        """
        t, s = self.targets, self.statistics
        single = np.logical_and(t.single, not self.exact)
        size = np.maximum(np.abs(t.lam[:, ZERO]), np.finfo(np.float64).tiny)
        tilt = np.where(single, np.sin(np.arctan(np.sqrt(t.null[:, 0]) / size)), 0.0)
        worst = np.full(len(single), -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.abs(s.values[:, :, 0]) - (tilt[s.first] + tilt[s.second])[:, None]
            scores = np.where(s.exists, over / np.sqrt(s.covariance[:, :, 0, 0]), np.inf)
        scores = scores.reshape(-1, READINGS, READINGS)
        turned = np.swapaxes(scores, 1, 2)
        for own, other, score in ((s.first, s.second, scores), (s.second, s.first, turned)):
            both = single[own] & single[other]
            least = np.where(both, score[:, ZERO, ZERO], score[:, ZERO, :ZERO].min(axis=1))
            known = single[own] & np.isfinite(least)
            np.maximum.at(worst, own[known], least[known])
        return worst


def see(client: Client, white: White | None = None) -> Sight:
    """Run the client's inference up to the statistics of each pair.

    `white` is the client, whitened by its control; computed if None.
    """
    given = whiten(client) if white is None else white
    white, judged = pool(given)
    spread = excess_spread(judged, white.dimension)
    if spread > 1:
        white, judged = pool(given.counting(spread))
    if white.exact:
        targets, rounding = exact_readings(white, judged)
        second = Second.none(white, judged.several)
        statistics = exact_statistics(targets, rounding, *_pairs(targets, second))
        return Sight(judged, targets, statistics, second, spread, rounding)
    second, white = second_targets(white, judged)
    targets = decided(estimate(white), white, ~second.refused)
    statistics = statistics_of(targets, *_pairs(targets, second))
    statistics = second.widened(statistics, targets)
    return Sight(judged, targets, statistics, second, spread, None)


def _pairs(targets: Readings, second: Second) -> tuple[IntArray, IntArray]:
    """Pairs of usable regimes of different labels, neither the second target of the other."""
    owner, usable = targets.white.owner, targets.usable
    i, j = np.triu_indices(len(owner), 1)
    other = np.where(second.found, owner[second.regime], -1)
    keep = usable[i] & usable[j] & (owner[i] != owner[j])
    keep &= (other[i] != owner[j]) & (other[j] != owner[i])
    return i[keep], j[keep]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a client's moments say about its targets, before any decision.

    Parameters
    ----------
    sight : Sight
    targets : Readings
        Under the claim on which interventions are hard.
    choice : Choice
        The readings that fit all pairs best.
    hypotheses : Hypotheses
    factors : array, shape (n_hypotheses, p, p)
        Log Bayes factor of each hypothesis against the first, "unrelated"; NaN where unseen.
    claimed : array, shape (n_hypotheses, p, p)
        The same with what hard interventions add; `factors` itself if there are none.
    hard : array of bool, shape (p,)
        Labels whose intervention is hard.
    sizes : array, shape (2, p, p)
        ⟨q_a, c_d⟩ over the length of c_d, and its standard error; NaN where unseen.
    density : Densities
        Of every pair of regimes in every reading, as if every intervention were soft.
    """

    sight: Sight
    targets: Readings
    choice: Choice
    hypotheses: Hypotheses
    factors: FloatArray
    claimed: FloatArray
    hard: BoolArray
    sizes: FloatArray
    density: Densities

    @property
    def exact(self) -> bool:
        return self.sight.exact

    @property
    def owner(self) -> IntArray:
        """Label of each regime, shape (r,)."""
        return self.sight.owner

    def given(self, ancestor: BoolArray, district: BoolArray | None = None) -> Reading:
        """The reading with lines and factors chosen again, for known relations of the labels.

        Where two lines of a target fit about as well, the relations tell which one is its own. All
        other relations of a pair together keep the weight `RARE`.

        Parameters
        ----------
        ancestor : array of bool, shape (p, p)
        district : array of bool, shape (p, p), optional
            Pairs inside a district; by default any pair may be.
        """
        s = _without_unmoved(self.sight.statistics, self.targets.mean_alone)
        table, density = self.hypotheses, self.density
        i, j = self.owner[s.first], self.owner[s.second]
        up, down = ancestor[i, j], ancestor[j, i]
        inside = np.ones_like(up) if district is None else district[i, j]
        stated = np.log(RARE) + density.total
        relations: dict[Meaning, BoolArray] = {
            "ancestor": up,
            "descendant": down,
            "unrelated": ~up & ~down,
            "district": inside,
        }
        for meaning, chosen in relations.items():
            for row in table.where(meaning):
                stated[chosen] = np.logaddexp(stated[chosen], density.rows[chosen, :, row])
        F = _agreement(self.targets, s, stated)
        choice = choose_readings(F, self.targets.log_likelihood)
        weight = choice.log_weight(F, s.first, s.second)
        factors = by_label(s, density.rows, weight, table, self.owner, len(self.hard))
        return replace(self, choice=choice, factors=factors)


def read(
    sight: Sight, labels: int, *, hypotheses: Hypotheses = HYPOTHESES, hard: BoolArray | None = None
) -> Reading:
    """The evidence of each pair.

    Parameters
    ----------
    sight : Sight
    labels : int
        Number of labels, p.
    hypotheses : Hypotheses
        What may be true of a pair.
    hard : array of bool, shape (p,), optional
        Labels whose intervention is hard; none by default.
    """
    targets, owner = sight.targets, sight.owner
    hard = np.zeros(labels, dtype=bool) if hard is None else hard.copy()
    # What a second target hides of c is a part of the effects on it.
    hard[owner[sight.second.found]] = False
    # If a hard intervention does not change the covariance, c is zero. Of any other, nothing is
    # known.
    alone = targets.mean_alone & ~hard[owner]
    targets = replace(targets, mean_alone=alone, single=targets.single & ~alone)
    statistics = _without_unmoved(sight.statistics, alone)
    i, j = statistics.first, statistics.second
    # A c that is zero by its exact moments is known; one that seems to be zero is not.
    known = hard[owner] & (~targets.single | sight.exact)
    length = np.sqrt(1.0 + targets.signal[:, 0])
    dimension = sight.white.dimension
    sizes = quantities(targets.size[i], targets.size[j], dimension, length[j] / length[i])
    density = densities(statistics, hypotheses, sizes)
    claimed = density
    if hard.any():
        claimed = _with_effects(statistics, hypotheses, sizes, density, known)
    # Where every latent shows its line, a shared cause is one of them, and not unseen.
    if dimension > len(np.unique(owner[targets.usable])) and not sight.exact:
        shared = _shared_causes(targets, i, j)
        density, claimed = (
            Densities(d.rows + shared[:, :, None], d.total + shared) for d in (density, claimed)
        )
    # A swapped line and its c can pass for effects that no intervention had: in samples the lines
    # are chosen without the claim. In exact moments the claim breaks ties inside districts.
    F = _agreement(targets, statistics, (claimed if sight.exact else density).total)
    choice = choose_readings(F, targets.log_likelihood)
    weight = choice.log_weight(F, i, j)
    soft = full = by_label(statistics, density.rows, weight, hypotheses, owner, labels)
    if hard.any():
        full = by_label(statistics, claimed.rows, weight, hypotheses, owner, labels)
    shares = _sizes(targets, statistics, choice.reading, labels)
    return Reading(sight, targets, choice, hypotheses, soft, full, hard, shares, density)


def _shared_causes(targets: Readings, i: IntArray, j: IntArray) -> FloatArray:
    """Log evidence of each reading of a pair from the angle of its c's, shape (k, s · s).

    Causes that two targets share are in both c's, also those that no regime shows. Were the angle
    left out, the line of one target's c would be taken for its q wherever the cause itself is not
    seen: the target would pass for the cause of all other effects of it.
    """
    norm = np.linalg.norm(targets.c, axis=2, keepdims=True)
    unit = np.divide(targets.c, norm, out=np.zeros_like(targets.c), where=norm > 0)
    cosine = np.einsum("ksp,ktp->kst", unit[i], unit[j])
    chance = 1.0 / targets.white.dimension
    ratio = chance / (chance + STRONG**2)
    leaning = 0.5 * (np.log(ratio) + cosine**2 / chance * (1.0 - ratio))
    there = (norm[i] > 0) & np.swapaxes(norm[j] > 0, 1, 2)
    return np.where(there, np.logaddexp(0.0, leaning) - np.log(2.0), 0.0).reshape(-1, READINGS**2)


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


def _with_effects(
    statistics: Statistics,
    hypotheses: Hypotheses,
    sizes: dict[str, FloatArray],
    soft: Densities,
    hard: BoolArray,
) -> Densities:
    """Densities in which the pairs of regimes with hard interventions speak by their effects."""
    i, j = hard[statistics.first], hard[statistics.second]
    effects = statistics.as_effects(i, j)
    rows, total = soft.rows.copy(), soft.total.copy()
    for of_i, of_j in ((True, True), (True, False), (False, True)):
        chosen = (i == of_i) & (j == of_j)
        if chosen.any():
            table = hard_hypotheses(hypotheses, of_i, of_j)
            own = {name: value[chosen] for name, value in sizes.items()}
            found = densities(effects.of(chosen), table, own)
            rows[chosen], total[chosen] = found.rows, found.total
    return Densities(rows, total)


def _sizes(targets: Readings, s: Statistics, reading: IntArray, p: int) -> FloatArray:
    """⟨q_a, c_d⟩ over the length of c_d in the chosen readings, and its error, shape (2, p, p)."""
    owner, rows = targets.white.owner, np.arange(len(s.first))
    pick = READINGS * reading[s.first] + reading[s.second]
    # The error of a coordinate of a c that does not show.
    unseen = np.sqrt(targets.null[:, 0] / max(targets.white.dimension - 1, 1))
    out = np.full((2, p, p), np.nan)
    for a, d, at in ((s.first, s.second, 1), (s.second, s.first, 2)):
        size = np.where(targets.size[d] > 0, targets.size[d], np.nan)
        seen = s.free[rows, pick, 2 - at]
        value = np.where(seen, s.values[rows, pick, at] / size, 0.0)
        error = np.where(seen, np.sqrt(s.covariance[rows, pick, at, at]), unseen[d]) / size
        if targets.white.exact:
            error = np.zeros_like(error)
        # Of several strengths, the one that is known best.
        order = np.argsort(-error, kind="stable") if len(owner) > p else rows
        cells = owner[a][order], owner[d][order]
        out[0][cells], out[1][cells] = value[order], error[order]
    return out


def _agreement(targets: Readings, statistics: Statistics, total: FloatArray) -> FloatArray:
    """`F[i, j, s, t]` for the choice of readings, shape (r, r, s, s)."""
    white, (r, s, p) = targets.white, targets.u.shape
    F = np.zeros((r, r, s, s))
    # A reading that does not exist is excluded by its own likelihood.
    pairs = np.maximum(total, -1e5).reshape(-1, s, s)
    i, j = statistics.first, statistics.second
    F[i, j] = pairs
    F[j, i] = np.swapaxes(pairs, 1, 2)
    # Regimes of one label have one q: their chosen lines must be parallel. A direction in p
    # dimensions is known to about √(p/n).
    alike = white.owner[:, None] == white.owner[None, :]
    np.fill_diagonal(alike, False)
    for a, b in np.argwhere(alike):
        cosine = targets.u[a] @ targets.u[b].T
        F[a, b] = -0.5 * min(white.n[a], white.n[b]) / p * (1.0 - cosine**2)
    return F
