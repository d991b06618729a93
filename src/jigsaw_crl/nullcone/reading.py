"""From a client's moments to log Bayes factors: pooling, readings, pairs, choice of readings.

`see` runs the client's inference in the order of the modules beside this one, up to the statistics
of each pair. `read` takes it from there for a given claim on which interventions are hard, and
keeps what the later steps (structure, basis, statements, findings) need.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.nulls import RARE_ALARM
from jigsaw_crl.client.white import White
from jigsaw_crl.evidence.hypotheses import HYPOTHESES, Hypotheses, Meaning, hard_hypotheses
from jigsaw_crl.evidence.mixture import Statistics, by_label, densities, in_all
from jigsaw_crl.evidence.priors import STRONG
from jigsaw_crl.nullcone.choice import Choice, choose_readings
from jigsaw_crl.nullcone.delta import statistics_of
from jigsaw_crl.nullcone.exact import Rounding, exact_readings
from jigsaw_crl.nullcone.judge import FITTED, WORST, Judged, pool, spread_edge
from jigsaw_crl.nullcone.readings import READINGS, ZERO, Readings, decided
from jigsaw_crl.nullcone.second_targets import Second, second_targets

# Probability of what an assembled order makes improbable: it is wrong about a cause of two labels,
# a cause without a label joins them, or an effect is too small to see. Blocks and bases are as good
# from .002 to .1 (random worlds of 10 to 40 latents and settings A to C, 10³ and 10⁴ rows).
RARE = 0.01
# Pairs share the errors of lines, so that what they say together about a line counts half. Counted
# in full, 18 of 3,096 "yes" of weak interventions were wrong, and not 8 of 3,017; elsewhere 14 and
# not 9 of 23,838, with the same E1 (seeds from 5,500,000).
SHARED = 0.5


@dataclass(frozen=True, eq=False)
class Sight:
    """What a client's moments show of its targets, whichever interventions are hard.

    Regimes are indexed by r (a label has several when it was applied at several strengths), labels
    by p.
    """

    judged: Judged  # of the regimes as they are, second targets included
    targets: Readings
    statistics: Statistics  # of all pairs of usable regimes of different labels
    second: Second
    spread: float  # how many times fewer rows count, because most regimes show more error
    rounding: Rounding | None  # of exact moments

    def lean(self) -> FloatArray:
        """How far each single target's line leans on another one, in standard errors, shape (r,).

        Beyond what a missed second direction explains: a c as large as noise hides, √null, tilts a
        line of eigenvalue λ by at most atan(√null/λ). The most that a line leans; −∞ if it leans on
        none. Where the other target has two lines, the one that leans less counts.
        """
        t, s = self.targets, self.statistics
        worst = np.full(len(t.single), -np.inf)
        if self.rounding is not None:
            return worst
        size = np.maximum(np.abs(t.lam[:, ZERO]), np.finfo(np.float64).tiny)
        tilt = np.where(t.single, np.sin(np.arctan(np.sqrt(t.null[:, 0]) / size)), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            over = np.abs(s.values[:, :, 0]) - (tilt[s.first] + tilt[s.second])[:, None]
            scores = np.where(s.exists, over / np.sqrt(s.covariance[:, :, 0, 0]), np.inf)
        scores = scores.reshape(-1, READINGS, READINGS)
        for own, other, score in ((s.first, s.second, scores), (s.second, s.first, scores.mT)):
            both = t.single[own] & t.single[other]
            least = np.where(both, score[:, ZERO, ZERO], score[:, ZERO, :ZERO].min(axis=1))
            known = t.single[own] & np.isfinite(least)
            np.maximum.at(worst, own[known], least[known])
        return worst


def see(given: White) -> Sight:
    """Run the inference of a client, whitened by its control, up to the statistics of each pair."""
    white, judged = pool(given)
    # How many times the error of independent rows most regimes show, if that is not chance.
    misfit, spread = float(np.median(judged.misfit)), 1.0
    # It is NaN, and no edge is known, in few dimensions.
    if misfit < WORST and misfit > spread_edge(white.dimension, len(judged.misfit)):
        spread = misfit / FITTED
        white, judged = pool(given.counting(spread))
    second = Second.none(white, judged.several)
    if white.exact:
        targets, rounding = exact_readings(white, judged)
    else:
        if judged.several.any():
            second, white = second_targets(white, judged)
        targets, rounding = decided(white, ~second.refused), None
    # Pairs of usable regimes of different labels, neither the second target of the other.
    owner, usable = white.owner, targets.usable
    i, j = np.triu_indices(len(owner), 1)
    other = np.where(second.found, owner[second.regime], -1)
    keep = usable[i] & usable[j] & (owner[i] != owner[j])
    keep &= (other[i] != owner[j]) & (other[j] != owner[i])
    statistics = statistics_of(targets, i[keep], j[keep], rounding)
    if second.found.any():
        statistics = second.widened(statistics, targets)
    return Sight(judged, targets, statistics, second, spread, rounding)


@dataclass(frozen=True, eq=False)
class Reading:
    """What a client's moments say about its targets, before any decision."""

    sight: Sight
    exact: bool
    owner: IntArray  # label of each regime, shape (r,)
    # The readings under the claim on which interventions are hard, and those that fit all pairs
    # best.
    targets: Readings
    choice: Choice
    hypotheses: Hypotheses
    # Log Bayes factor of each hypothesis against the first, "unrelated", and the same with what
    # hard interventions add, shape (n_hypotheses, p, p); NaN where unseen.
    factors: FloatArray
    claimed: FloatArray
    hard: BoolArray  # labels whose intervention is hard, shape (p,)
    # Of each pair of regimes of such labels in the chosen readings, the smaller of the two effects
    # in standard errors, shape (k,), 0 for other pairs; and the edge of chance.
    both_ways: FloatArray
    edge: float
    # ⟨q_a, c_d⟩ over the length of c_d, and its standard error, shape (2, p, p); NaN where unseen.
    sizes: FloatArray
    # Without what they say about a c that was not moved, and the density of every pair of regimes
    # in every reading as if all interventions were soft, shape (k, s · s, n_hypotheses).
    statistics: Statistics
    density: FloatArray

    def given(self, ancestor: BoolArray) -> Reading:
        """The reading with lines and factors chosen again, for a known order of the labels.

        Where two lines of a target fit about as well, the order tells which one is its own. Any
        pair may be in one district; all other relations of it together keep the weight `RARE`.
        """
        s, table, density = self.statistics, self.hypotheses, self.density
        i, j = self.owner[s.first], self.owner[s.second]
        up, down = ancestor[i, j], ancestor[j, i]
        stated = np.log(RARE) + in_all(density, table)
        relations: dict[Meaning, BoolArray] = {
            "ancestor": up,
            "descendant": down,
            "unrelated": ~up & ~down,
            "district": np.ones_like(up),
        }
        for meaning, chosen in relations.items():
            for row in table.where(meaning):
                stated[chosen] = np.logaddexp(stated[chosen], density[chosen, :, row])
        choice, weight = _chosen(self.targets, s, stated)
        factors = by_label(s, density, weight, table, self.owner, len(self.hard))
        return replace(self, choice=choice, factors=factors)


