"""From a client's moments to log Bayes factors: pooling, lines, pairs, choice of lines.

`read` runs the client's inference in the order of the modules beside this one and keeps what the
later steps (structure, basis, statements, findings) need. The moments are not kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.client.client import Client
from jigsaw_crl.evidence.hypotheses import HYPOTHESES, Hypotheses, quantities
from jigsaw_crl.evidence.mixture import Statistics, by_label, densities
from jigsaw_crl.nullcone.lines import Lines, null_lines
from jigsaw_crl.nullcone.pairs import PairStatistics, by_reading, pair_statistics
from jigsaw_crl.nullcone.signs import choose_lines
from jigsaw_crl.nullcone.spikes import Spikes
from jigsaw_crl.nullcone.whitening import Reduced, Start, Whitened, pool, reduce

__all__ = ["Reading", "read"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a client's moments say about its targets, before any decision.

    Regimes are indexed by r (a label has several when it was applied at several strengths), labels
    by p.

    Parameters
    ----------
    exact : bool
    basis : array, shape (n_features, d)
        Orthonormal basis of the reduced space.
    L : array, shape (d, d)
        Factor of the pooled control covariance.
    n : array, shape (r,)
    n_eff : float
    owner : array of int, shape (r,)
        Label of each regime.
    lines : Lines
    excess, second, third : array, shape (r,)
        See `Spikes`.
    several : array of bool, shape (r,)
        Refused regimes: more than one target moved.
    choice : array of int, shape (r,)
        Which line of each regime is its q.
    margin : array, shape (r,)
        Log evidence for that choice.
    z : array, shape (r, r)
        ⟨q_i, q_j⟩ in standard errors, nan where there is none.
    hypotheses : Hypotheses
    factors : array, shape (n_hypotheses, p, p)
        Log Bayes factor of each hypothesis against the first, "unrelated"; NaN where unseen.
    """

    exact: bool
    basis: FloatArray
    L: FloatArray
    n: FloatArray
    n_eff: float
    owner: IntArray
    lines: Lines
    excess: FloatArray
    second: FloatArray
    third: FloatArray
    several: BoolArray
    choice: IntArray
    margin: FloatArray
    z: FloatArray
    hypotheses: Hypotheses
    factors: FloatArray


def read(
    client: Client, *, hypotheses: Hypotheses = HYPOTHESES, start: Start | None = None
) -> Reading:
    """Run the client's inference up to the evidence of each pair.

    Parameters
    ----------
    client : Client
    hypotheses : Hypotheses
        What may be true of a pair.
    start : Start, optional
        What the checks of the client already computed.
    """
    reduced = reduce(client, None if start is None else start.space)
    whitened = pool(reduced, None if start is None else start.extremes)
    spikes = whitened.spikes
    lines = null_lines(spikes)
    statistics = _statistics(reduced, whitened, spikes, lines)
    readings, rest = by_reading(statistics, lines)
    density = densities(readings, hypotheses, _quantities(readings, lines))
    F = _agreement(statistics, density.total + rest, lines, reduced, whitened)
    choice = choose_lines(F, lines.rank == 2)
    weight = choice.log_weight(F, statistics.first, statistics.second) + rest
    factors = by_label(
        readings, density.rows, weight, hypotheses, reduced.owner, len(client.labels)
    )
    return Reading(
        exact=reduced.exact,
        basis=reduced.basis,
        L=whitened.L,
        n=whitened.n,
        n_eff=whitened.n_eff,
        owner=reduced.owner,
        lines=lines,
        excess=spikes.excess,
        second=spikes.second,
        third=spikes.third,
        several=spikes.several,
        choice=choice.line,
        margin=choice.margin,
        z=_standard_scores(statistics, choice.line, len(lines.rank)),
        hypotheses=hypotheses,
        factors=factors,
    )


def _statistics(
    reduced: Reduced, whitened: Whitened, spikes: Spikes, lines: Lines
) -> PairStatistics:
    """Pairs of regimes that show one target each, of different labels."""
    first, second = np.triu_indices(len(lines.rank), 1)
    usable = (lines.rank > 0) & ~spikes.several
    keep = usable[first] & usable[second] & (reduced.owner[first] != reduced.owner[second])
    return pair_statistics(
        lines, whitened.n, whitened.n_eff, first[keep], second[keep], whitened.noise
    )


def _agreement(
    statistics: PairStatistics,
    log_density: FloatArray,
    lines: Lines,
    reduced: Reduced,
    whitened: Whitened,
) -> FloatArray:
    """`F[i, j, s, t]` for the choice of lines, shape (r, r, 2, 2)."""
    r = len(lines.rank)
    F = np.zeros((r, r, 2, 2))
    mixture = log_density.reshape(-1, 2, 2)
    F[statistics.first, statistics.second] = mixture
    F[statistics.second, statistics.first] = np.swapaxes(mixture, 1, 2)
    # Regimes of one label have one q: their chosen lines must be parallel. A direction in d
    # dimensions is known to about √(d/n).
    alike = reduced.owner[:, None] == reduced.owner[None, :]
    np.fill_diagonal(alike, False)
    for i, j in np.argwhere(alike):
        a, b = lines.n[i], lines.n[j]
        norms = np.linalg.norm(a, axis=1)[:, None] * np.linalg.norm(b, axis=1)[None, :]
        cosine = np.divide(a @ b.T, norms, out=np.zeros((2, 2)), where=norms > 0)
        size = min(whitened.n[i], whitened.n[j]) / lines.n.shape[2]
        F[i, j] = -0.5 * size * (1.0 - cosine**2)
    return F


def _standard_scores(statistics: PairStatistics, choice: IntArray, r: int) -> FloatArray:
    pick = 2 * choice[statistics.first] + choice[statistics.second]
    rows = np.arange(len(pick))
    z = np.full((r, r), np.nan)
    sd = np.sqrt(statistics.covariance[rows, pick, pick])
    z[statistics.first, statistics.second] = statistics.T[rows, pick] / sd
    z[statistics.second, statistics.first] = z[statistics.first, statistics.second]
    return z


def _quantities(statistics: Statistics, lines: Lines) -> dict[str, FloatArray]:
    """The quantities of each pair that hypotheses refer to."""
    i, j, single = statistics.first, statistics.second, lines.rank == 1
    return quantities(lines.lean[i], lines.lean[j], single[i], single[j])
