"""What do two lines' inner products say about the pair? Four hypotheses, compared exactly.

For a choice of lines, let `g = (⟨q_i,q_j⟩, ⟨q_i,c_j⟩, ⟨c_i,q_j⟩)` with sampling covariance C. Each
hypothesis says which of the three may differ from zero (T2, T3), by an effect of scale τ:

    unrelated          0   0   0
    i ancestor of j    0   τ²  0
    j ancestor of i    0   0   τ²
    same district      τ²  τ²  τ²    or, when the hidden cause hardly reaches one of the two,
                       υ²  τ²  υ²  /  υ²  υ²  τ²   with υ the weak scale

and its evidence is the Gaussian density `N(g; 0, C + diag(v))`. A rank-1 target has no c. If j is
one, ⟨q_i,c_j⟩ is dropped, and "i ancestor of j" frees the two others: it is then only possible if
the second eigenvalue of j was too small to see, which tilts j's line towards its ancestors. The
same lean can make i and j look related when they merely share an ancestor: a hypothesis of its own,
"unrelated, but leaning". All is measured with c⊥, the part of c that is orthogonal to q, at unit
length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jigsaw_crl.fragment.fragment import MISSED
from jigsaw_crl.nullcone.lines import Lines
from jigsaw_crl.nullcone.pairs import PairStatistics

__all__ = ["SCALES", "PairEvidence", "pair_evidence"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Effects of unit-scaled lines lie in [0, 1]: one scale for plain ones, one for weak ones.
SCALES = (0.5, 0.05)

STRONG, WEAK = SCALES
# A hidden cause reaches i with weight u and j with weight v; then ⟨q_i,q_j⟩ goes with uv, ⟨q_i,c_j⟩
# with u and ⟨c_i,q_j⟩ with v. A small v leaves one large statistic, which looks like ancestry, so
# that case has a component of its own each way.
MIDDLE, TINY = 0.1, 0.004
DISTRICT = np.array(
    [
        [STRONG, STRONG, STRONG],
        [MIDDLE, STRONG, STRONG],
        [WEAK, WEAK, WEAK],
        [TINY, STRONG, WEAK],
        [TINY, WEAK, STRONG],
    ]
)
DISTRICT_WEIGHT = np.array([0.40, 0.30, 0.06, 0.12, 0.12])
# The same when one of the two is of rank 1: ⟨q_i,q_j⟩ goes with the lean that was missed.
SINGLE = np.array([STRONG, STRONG, WEAK, WEAK, STRONG])
SINGLE_LEAN = np.array([0, 1, 1, 0, 0])
SINGLE_WEIGHT = np.array([0.35, 0.35, 0.15, 0.15, 0.0])
# A lean of about half of what could be missed, or a small part of it.
LEANS = np.array([0.5, 0.125])
# Perfectly correlated statistics (a rank-1 pair seen twice) would make C singular.
JITTER = 1e-9


class Prior(NamedTuple):
    """What the hypotheses allow, as the compiled loops read it."""

    scales: FloatArray
    leans: FloatArray
    missed: float
    district: FloatArray
    district_weight: FloatArray
    single: FloatArray
    single_lean: IntArray
    single_weight: FloatArray
    jitter: float


PRIOR = Prior(
    np.array(SCALES),
    LEANS,
    MISSED,
    DISTRICT,
    DISTRICT_WEIGHT,
    SINGLE,
    SINGLE_LEAN,
    SINGLE_WEIGHT,
    JITTER,
)


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """Log densities of every pair, for each choice of lines.

    Parameters
    ----------
    table : array, shape (n_pairs, 4, 9)
        For the choices (s, t) = 00, 01, 10, 11, as the compiled loops fill it: "unrelated";
        "unrelated, but the line of a target of rank 1 leans"; "i ancestor of j" at both scales;
        "j ancestor of i" at both; "same district"; `rest`; `mixture`.
    """

    table: FloatArray

    @property
    def rest(self) -> FloatArray:
        """Of ⟨c_i,c_j⟩, which no hypothesis restricts, shape (n_pairs, 4).

        It cancels between hypotheses, but choices of lines are compared on the same four statistics
        only if it is counted.
        """
        return self.table[:, :, 7]

    @property
    def mixture(self) -> FloatArray:
        """With the four hypotheses at ¼ and the scales averaged, and `rest` counted."""
        return self.table[:, :, 8]


def pair_evidence(
    statistics: PairStatistics, lines: Lines, *, confounding: bool = True
) -> PairEvidence:
    """Evidence of every pair under every choice of lines.

    Without `confounding` (the client accesses every latent) no two targets share a district.
    """
    from jigsaw_crl.nullcone.pair_loops import densities

    pairs = statistics
    table = np.empty((len(pairs.first), 4, 9))
    kind = lines.rank, lines.tilt, _between(lines)
    densities(
        pairs.T, pairs.covariance, pairs.first, pairs.second, *kind, PRIOR, confounding, table
    )
    return PairEvidence(table)


def _between(lines: Lines) -> FloatArray:
    """Cosine of the angle between the two lines of each regime, 0 where there is one, (r,)."""
    inner = np.einsum("rp,rp->r", lines.n[:, 0], lines.n[:, 1])
    norms = np.linalg.norm(lines.n, axis=2).prod(axis=1)
    return np.asarray(np.divide(inner, norms, out=np.zeros_like(inner), where=norms > 0))