def read(
    sight: Sight, labels: int, *, hypotheses: Hypotheses = HYPOTHESES, hard: BoolArray | None = None
) -> Reading:
    """The evidence of each pair of p labels, some of which have `hard` interventions."""
    targets, white, exact = sight.targets, sight.targets.white, sight.rounding is not None
    owner, dimension = white.owner, white.dimension
    hard = np.zeros(labels, dtype=bool) if hard is None else hard.copy()
    # What a second target hides of c is a part of the effects on it.
    hard[owner[sight.second.found]] = False
    # If a hard intervention does not change the covariance, c is zero. Of any other, nothing is
    # known: it is free, and the product with it is zero with variance 1, whatever the relation is.
    alone = targets.mean_alone & ~hard[owner]
    targets = replace(targets, mean_alone=alone, single=targets.single & ~alone)
    statistics = sight.statistics.without_c(alone) if alone.any() else sight.statistics
    i, j = statistics.first, statistics.second
    units = np.stack([np.ones(len(i)), targets.size[j], targets.size[i]], axis=-1)
    # The inner product of two unrelated directions has this standard deviation.
    far = dimension**-0.5 * units
    density = claimed = densities(statistics, hypotheses, units, far)
    both_ways, edge = np.zeros(density.shape[:2]), np.inf
    if hard.any():
        claimed = density.copy()
        # A c that is zero by its exact moments is known; one that seems to be zero is not.
        known = hard[owner] & (~targets.single | exact)
        effects, units = statistics.as_effects(known[i], known[j]), units.copy()
        # An effect of one standard deviation, in units of the statistic that carries it (T8).
        length = np.sqrt(1.0 + targets.signal[:, 0])
        units[known[j], 1] = (length[j] / length[i])[known[j]]
        units[known[i], 2] = (length[i] / length[j])[known[i]]
        for of_i, of_j in ((True, True), (True, False), (False, True)):
            pairs = (known[i] == of_i) & (known[j] == of_j)
            table = hard_hypotheses(hypotheses, of_i, of_j)
            given = units[pairs], far[pairs], statistics.of(pairs)
            claimed[pairs] = densities(effects.of(pairs), table, *given)
        both = known[i] & known[j]
        error = np.sqrt(np.diagonal(effects.covariance[both], axis1=2, axis2=3))
        z = np.abs(effects.values[both])
        z = np.divide(z, error, out=np.zeros_like(error), where=error > 0)
        told = effects.exists[both] & effects.free[both].all(axis=2)
        both_ways[both] = np.where(told, np.minimum(z[:, :, 1], z[:, :, 2]), 0.0)
        edge = -float(ndtri(RARE_ALARM / (2 * max(int(both.sum()), 1))))
    # Where every latent shows its line, a shared cause is one of them, and not unseen.
    if dimension > len(np.unique(owner[targets.usable])) and not exact:
        shared = _shared_causes(targets, i, j)[:, :, None]
        density, claimed = density + shared, claimed + shared
    # A swapped line and its c can pass for effects that no intervention had: in samples the claim
    # says of the lines only that no effects run both ways, beyond what chance explains. In exact
    # moments the claim breaks ties inside districts.
    total = in_all(claimed if exact else density, hypotheses)
    total[both_ways > edge] -= 0.5 * (both_ways[both_ways > edge] ** 2 - edge**2)
    choice, weight = _chosen(targets, statistics, total)
    soft = full = by_label(statistics, density, weight, hypotheses, owner, labels)
    if hard.any():
        full = by_label(statistics, claimed, weight, hypotheses, owner, labels)
    shares = _sizes(targets, statistics, choice.reading, labels)
    lines = sight, exact, owner, targets, choice
    chosen = READINGS * choice.reading[i] + choice.reading[j]
    claim = hard, both_ways[np.arange(len(i)), chosen], edge
    return Reading(*lines, hypotheses, soft, full, *claim, shares, statistics, density)


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
        out[:, owner[a][order], owner[d][order]] = value[order], error[order]
    return out


