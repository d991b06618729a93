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
the second eigenvalue of j was too small to see, which tilts j's line towards its ancestors. All is
measured with c⊥, the part of c that is orthogonal to q, at unit length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.nullcone.lines import Lines
from jigsaw_crl.nullcone.pairs import CHUNK, PairStatistics

__all__ = ["SCALES", "PairEvidence", "pair_evidence"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Effects of unit-scaled lines lie in [0, 1]: one scale for plain ones, one for weak ones.
SCALES = (0.5, 0.05)

# Position of (q_i q_j), (q_i c_j), (c_i q_j), (c_i c_j) among the statistics 00, 01, 10, 11 when
# the q-lines of i and j are s and t.
COMPONENTS = np.array(
    [
        [2 * s + t, 2 * s + 1 - t, 2 * (1 - s) + t, 2 * (1 - s) + 1 - t]
        for s in (0, 1)
        for t in (0, 1)
    ]
)

# A target with an ancestor or a spouse shows two eigenvalues, unless its line leans less than the
# angle that can be missed. What needs a missed eigenvalue starts with that angle's share of the
# prior (leans are spread over tangents from 0 to 1), and with a tenth at most: it is the exception.
MOST_MISSED = 0.1
MOST_SHARED = 0.4
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
# Perfectly correlated statistics (a rank-1 pair seen twice) would make C singular.
JITTER = 1e-9


@dataclass(frozen=True, eq=False)
class PairEvidence:
    """Log densities of every pair, for each choice of lines.

    Parameters
    ----------
    none : array, shape (n_pairs, 4)
        For the choices (s, t) = 00, 01, 10, 11.
    forward, backward : array, shape (n_pairs, 4, n_scales)
        "i ancestor of j" and "j ancestor of i" at each scale.
    district : array, shape (n_pairs, 4)
    rest : array, shape (n_pairs, 4)
        Of ⟨c_i,c_j⟩, which no hypothesis restricts. It cancels between hypotheses, but choices of
        lines are compared on the same four statistics only if it is counted.
    """

    none: FloatArray
    forward: FloatArray
    backward: FloatArray
    district: FloatArray
    rest: FloatArray

    def log_mixture(self) -> FloatArray:
        """Log density with the four hypotheses at ¼ and the scales averaged, (n_pairs, 4)."""
        average = np.log(len(SCALES))
        forward = np.logaddexp.reduce(self.forward, axis=2) - average
        backward = np.logaddexp.reduce(self.backward, axis=2) - average
        either = np.logaddexp(forward, backward)
        four = np.logaddexp(np.logaddexp(self.none, self.district), either) - np.log(4.0)
        return np.asarray(four + self.rest)


def pair_evidence(
    statistics: PairStatistics, lines: Lines, *, confounding: bool = True
) -> PairEvidence:
    """Evidence of every pair under every choice of lines.

    Without `confounding` (the client accesses every latent) no two targets share a district.
    """
    parts = [
        _chunk(statistics.part(slice(k, k + CHUNK)), lines, confounding)
        for k in range(0, max(len(statistics.first), 1), CHUNK)
    ]
    fields = ("none", "forward", "backward", "district", "rest")
    return PairEvidence(*(np.concatenate([getattr(part, f) for part in parts]) for f in fields))


def _chunk(statistics: PairStatistics, lines: Lines, confounding: bool) -> PairEvidence:
    rank = lines.rank
    T, C = statistics.T, statistics.covariance
    k = len(T)
    kind = (rank[statistics.second] == 1) + 2 * (rank[statistics.first] == 1)
    used = np.stack([np.ones(k, bool), kind % 2 == 0, kind < 2], axis=1)[:, None, :]

    B = _own_parts(lines, statistics)[:, None]
    g = (B @ T[:, COMPONENTS, None])[..., 0]  # (k, 4, 4)
    S = C[:, COMPONENTS[:, :, None], COMPONENTS[:, None, :]]  # (k, 4, 4, 4)
    S = B @ S @ np.swapaxes(B, 2, 3)
    rest = np.where(kind[:, None] == 0, _log_slab(g[..., 3], S[..., 3, 3]), 0.0)
    g, S = np.where(used, g[..., :3], 0.0), S[..., :3, :3]
    variance = np.diagonal(S, axis1=2, axis2=3)
    sd = np.sqrt(np.where(used & (variance > 0), variance, 1.0))
    z = g / sd
    off = np.empty_like(z)
    for slot, (a, b) in enumerate(((0, 1), (0, 2), (1, 2))):
        both = used[..., a] & used[..., b]
        off[..., slot] = np.where(both, S[..., a, b] / (sd[..., a] * sd[..., b]), 0.0)

    log_sd = np.log(sd).sum(axis=-1)

    def density(scales: FloatArray) -> FloatArray:
        """`scales`: slab standard deviations, shape (k, n_components, 3)."""
        v = (np.where(used, scales, 0.0)[:, None] / sd[:, :, None, :]) ** 2
        joint = _log_density(z[:, :, None, :], 1.0 + v, off[:, :, None, :])
        return np.asarray(joint - log_sd[:, :, None])

    def mixture(hypothesis: _Mixture) -> FloatArray:
        each = density(hypothesis.scales) + hypothesis.log_weight[:, None, :]
        return np.asarray(np.logaddexp.reduce(each, axis=2))

    prior = _hypotheses(lines, statistics)
    none = mixture(prior.none)
    forward = density(prior.forward.scales) + prior.forward.log_weight[:, None, :]
    backward = density(prior.backward.scales) + prior.backward.log_weight[:, None, :]
    district = mixture(prior.district) if confounding else np.full_like(none, -np.inf)
    return PairEvidence(none, forward, backward, np.asarray(district), rest)


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Gaussian mixture of a hypothesis: scales (k, n_components, 3), log weights (k, same)."""

    scales: FloatArray
    log_weight: FloatArray


@dataclass(frozen=True, eq=False)
class _Hypotheses:
    none: _Mixture
    forward: _Mixture
    backward: _Mixture
    district: _Mixture


def _hypotheses(lines: Lines, statistics: PairStatistics) -> _Hypotheses:
    """What each hypothesis allows the three statistics of each pair to be.

    If i is of rank 1, its line may lean by up to φ_i towards its ancestors and spouses. Then
    ⟨q_i,q_j⟩ can reach φ_i when j is one of those, and ⟨q_i,c_j⟩ when i and j share an ancestor.
    """
    k = len(statistics.first)
    i_one = lines.rank[statistics.first] == 1
    j_one = lines.rank[statistics.second] == 1
    # Two components: a lean of about half of what could be missed, or a small part of it.
    lean_i = lines.tilt[statistics.first][:, None] * np.array([0.5, 0.125])
    lean_j = lines.tilt[statistics.second][:, None] * np.array([0.5, 0.125])
    lean = np.maximum(lean_i, lean_j)
    taus = np.broadcast_to(np.array(SCALES), (k, 2))
    zero = np.zeros((k, 2))

    def where(both: FloatArray, i: FloatArray, j: FloatArray, neither: FloatArray) -> FloatArray:
        """Pick by which targets are of rank 1: both, only i, only j, neither."""
        one = np.where(j_one[:, None], j, neither)
        return np.asarray(np.where(i_one[:, None], np.where(j_one[:, None], both, i), one))

    def mixture(g: FloatArray, qc: FloatArray, cq: FloatArray, weight: FloatArray) -> _Mixture:
        with np.errstate(divide="ignore"):
            return _Mixture(np.stack([g, qc, cq], axis=2), np.log(weight))

    missed_i = np.minimum(lines.tilt[statistics.first], MOST_MISSED)[:, None]
    missed_j = np.minimum(lines.tilt[statistics.second], MOST_MISSED)[:, None]
    either = np.maximum(missed_i, missed_j)
    # Where much can be missed, a lean towards a shared ancestor is common.
    missed = np.minimum(lean[:, 0], MOST_SHARED)
    none = mixture(
        np.stack([zero[:, 0], np.where(i_one & j_one, lean[:, 0], 0.0)], axis=1),
        np.stack([zero[:, 0], np.where(i_one, lean_i[:, 0], 0.0)], axis=1),
        np.stack([zero[:, 0], np.where(j_one, lean_j[:, 0], 0.0)], axis=1),
        np.stack([1.0 - missed, missed], axis=1),
    )
    ones = np.ones((k, 2))
    forward = mixture(
        where(lean_j, zero, lean_j, zero),
        where(zero, taus, zero, taus),
        where(zero, zero, lean_j, zero),
        where(missed_j * ones, ones, missed_j * ones, ones),
    )
    backward = mixture(
        where(lean_i, lean_i, zero, zero),
        where(zero, lean_i, zero, zero),
        where(zero, zero, taus, taus),
        where(missed_i * ones, missed_i * ones, ones, ones),
    )
    single = (i_one | j_one)[:, None]
    far, near = lean[:, :1], lean[:, 1:]
    pattern = np.array([STRONG, STRONG, WEAK, WEAK, STRONG])
    leans = np.concatenate([far, near, near, far, far], axis=1)
    shares = either * np.array([0.35, 0.35, 0.15, 0.15, 0.0])
    district = mixture(
        np.where(single, leans, DISTRICT[:, 0]),
        np.where(single, pattern, DISTRICT[:, 1]),
        np.where(single, pattern, DISTRICT[:, 2]),
        np.where(single, shares, DISTRICT_WEIGHT),
    )
    return _Hypotheses(none, forward, backward, district)


def _own_parts(lines: Lines, statistics: PairStatistics) -> FloatArray:
    """Matrix that replaces c by c⊥ in (⟨q,q⟩, ⟨q_i,c_j⟩, ⟨c_i,q_j⟩, ⟨c_i,c_j⟩).

    `c⊥ = (c − cosθ q)/sinθ` is the unit vector of the plane that is orthogonal to q. The angle θ
    between the two lines is the same whichever of them is q, so the volume factor of this change
    of variables is the same for all choices of lines. Shape (n_pairs, 4, 4).
    """
    inner = np.einsum("rp,rp->r", lines.n[:, 0], lines.n[:, 1])
    norms = np.linalg.norm(lines.n, axis=2).prod(axis=1)
    cos = np.divide(inner, norms, out=np.zeros_like(inner), where=norms > 0)
    sin = np.sqrt(np.maximum(1.0 - cos**2, np.finfo(np.float64).eps))
    # (q, c) → (q, c⊥) for one target; a pair's statistics transform by the Kronecker product.
    one = np.zeros((len(cos), 2, 2))
    one[:, 0, 0], one[:, 1, 0], one[:, 1, 1] = 1.0, -cos / sin, 1.0 / sin
    i, j = one[statistics.first], one[statistics.second]
    return np.asarray((i[:, :, None, :, None] * j[:, None, :, None, :]).reshape(-1, 4, 4))


def _log_slab(x: FloatArray, variance: FloatArray) -> FloatArray:
    """Log density, up to a constant, of a statistic that no hypothesis restricts."""
    total = variance + STRONG**2
    return np.asarray(-0.5 * (np.log(total) + x**2 / total))


def _log_density(z: FloatArray, diagonal: FloatArray, off: FloatArray) -> FloatArray:
    """Log density, up to a constant, of N(z; 0, A) for 3 × 3 matrices A given by their entries."""
    a, b, c = (diagonal[..., i] + JITTER for i in range(3))
    d, e, f = off[..., 0], off[..., 1], off[..., 2]
    x, y, w = z[..., 0], z[..., 1], z[..., 2]
    m_a, m_b, m_c = b * c - f * f, a * c - e * e, a * b - d * d
    m_d, m_e, m_f = e * f - d * c, d * f - b * e, d * e - a * f
    det = a * m_a + d * m_d + e * m_e
    quad = x * x * m_a + y * y * m_b + w * w * m_c
    quad = quad + 2 * (x * y * m_d + x * w * m_e + y * w * m_f)
    return np.asarray(-0.5 * (np.log(det) + quad / det))
