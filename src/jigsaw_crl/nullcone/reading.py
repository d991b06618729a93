"""From a client's moments to log Bayes factors: pooling, lines, pairs, choice of lines.

`read` runs the client's inference in the order of the modules beside this one and keeps what the
later steps (structure, basis, statements, diagnostics) need.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.client import Client
from jigsaw_crl.nullcone.evidence import PairEvidence, pair_evidence
from jigsaw_crl.nullcone.lines import Lines, null_lines
from jigsaw_crl.nullcone.pairs import PairStatistics, pair_statistics
from jigsaw_crl.nullcone.signs import choose_lines
from jigsaw_crl.nullcone.spikes import Spikes, detect
from jigsaw_crl.nullcone.whitening import Reduced, Whitened, pool, reduce

__all__ = ["Reading", "read"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a client's moments say about its targets, before any decision.

    Parameters
    ----------
    reduced, whitened, spikes, lines
        The steps' results.
    statistics : PairStatistics
    evidence : PairEvidence
    choice : array of int, shape (r,)
        Which line of each regime is its q.
    margin : array, shape (r,)
        Log evidence for that choice.
    """

    reduced: Reduced
    whitened: Whitened
    spikes: Spikes
    lines: Lines
    statistics: PairStatistics
    evidence: PairEvidence
    choice: IntArray
    margin: FloatArray

    def chosen(self) -> IntArray:
        """Index 2s + t of each pair's chosen lines, shape (n_pairs,)."""
        return 2 * self.choice[self.statistics.first] + self.choice[self.statistics.second]


def read(client: Client) -> Reading:
    """Run the client's inference up to the choice of lines."""
    reduced = reduce(client)
    whitened = pool(reduced)
    spikes = detect(whitened.M, whitened.n, whitened.n_eff)
    lines = null_lines(spikes)
    return _compare(reduced, whitened, spikes, lines)


def _compare(reduced: Reduced, whitened: Whitened, spikes: Spikes, lines: Lines) -> Reading:
    r = len(lines.rank)
    first, second = np.triu_indices(r, 1)
    seen = (lines.rank > 0) & True
    keep = seen[first] & seen[second] & (reduced.owner[first] != reduced.owner[second])
    first, second = first[keep], second[keep]
    statistics = pair_statistics(lines, whitened.n, whitened.n_eff, first, second)
    evidence = pair_evidence(statistics, lines)
    F = np.zeros((r, r, 2, 2))
    mixture = evidence.log_mixture().reshape(-1, 2, 2)
    F[first, second] = mixture
    F[second, first] = np.swapaxes(mixture, 1, 2)
    choice, margin = choose_lines(F, lines.rank == 2)
    return Reading(reduced, whitened, spikes, lines, statistics, evidence, choice, margin)
