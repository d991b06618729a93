"""From a client's moments to log Bayes factors: pooling, targets, pairs, choice of readings.

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
from jigsaw_crl.evidence.hypotheses import HYPOTHESES, Hypotheses, hard_hypotheses, quantities
from jigsaw_crl.evidence.mixture import Densities, by_label, densities
from jigsaw_crl.nullcone.choice import choose_readings
from jigsaw_crl.nullcone.effects import Arrow
from jigsaw_crl.nullcone.lines import Lines
from jigsaw_crl.nullcone.pooling import pool
from jigsaw_crl.nullcone.second_targets import second_targets
from jigsaw_crl.nullcone.spread import excess_spread
from jigsaw_crl.nullcone.targets import Targets, arrow_targets, exact_targets

__all__ = ["Reading", "Sight", "read", "see"]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a client's moments say about its targets, before any decision.

    Regimes are indexed by r (a label has several when it was applied at several strengths), labels
    by p.

    Parameters
    ----------
    exact : bool
    W : array, shape (d, n_features)
        Takes features to coordinates in which the pooled control is white.
    n : array, shape (r,)
    n_eff : float
    owner : array of int, shape (r,)
        Label of each regime.
    lines : Lines
        Of the chosen readings, for the basis.
    choice : array of int, shape (r,)
        Which line of each regime is its q.
    strength : array, shape (r,)
        How clearly each regime differs from the control: 1 is the edge of chance.
    third : array, shape (r,)
        See `Spikes`; second targets included.
    several : array of bool, shape (r,)
        Regimes that are left out: more than one target moved.
    second : array of int, shape (r,)
        A regime of the label on which the regime acts as well; −1 where there is none.
    usable : array of bool, shape (r,)
        Regimes that show one target.
    single : array of bool, shape (r,)
        Usable regimes that moved a single direction where a second would have been seen.
    mean_alone : array of bool, shape (r,)
        Usable regimes that moved the mean and nothing else.
    change : array, shape (r,)
        Change of the covariance along the shift of the mean; up to 1 it is chance.
    identified : bool
        Some intervention clearly moved a second direction.
    means_fit : bool
        The mean shifts lie on lines that the covariances allow.
    misfit : float
        χ² over its degrees of freedom of the shifts off those lines.
    lean : array, shape (r,)
        See `Targets`.
    spread : float
        See `excess_spread`.
    margin : array, shape (r,)
        Log evidence for the chosen reading.
    z : array, shape (r, r)
        ⟨q_i, q_j⟩ in standard errors, NaN where there is none.
    hypotheses : Hypotheses
    factors : array, shape (n_hypotheses, p, p)
        Log Bayes factor of each hypothesis against the first, "unrelated"; NaN where unseen.
    claimed : array, shape (n_hypotheses, p, p)
        The same with what hard interventions add; `factors` itself if there are none.
    hard : array of bool, shape (p,)
        Labels whose intervention is hard.
    arrow : Arrow
        The chosen readings in natural lengths.
    sizes : array, shape (2, p, p)
        ⟨q_a, c_d⟩ over the length of c_d, and its standard error; NaN where unseen.
    """

    exact: bool
    W: FloatArray
    n: FloatArray
    n_eff: float
    owner: IntArray
    lines: Lines
    choice: IntArray
    strength: FloatArray
    third: FloatArray
    several: BoolArray
    second: IntArray
    usable: BoolArray
    single: BoolArray
    mean_alone: BoolArray
    change: FloatArray
    identified: bool
    means_fit: bool
    misfit: float
    lean: FloatArray
    spread: float
    margin: FloatArray
    z: FloatArray
    hypotheses: Hypotheses
    factors: FloatArray
    claimed: FloatArray
    hard: BoolArray
    arrow: Arrow
    sizes: FloatArray


@dataclass(frozen=True, eq=False)
class Sight:
    """What a client's moments show of its targets, whichever interventions are hard.

    Parameters
    ----------
    white : White
        Without the matrices M.
    targets : Targets
    third : array, shape (r,)
        See `Spikes`; second targets included.
    several : array of bool, shape (r,)
        Regimes that are left out: more than one target moved.
    second : array of int, shape (r,)
        A regime of the label on which the regime acts as well; −1 where there is none.
    spread : float
        See `excess_spread`.
    """

    white: White
    targets: Targets
    third: FloatArray
    several: BoolArray
    second: IntArray
    spread: float


