"""Inner products of the arrows of two targets, with their covariance.

For readings of regimes i and j let

    T = (u_i·u_j, u_i·c_j, c_i·u_j) .

To first order in the sampling errors e of the means, N of the covariances and H of the whitening,
with `P = I − uuᵀ` and N − H in place of N,

    δ  = A⁻¹ [w_d m P e + w_D P N c] ,      A = α P + w_D c cᵀ ,      α = w_d m² + w_D ‖c‖²
    δc = P N u − λ δ
    δT₁ = u_j·δ_i + u_i·δ_j − u_iᵀHu_j
    δT₂ = c_j·δ_i + u_iᵀP_jN_ju_j − λ_j u_i·δ_j − u_iᵀHc_j ,     δT₃ with i and j exchanged.

(With c = 0: `δ = [w_d m P e + w_D λ/(1+λ) P N u]/α`, `α = w_d m² + w_D λ²/(1+λ)`.) These are
bilinear forms in independent errors: e_i, e_j, the control mean's error e₀ that both shifts share,
N_i, N_j and H. With `Cov(xᵀNy, x'ᵀNy') = [(xᵀMx')(yᵀMy') + (xᵀMy')(yᵀMx')]/n` and
`M = I + λuuᵀ + ucᵀ + cuᵀ`, every term needs the inner products of u_i, c_i, u_j, c_j only. At
second order the product of two free rotations adds `(p−1)/(α_i α_j) vvᵀ`, `v = (1, −λ_j, −λ_i)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.evidence.mixture import Statistics
from jigsaw_crl.nullcone.arrows import READINGS, ZERO, Arrows

__all__ = ["arrow_statistics"]

# A symmetric 3 × 3 matrix is kept as its upper triangle, six numbers; where each entry is there.
UPPER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
FULL = np.array([0, 1, 2, 1, 3, 4, 2, 4, 5])
# Entries that are worked on at once: their matrices stay in the cache.
TOGETHER = 1000


def arrow_statistics(arrows: Arrows, first: IntArray, second: IntArray) -> Statistics:
    """Statistics of the pairs (first[k], second[k]) in all readings (s, t), t running fastest."""
    has, n_readings = arrows.has, READINGS**2
    T = np.zeros((len(first), n_readings, 3))
    C = np.zeros((len(first), n_readings, 3, 3))
    exists = (has[first][:, :, None] & has[second][:, None, :]).reshape(-1, n_readings)
    at = pair, reading = np.nonzero(exists)
    place = np.cumsum(has.ravel()).reshape(has.shape) - 1
    i = place[first[pair], reading // READINGS]
    j = place[second[pair], reading % READINGS]
    found = _Readings.of(arrows)
    for k in range(0, len(pair), TOGETHER):
        some = slice(k, k + TOGETHER)
        values, covariance = _products(found, i[some], j[some])
        here = at[0][some], at[1][some]
        T[here], C[here] = values.T, covariance[FULL].T.reshape(-1, 3, 3)
    s, t = np.divmod(np.arange(n_readings), READINGS)
    free = np.broadcast_to(np.stack([s != ZERO, t != ZERO], axis=1), (*exists.shape, 2))
    return Statistics(first, second, T, C, exists, np.ascontiguousarray(free))


@dataclass(frozen=True, eq=False)
class _Readings:
    """What the pairs need of the m readings that exist.

    Parameters
    ----------
    G, N : array, shape (2m, 2m)
        Inner products of all lines and then all c's, plain and in the metric of the rows.
    lam, alpha, n : array, shape (m,)
    zero : array of bool, shape (m,)
        Is c = 0?
    pull : array, shape (m,)
        `A⁻¹ = (P − pull c cᵀ)/α`.
    by_mean : array, shape (m,)
        An error e of the mean turns the line by `by_mean · A⁻¹ P e`.
    by_line, by_c : array, shape (m,)
        An error N of the covariance turns it by `A⁻¹ P N (by_line · u + by_c · c)`.
    loose : array, shape (m,)
        Variance of a rotation that nothing determines.
    mean_rows, base : array, shape (m,)
    shared : array, shape (m, m)
        Errors of the shifts: see `MeanErrors`.
    n_control, n_eff : float
    dimension : int
    """

    G: FloatArray
    N: FloatArray
    lam: FloatArray
    alpha: FloatArray
    n: FloatArray
    zero: BoolArray
    pull: FloatArray
    by_mean: FloatArray
    by_line: FloatArray
    by_c: FloatArray
    loose: FloatArray
    mean_rows: FloatArray
    base: FloatArray
    shared: FloatArray
    n_control: float
    n_eff: float
    dimension: int

    @classmethod
    def of(cls, arrows: Arrows) -> _Readings:
        regime, slot = np.nonzero(arrows.has)
        at = regime, slot
        errors = arrows.errors
        flat = np.concatenate([arrows.u[at], arrows.c[at]])
        G = flat @ flat.T
        # The rows carry the sensors' noise that was taken off the moments.
        N = G if arrows.noise is None else G + flat @ arrows.noise @ flat.T
        lam, alpha, signal = arrows.lam[at], arrows.precision[at], arrows.signal[at]
        w_cov, zero = arrows.w_cov[regime], slot == ZERO
        square = np.diagonal(G)[len(regime) :]
        known = w_cov * signal
        inverse = np.divide(1.0, square, out=np.zeros_like(square), where=square > 0)
        return cls(
            G=G,
            N=N,
            lam=lam,
            alpha=alpha,
            n=arrows.n[regime],
            zero=zero,
            pull=known / (alpha + known) * inverse,
            by_mean=arrows.w_mean[regime] * arrows.m[at],
            by_line=np.where(zero, w_cov * lam / (1.0 + np.maximum(lam, -0.9)), 0.0),
            by_c=np.where(zero, 0.0, w_cov * np.sqrt(signal * inverse)),
            loose=arrows.loose[at] / alpha**2,
            mean_rows=errors.n[regime],
            base=errors.base[regime],
            shared=errors.shared[np.ix_(regime, regime)],
            n_control=errors.n_control,
            n_eff=arrows.n_eff,
            dimension=arrows.u.shape[2],
        )


# Vectors and matrices of an entry are in the basis (u_i, c_i, u_j, c_j), and the entries lie along
# the last axis. `own` is the place of the target's line in it: 0 for i, 2 for j.


def _products(r: _Readings, i: IntArray, j: IntArray) -> tuple[FloatArray, FloatArray]:
    """T, shape (3, k), and its covariance, shape (6, k), of readings i and j."""
    m = len(r.lam)
    rows = np.stack([i, i + m, j, j + m])
    K = r.G[rows[:, None], rows]
    R = K if r.N is r.G else r.N[rows[:, None], rows]
    T = np.stack([K[0, 2], K[0, 3], K[1, 2]])
    C = np.zeros((len(UPPER), len(i)))
    turns, forms = [], []
    for own, x in ((0, i), (2, j)):
        u, c = K[:, own], K[:, own + 1]
        # T follows a rotation δ of the line by g·δ, and errors turn it through A⁻¹ g.
        g = _gradient(K, own, r.lam[x])
        turn = g.copy()
        turn[:, own + 1] -= r.pull[x] * (c * g).sum(axis=1)
        turn /= r.alpha[x]
        # The metric of the regime's own rows, R + λ uuᵀ + ucᵀ + cuᵀ.
        M = R + u[:, None] * (r.lam[x] * u + c) + c[:, None] * u
        forms.append(_form(K, own, turn, r.by_line[x], r.by_c[x]))
        C += _of_forms(M, forms[-1]) / r.n[x]
        turns.append(r.by_mean[x] * turn)
        if turns[-1].any():
            C += _of_vectors(M, turns[-1]) / r.mean_rows[x]
        if r.loose[x].any():
            C += r.loose[x] * _of_vectors(K, g)
    # The control's mean is in both shifts, and offsets of batches in either.
    if turns[0].any() or turns[1].any():
        both = r.shared[i, j]
        C += both * _of_vectors(R, turns[0] + turns[1]) / r.n_control
        for x, turn in ((i, turns[0]), (j, turns[1])):
            alone = r.base[x] - both
            if alone.any():
                C += alone * _of_vectors(R, turn) / r.n_control
    # The whitening's error is in both covariances and in T itself.
    form = forms[0] + forms[1]
    for a, (one, two) in enumerate(((0, 2), (0, 3), (1, 2))):
        form[a, one, two] += 0.5
        form[a, two, one] += 0.5
    C += _of_forms(R, form) / r.n_eff
    # The product of two free rotations.
    both = max(r.dimension - 1, 1) / (r.alpha[i] * r.alpha[j])
    v = (1.0, -r.lam[j], -r.lam[i])
    C += [both * v[a] * v[b] for a, b in UPPER]
    for place, zero in ((1, r.zero[j]), (2, r.zero[i])):
        T[place, zero] = 0.0
        for slot, pair in enumerate(UPPER):
            if place in pair:
                C[slot, zero] = float(pair == (place, place))
    return T, C


def _gradient(K: FloatArray, own: int, lam: FloatArray) -> FloatArray:
    """`P g` of each statistic for the line at `own`, with `T = g·δ`; shape (3, 4, k)."""
    other, back = 2 - own, 2 - own // 2
    g = np.zeros((3, 4, K.shape[2]))
    for a, target in ((0, other), (3 - back, other + 1)):
        g[a, target] = 1.0
        g[a, own] = -K[own, target]
    g[back] = -lam * g[0]
    return g


def _form(
    K: FloatArray, own: int, turn: FloatArray, by_line: FloatArray, by_c: FloatArray
) -> FloatArray:
    """Symmetric S of each statistic with `δT = tr(S N)` for an error N; shape (3, 4, 4, k)."""
    other, back = 2 - own, 2 - own // 2
    S = np.zeros((3, 4, *turn.shape[1:]))
    for place, size in ((own, by_line), (own + 1, by_c)):
        half = (0.5 * size) * turn
        S[:, place] += half
        S[:, :, place] += half
    S[back, other, own] += 0.5
    S[back, own, other] += 0.5
    S[back, own, own] -= K[own, other]
    return S


def _of_vectors(M: FloatArray, x: FloatArray) -> FloatArray:
    """`xᵀ M x'` for the vectors of each two statistics, shape (6, k)."""
    Mx = (M * x[:, None]).sum(axis=2)
    return np.stack([(Mx[a] * x[b]).sum(axis=0) for a, b in UPPER])


def _of_forms(M: FloatArray, S: FloatArray) -> FloatArray:
    """`2 tr(M S M S')` for the forms of each two statistics, shape (6, k)."""
    W = M[:, 0, None] * S[:, None, 0]
    for b in range(1, 4):
        W += M[:, b, None] * S[:, None, b]
    V = np.swapaxes(W, 1, 2)
    return 2.0 * np.stack([(W[a] * V[b]).sum(axis=(0, 1)) for a, b in UPPER])
