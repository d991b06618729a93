"""From a client's moments to log Bayes factors: pooling, lines, pairs, choice of lines.

`read` runs the client's inference in the order of the modules beside this one and keeps what the
later steps (structure, basis, statements, findings) need; the moments themselves are let go.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.client.client import Client
from jigsaw_crl.nullcone.evidence import SCALES, PairEvidence, pair_evidence
from jigsaw_crl.nullcone.lines import Lines, null_lines
from jigsaw_crl.nullcone.pairs import PairStatistics, pair_statistics
from jigsaw_crl.nullcone.signs import choose_lines
from jigsaw_crl.nullcone.spikes import Spikes
from jigsaw_crl.nullcone.whitening import Reduced, Start, Whitened, pool, reduce

__all__ = ["Reading", "read"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

# Log odds beyond this are certainty; files and sums stay finite.
CERTAIN = 1e4


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
    log_ancestor : array, shape (n_scales, p, p)
        Log Bayes factor of "row is an ancestor of column" against "unrelated"; nan where unseen.
    log_lean, log_district : array, shape (p, p)
        The same of "unrelated, but a line leans" and of "same district"; symmetric.
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
    log_ancestor: FloatArray
    log_lean: FloatArray
    log_district: FloatArray


def read(client: Client, *, confounding: bool = True, start: Start | None = None) -> Reading:
    """Run the client's inference up to the choice of lines, from what the checks found."""
    reduced = reduce(client, None if start is None else start.space)
    whitened = pool(reduced, None if start is None else start.extremes)
    spikes = whitened.spikes
    lines = null_lines(spikes)
    statistics = _statistics(reduced, whitened, spikes, lines)
    evidence = pair_evidence(statistics, lines, confounding=confounding)
    F = _agreement(statistics, evidence, lines, reduced, whitened)
    choice = choose_lines(F, lines.rank == 2)
    weight = choice.log_weight(F, statistics.first, statistics.second) + evidence.rest
    log_ancestor, log_lean, log_district = _by_label(
        statistics, evidence, weight, reduced.owner, len(client.labels)
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
        log_ancestor=log_ancestor,
        log_lean=log_lean,
        log_district=log_district,
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
    evidence: PairEvidence,
    lines: Lines,
    reduced: Reduced,
    whitened: Whitened,
) -> FloatArray:
    """`F[i, j, s, t]` for the choice of lines, shape (r, r, 2, 2)."""
    r = len(lines.rank)
    F = np.zeros((r, r, 2, 2))
    mixture = evidence.mixture.reshape(-1, 2, 2)
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


def _by_label(
    statistics: PairStatistics, evidence: PairEvidence, weight: FloatArray, owner: IntArray, p: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log Bayes factors: ancestor, lean, district.

    They are averaged over the choice of lines and over the regimes of two labels. The regimes of a
    label share the other label's error, so their evidence does not simply add; the average never
    claims more than one pair of regimes would.
    """
    from jigsaw_crl.nullcone.pair_loops import sums

    total, count = np.zeros((len(SCALES) + 2, p, p)), np.zeros((p, p))
    weight = weight - weight.max(axis=1, keepdims=True)
    pairs = statistics.first, statistics.second
    sums(evidence.table, weight, CERTAIN, *pairs, owner, total, count)
    count[count == 0] = np.nan
    total /= count
    return total[:-2], total[-2], total[-1]