def see(client: Client, white: White | None = None) -> Sight:
    """Run the client's inference up to the statistics of each pair.

    `white` is the client, whitened by its control; computed if None.
    """
    given = whiten(client) if white is None else white
    white, spikes = pool(given)
    spread = excess_spread(white)
    if spread > 1:
        white, spikes = pool(given.counting(spread))
    third = spikes.third
    second, white, spikes = second_targets(white, spikes)
    exact = white.exact
    targets = exact_targets(white, spikes) if exact else arrow_targets(white, spikes, second)
    white = replace(white, M=white.M[:, :0, :0])
    if second is None:
        return Sight(white, targets, third, spikes.several, np.full(len(third), -1), spread)
    return Sight(white, targets, third, second.refused, second.regime, spread)


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
    white = sight.white
    hard = np.zeros(labels, dtype=bool) if hard is None else hard.copy()
    # What a second target hides of c is a part of the effects on it.
    hard[white.owner[sight.second >= 0]] = False
    targets = sight.targets.claimed(hard[white.owner])
    statistics = targets.statistics
    i, j = statistics.first, statistics.second
    # A c that is zero by its exact moments is known; one that seems to be zero is not.
    known = hard[white.owner] & (~targets.single | white.exact)
    ratio = targets.length[j] / targets.length[i]
    sizes = quantities(targets.size[i], targets.size[j], white.dimension, ratio)
    density = densities(statistics, hypotheses, sizes)
    claimed = _with_effects(targets, hypotheses, sizes, density, known) if hard.any() else density
    # A swapped line and its c can pass for effects that no intervention had: in samples the lines
    # are chosen without the claim. In exact moments the claim breaks ties inside districts.
    agreed = claimed if white.exact else density
    F = _agreement(targets, agreed.total, white)
    choice = choose_readings(F, targets.log_likelihood)
    weight = choice.log_weight(F, i, j)

    def factors(rows: FloatArray) -> FloatArray:
        return by_label(statistics, rows, weight, hypotheses, white.owner, labels)

    soft = factors(density.rows)
    lines, q = targets.basis_lines(choice.reading)
    return Reading(
        exact=white.exact,
        W=white.W,
        n=white.n,
        n_eff=white.n_eff,
        owner=white.owner,
        lines=lines,
        choice=q,
        strength=targets.strength,
        third=sight.third,
        several=sight.several,
        second=sight.second,
        usable=targets.usable,
        single=targets.single,
        mean_alone=targets.mean_alone,
        change=targets.change,
        identified=targets.identified,
        means_fit=targets.means_fit,
        misfit=targets.misfit,
        lean=targets.lean,
        spread=sight.spread,
        margin=choice.margin,
        z=_standard_scores(targets, choice.reading),
        hypotheses=hypotheses,
        factors=soft,
        claimed=factors(claimed.rows) if hard.any() else soft,
        hard=hard,
        arrow=targets.chosen(choice.reading),
        sizes=_sizes(targets, choice.reading, white.owner, labels),
    )


def _with_effects(
    targets: Targets,
    hypotheses: Hypotheses,
    sizes: dict[str, FloatArray],
    soft: Densities,
    hard: BoolArray,
) -> Densities:
    """Densities in which the pairs of regimes with hard interventions speak by their effects."""
    s = targets.statistics
    hard_i, hard_j = hard[s.first], hard[s.second]
    stretch = np.ones((len(s.first), 3))
    stretch[:, 1], stretch[:, 2] = targets.natural[s.second], targets.natural[s.first]
    natural = replace(
        s,
        values=s.values * stretch[:, None, :],
        covariance=s.covariance * (stretch[:, None, :, None] * stretch[:, None, None, :]),
    )
    effects = natural.as_effects(hard_i, hard_j)
    rows, total = soft.rows.copy(), soft.total.copy()
    for of_i, of_j in ((True, True), (True, False), (False, True)):
        chosen = (hard_i == of_i) & (hard_j == of_j)
        if chosen.any():
            table = hard_hypotheses(hypotheses, of_i, of_j)
            own = {name: value[chosen] for name, value in sizes.items()}
            found = densities(effects.of(chosen), table, own)
            rows[chosen], total[chosen] = found.rows, found.total
    return Densities(rows, total)


def _sizes(targets: Targets, reading: IntArray, owner: IntArray, p: int) -> FloatArray:
    """⟨q_a, c_d⟩ over the length of c_d in the chosen readings, and its error, shape (2, p, p)."""
    s = targets.statistics
    pick = targets.lines.shape[1] * reading[s.first] + reading[s.second]
    rows = np.arange(len(s.first))
    out = np.full((2, p, p), np.nan)
    for a, d, at in ((s.first, s.second, 1), (s.second, s.first, 2)):
        size = np.where(targets.size[d] > 0, targets.size[d], np.nan)
        seen = s.free[rows, pick, 2 - at]
        value = np.where(seen, s.values[rows, pick, at] / size, 0.0)
        error = np.sqrt(s.covariance[rows, pick, at, at]) / size
        error = np.where(seen, error, targets.unseen[d] / size)
        if targets.planes is not None:
            error = np.zeros_like(error)  # exact moments
        # Of several strengths, the one that is known best.
        order = np.argsort(-error, kind="stable") if len(owner) > p else rows
        cells = owner[a][order], owner[d][order]
        out[0][cells], out[1][cells] = value[order], error[order]
    return out


def _agreement(targets: Targets, total: FloatArray, white: White) -> FloatArray:
    """`F[i, j, s, t]` for the choice of readings, shape (r, r, s, s)."""
    r, s, p = targets.lines.shape
    F = np.zeros((r, r, s, s))
    # A reading that does not exist is excluded by its own likelihood.
    pairs = np.maximum(total, -1e5).reshape(-1, s, s)
    i, j = targets.statistics.first, targets.statistics.second
    F[i, j] = pairs
    F[j, i] = np.swapaxes(pairs, 1, 2)
    # Regimes of one label have one q: their chosen lines must be parallel. A direction in p
    # dimensions is known to about √(p/n).
    alike = white.owner[:, None] == white.owner[None, :]
    np.fill_diagonal(alike, False)
    for a, b in np.argwhere(alike):
        cosine = targets.lines[a] @ targets.lines[b].T
        F[a, b] = -0.5 * min(white.n[a], white.n[b]) / p * (1.0 - cosine**2)
    return F


def _standard_scores(targets: Targets, reading: IntArray) -> FloatArray:
    """⟨q_i, q_j⟩ of the chosen readings in standard errors, shape (r, r)."""
    s = targets.statistics
    rows, pick = np.arange(len(s.first)), targets.lines.shape[1] * reading[s.first]
    pick = pick + reading[s.second]
    z = np.full((len(reading), len(reading)), np.nan)
    score = s.values[rows, pick, 0] / np.sqrt(s.covariance[rows, pick, 0, 0])
    z[s.first, s.second] = z[s.second, s.first] = score
    return z