def _chosen(targets: Readings, s: Statistics, total: FloatArray) -> tuple[Choice, FloatArray]:
    """The choice of readings by the log evidence of each pair, and log weights of all readings.

    Each reading of a pair has its weight from all other pairs, shape (k, s · s).
    """
    white, (r, k, p) = targets.white, targets.u.shape
    F = np.zeros((r, r, k, k))
    # A reading that does not exist is excluded by its own likelihood.
    pairs = np.maximum(total, -1e5).reshape(-1, k, k)
    F[s.first, s.second] = pairs
    F[s.second, s.first] = pairs.mT
    # Regimes of one label have one q: their chosen lines must be parallel. A direction in p
    # dimensions is known to about √(p/n).
    alike = white.owner[:, None] == white.owner[None, :]
    np.fill_diagonal(alike, False)
    for a, b in np.argwhere(alike):
        cosine = targets.u[a] @ targets.u[b].T
        F[a, b] = -0.5 * min(white.n[a], white.n[b]) / p * (1.0 - cosine**2)
    choice = choose_readings(F, targets.log_likelihood)
    # The pair's own evidence is left out, so that it can be combined with these weights to average
    # a hypothesis over the readings.
    i, j = s.first, s.second
    own_i = choice.score[i] - F[i, j, :, choice.reading[j]]
    own_j = choice.score[j] - F[i, j, choice.reading[i], :]
    return choice, SHARED * (own_i[:, :, None] + own_j[:, None, :]).reshape(len(i), k * k)
