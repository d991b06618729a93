"""Hard interventions in a system that need not be linear: labels are read from the sinks up (T9).

In coordinates in which the rows of the control have the covariance I, of which `signal` K belongs
to the latents, regime j shows the shift d_j of its mean and the change D_j of its covariance. If j
has no descendants left, then with u the direction of its latent and `P = I − uuᵀ`

    P d_j = 0 ,       P D_j P = 0 ,       h_j ∝ (K + D_j)⁻¹ u ,

and h_j reads the latent. On the functionals that do not see u, the client is one without j. So at
each *stage* every remaining label is fitted as if it had no descendants, and one label is removed.

*Fit.* `χ²(u) = w_d |P d|² + ½ w_D ‖P D P‖²`, least over u, with m(m − 1)/2 degrees of freedom in m
dimensions. Its tail probability p says how well a label without descendants explains the regime. A
label that does not fit is no reliable reader: it is taken to be one with probability
`p/(p + DOUBT)`.

*Evidence.* Reader i, scaled to `h_iᵀ K h_i = 1`, sees regime j by

    t = h_i · d_j ,       v = h_iᵀ D_j h_i ,

the change of mean and variance of latent i in its own standard deviations. Both are zero unless j
is an ancestor of i. If it is, with an effect of scale τ, they are Gaussian with standard deviations
`τ m_j` (m_j what the intervention did to its own target) and τ, together or one of them alone. The
errors of t and v are those of the moments, of h_i, and of the directions that were removed before
(`peeling_errors`).

*Order.* A label is removed if it fits and moves no other label that fits. Where two labels move one
another, which of them goes first is not sure: both orders are followed, and what they say is
averaged by how well they fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri, expit, logsumexp

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.nullcone.peeling_errors import Changes, ReaderErrors, Removed

__all__ = ["Changes", "Fits", "Peeled", "fits", "peel"]

# Tail probability of a fit from which it counts as bad rather than good.
DOUBT = 1e-3
# Misfits with a tail probability above this are chance.
GOOD = 0.01
# Orders of removal that are followed at once, and by how much log weight a label may be behind the
# best one to be tried. Labels that move one another by less log evidence than CONFLICT may be
# removed in any order.
ORDERS, BEHIND, CONFLICT = 8, 7.0, 1.0
TEMPER = 0.25
# Tails of the latents, which no feature shows, make the error of a variance wider than the rows
# that the covariances count for say: with this probability, by this factor.
WIDE, WIDER = 0.1, 5.0
# Ascents of the fit: the fixed point converges by a factor of a half or better where the shift or
# the covariance shows the target at all.
ASCENTS, CLOSE = 60, 1e-8
# Of what peeling says clearly, one statement in 250 is wrong, because a label was removed too early
# and every order that was followed has it so. Log odds are bounded by this chance.
MOST = 5.5


@dataclass(frozen=True, eq=False)
class Peeled:
    """What peeling says about r labels.

    Parameters
    ----------
    log_factors : array, shape (n_scales, r, r)
        `[s, a, d]`: "a is an ancestor of d with an effect of scale τ_s" against "not".
    readers : array, shape (r, p)
        Functionals that read the latents, with unit variance in the control.
    fit : array, shape (r,)
        Tail probability of each label's misfit at the stage at which it was removed.
    value, error : array, shape (r, r)
        `[a, d]`: what the intervention on a did to the mean of d, in standard deviations of d, and
        its standard error; 0 and NaN where a was removed before d. The diagonal has the doses.
    order : tuple of int
        Labels from the sinks to the roots, in the order that fits best.
    """

    log_factors: FloatArray
    readers: FloatArray
    fit: FloatArray
    value: FloatArray
    error: FloatArray
    order: tuple[int, ...]


def _ascend(
    d: FloatArray, D: FloatArray, w_d: FloatArray, w_D: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The direction u of every label with the least misfit, shape (l, m), and the misfit χ².

    Starts are the shift and the two lines of the null cone of D. The fixed point
    `u ← w_d (u·d) d + w_D (DDu − λDu + λ²u)` climbs to the nearest maximum of the likelihood.
    """
    values, vectors = np.linalg.eigh(D)
    a = np.sqrt(np.maximum(values[:, -1:], 0.0)) * vectors[:, :, -1]
    b = np.sqrt(np.maximum(-values[:, :1], 0.0)) * vectors[:, :, 0]
    x = np.stack([d, a + b, a - b], axis=1)
    x /= np.maximum(np.linalg.norm(x, axis=2, keepdims=True), 1e-300)
    wd, wD = w_d[:, None, None], w_D[:, None, None]
    for _ in range(ASCENTS):
        y = x @ D
        lam = np.einsum("lsm,lsm->ls", x, y)[:, :, None]
        new = wd * (x @ d[:, :, None]) * d[:, None, :]
        new += wD * (y @ D - lam * y + (lam**2 + 1e-12) * x)
        new /= np.maximum(np.linalg.norm(new, axis=2, keepdims=True), 1e-300)
        moved = float(np.abs(new - x).max())
        x = new
        if moved < CLOSE:
            break
    y = x @ D
    lam = np.einsum("lsm,lsm->ls", x, y)
    off_mean = np.einsum("lm,lm->l", d, d)[:, None] - np.einsum("lsm,lm->ls", x, d) ** 2
    whole = np.einsum("lab,lab->l", D, D)[:, None]
    off = 0.5 * (whole - 2.0 * np.einsum("lsm,lsm->ls", y, y) + lam**2)
    chi = w_d[:, None] * np.maximum(off_mean, 0.0) + w_D[:, None] * np.maximum(off, 0.0)
    best = chi.argmin(axis=1)
    rows = np.arange(len(d))
    u = x[rows, best]
    sign = np.where(np.einsum("lm,lm->l", u, d) < 0, -1.0, 1.0)
    return sign[:, None] * u, chi[rows, best]


def _tail(chi: FloatArray, m: int) -> FloatArray:
    """Probability of a misfit as large as this in m dimensions."""
    if m < 2:
        return np.ones_like(chi)
    return np.asarray(np.maximum(chdtrc(m * (m - 1) / 2.0, chi), 1e-300))


@dataclass(frozen=True, eq=False)
class Fits:
    """How well each regime fits "one latent moved".

    Parameters
    ----------
    tail : array, shape (r,)
        Tail probability of its misfit.
    ratio : array, shape (r,)
        Misfit over its expectation.
    chance : float
        Tail probability of the largest misfit and of the sum of all, together.
    """

    tail: FloatArray
    ratio: FloatArray
    chance: float


def fits(changes: Changes) -> Fits:
    """How well each regime fits "one latent moved", as every regime of a linear system does."""
    _, chi = _ascend(changes.d, changes.D, changes.w_mean, changes.w_cov)
    r, p = changes.d.shape
    free = max(p * (p - 1) / 2.0, 1.0)
    tail = _tail(chi, p)
    # Regimes share the control's error: their misfits have squared correlations ρ², so that the sum
    # is that of fewer degrees of freedom.
    shared = np.sqrt(changes.w_cov) / np.sqrt(changes.n_control)
    rho = np.outer(shared, shared) ** 2
    np.fill_diagonal(rho, 1.0)
    spread = float(rho.sum()) / r
    least = min(r * float(tail.min()), float(chdtrc(r * free / spread, chi.sum() / spread)))
    return Fits(tail, chi / free, min(2.0 * least, 1.0))


@dataclass(frozen=True, eq=False)
class _Stage:
    """All remaining labels, fitted as if none of them had descendants left.

    Parameters
    ----------
    left : array of int, shape (l,)
    u : array, shape (l, m)
        In coordinates of the stage.
    h : array, shape (l, m)
        Readers.
    p : array, shape (l,)
        Tail probabilities.
    alpha : array, shape (l,)
        Information about a turn of u, per direction.
    factors : array, shape (n_scales, l, l)
        `[s, j, i]`: log factor of "j is an ancestor of i" by reader i, given how it fits.
    moves : array, shape (l, l)
        The same for all scales together; what the regime of i leaves unexplained along j counts
        as an error of its reader.
    t, t_error : array, shape (l, l)
        `[j, i]`.
    """

    left: IntArray
    u: FloatArray
    h: FloatArray
    p: FloatArray
    alpha: FloatArray
    factors: FloatArray
    moves: FloatArray
    t: FloatArray
    t_error: FloatArray


def _stage(
    changes: Changes,
    B: FloatArray,
    left: IntArray,
    removed: Removed,
    scales: tuple[float, ...],
) -> _Stage:
    """Fit and compare the labels `left` in the space of B, orthonormal columns, shape (p, m)."""
    m = B.shape[1]
    d = changes.d[left] @ B
    D = B.T @ changes.D[left] @ B
    K = B.T @ changes.signal @ B
    w_d, w_D = changes.w_mean[left], changes.w_cov[left]
    u, chi = _ascend(d, D, w_d, w_D)
    Du = np.einsum("lab,lb->la", D, u)
    lam = np.einsum("la,la->l", u, Du)
    c = Du - lam[:, None] * u
    shift = np.einsum("la,la->l", u, d)
    inverse = np.asarray(np.linalg.inv(K + D), dtype=np.float64)
    raw = np.einsum("lab,lb->la", inverse, u)
    size = np.sqrt(np.einsum("la,ab,lb->l", raw, K, raw))
    h = raw / size[:, None]
    # What noise adds to m² and ‖c‖² is no information.
    own = 1.0 + np.maximum(lam, -0.9)
    square = np.maximum(np.einsum("la,la->l", c, c) - (m - 1) * own / w_D, 0.0)
    alpha = w_d * np.maximum(shift**2 - 1.0 / w_d, 0.0) + w_D * square + 1e-9
    t = d @ h.T
    Dh = np.einsum("jab,ib->jia", D, h)
    v = np.einsum("jia,ia->ji", Dh, h)
    errors = ReaderErrors(
        changes, B, left, removed, d, D, K, u, c, shift, raw, h, size, inverse, alpha
    )
    l = len(left)
    of_reader, own_error = np.zeros((2, l, l, 2, 2))
    for i in range(l):
        of_reader[:, i] = errors.of_reader(i, np.stack([d, 2.0 * Dh[:, i]], axis=1))
    length = np.einsum("ia,ia->i", h, h)
    inside = length + np.maximum(v, -0.9 * length)
    own_error[:, :, 0, 0] = inside / changes.n_mean[left][:, None]
    own_error[:, :, 0, 0] += length * changes.control_mean[left][:, None]
    own_error[:, :, 1, 1] = 2.0 * (
        inside**2 / changes.n[left][:, None] + length**2 / changes.n_control
    )
    dose = np.maximum(np.abs(np.diagonal(t)), 1.0 / np.sqrt(w_d))
    p, free = _tail(chi, m), max(m * (m - 1) / 2.0, 1.0)

    def log_factors(along: FloatArray) -> FloatArray:
        # What a misfit beyond chance leaves unexplained is an error of the reader.
        beyond = 1.0 + np.maximum(chi - chdtri(free, GOOD), along)
        C = own_error + beyond[:, :, None, None] * of_reader
        found = np.stack([_log_factor(t, v, C, tau * dose[:, None], tau) for tau in scales])
        good = p / (p + DOUBT)
        return np.asarray(np.logaddexp(np.log(good) + found, np.log1p(-good)))

    along = np.maximum(_along(u, d, D, w_d, w_D) - 2.0, 0.0)
    moves = logsumexp(log_factors(along), axis=0) - np.log(len(scales))
    np.fill_diagonal(moves, 0.0)
    error = np.sqrt(own_error[:, :, 0, 0] + of_reader[:, :, 0, 0])
    factors = log_factors(np.zeros((l, l)))
    return _Stage(left, u, h, p, alpha, factors, moves, t, error)


def _along(
    u: FloatArray, d: FloatArray, D: FloatArray, w_d: FloatArray, w_D: FloatArray
) -> FloatArray:
    """`[j, i]`: what the regime of i leaves unexplained along u_j; about χ² with 2 degrees."""
    y = u[:, None] - (u @ u.T)[:, :, None] * u
    size = np.maximum(np.einsum("jia,jia->ji", y, y), 1e-12)
    of_mean = w_d * np.einsum("jia,ia->ji", y, d) ** 2 / size
    of_cov = 0.5 * w_D * np.einsum("jia,iab,jib->ji", y, D, y) ** 2 / size**2
    return np.asarray(of_mean + of_cov)


def _log_factor(
    t: FloatArray, v: FloatArray, C: FloatArray, of_t: FloatArray, of_v: float
) -> FloatArray:
    """Log Bayes factor of effects on mean, variance or both against none, shape of t.

    `N(x; 0, C + diag(s²))` over `N(x; 0, C)` with x = (t, v), averaged over the three cases. The
    error of v has wider tails: see `WIDE`.
    """

    def density(a: FloatArray, b: FloatArray, error: FloatArray) -> FloatArray:
        one, two, cross = C[:, :, 0, 0] + a, error + b, C[:, :, 0, 1]
        det = one * two - cross**2
        return np.asarray(
            -0.5 * np.log(det) - 0.5 * (two * t**2 - 2.0 * cross * t * v + one * v**2) / det
        )

    def tailed(a: FloatArray, b: FloatArray) -> FloatArray:
        error = C[:, :, 1, 1]
        wide = density(a, b, WIDER**2 * error)
        narrow = np.log1p(-WIDE) + density(a, b, error)
        return np.asarray(np.logaddexp(narrow, np.log(WIDE) + wide))

    none = np.zeros_like(t)
    a, b = none + of_t**2, none + of_v**2
    cases = np.stack([tailed(a, none), tailed(none, b), tailed(a, b)])
    return np.asarray(logsumexp(cases, axis=0) - np.log(3.0) - tailed(none, none))


@dataclass(frozen=True, eq=False)
class _Path:
    """A way of removing labels, as far as it has gone."""

    order: tuple[int, ...]
    B: FloatArray
    removed: Removed
    cost: float
    factors: FloatArray
    readers: FloatArray
    fit: FloatArray
    value: FloatArray
    error: FloatArray


def peel(changes: Changes, scales: tuple[float, ...]) -> Peeled:
    """Read and remove all labels, from the sinks to the roots.

    Parameters
    ----------
    changes : Changes
        Of hard interventions that shift the mean of their target.
    scales : tuple of float
        Effect scales τ of the hypotheses.
    """
    r, p = changes.d.shape
    nothing = Removed(np.zeros((0, p)), np.zeros(0))
    tables = np.zeros((2, r, r))
    tables[1] = np.nan
    start = _Path(
        (), np.eye(p), nothing, 0.0, np.zeros((len(scales), r, r)), np.zeros((r, p)), np.ones(r),
        *tables,
    )  # fmt: skip
    paths = [start]
    for _ in range(r):
        found = [new for path in paths for new in _onward(changes, path, scales)]
        paths = sorted(found, key=lambda x: x.cost)
        paths = [x for x in paths[:ORDERS] if x.cost < paths[0].cost + BEHIND]
    return _averaged(paths)


def _onward(changes: Changes, path: _Path, scales: tuple[float, ...]) -> list[_Path]:
    """The path with one more label removed: the best one, and those that it conflicts with."""
    left = np.setdiff1d(np.arange(len(changes.d)), path.order)
    stage = _stage(changes, path.B, left, path.removed, scales)
    moves = stage.moves
    # That j moves i counts against removing j, unless i seems to move j even more. Then one of the
    # two readers is wrong by more than its sampling error, and the difference says less.
    net = np.maximum(moves, 0.0) - np.maximum(moves.T, 0.0)
    net *= np.where(moves.T > CONFLICT, TEMPER, 1.0)
    cost = np.log1p(DOUBT / stage.p) + np.maximum(net, 0.0).max(axis=1)
    best = int(cost.argmin())
    conflict = np.maximum(moves[best], moves[:, best]) > CONFLICT
    tried = np.flatnonzero(conflict & (cost < cost[best] + BEHIND)).tolist()
    return [_without(path, stage, k, float(cost[k])) for k in {best, *tried}]


def _without(path: _Path, stage: _Stage, k: int, cost: float) -> _Path:
    """The path behind the removal of the k-th label of a stage."""
    label, others = int(stage.left[k]), np.delete(np.arange(len(stage.left)), k)
    names = stage.left[others]
    factors, readers, fit = path.factors.copy(), path.readers.copy(), path.fit.copy()
    value, error = path.value.copy(), path.error.copy()
    factors[:, names, label] = stage.factors[:, others, k]
    # The label is removed as one that moves no other: what says that it does is an error of a
    # reader that still has descendants.
    factors[:, label, names] = np.minimum(stage.factors[:, k, others], 0.0)
    readers[label], fit[label] = path.B @ stage.h[k], stage.p[k]
    value[stage.left, label], error[stage.left, label] = stage.t[:, k], stage.t_error[:, k]
    u = path.B @ stage.u[k]
    removed = Removed(np.vstack([path.removed.u, u]), np.append(path.removed.alpha, stage.alpha[k]))
    B = path.B @ _complement(stage.u[k])
    order = (*path.order, label)
    return _Path(order, B, removed, path.cost + cost, factors, readers, fit, value, error)


def _complement(u: FloatArray) -> FloatArray:
    """Orthonormal columns orthogonal to the unit vector u, shape (m, m − 1): Householder's."""
    w = u.copy()
    w[0] += 1.0 if u[0] >= 0 else -1.0
    return np.asarray((np.eye(len(u)) - 2.0 * np.outer(w, w) / (w @ w))[:, 1:])


def _averaged(paths: list[_Path]) -> Peeled:
    """What the paths say, by their weights; readers and effects are those of the best one."""
    weight = np.exp(paths[0].cost - np.array([x.cost for x in paths]))
    weight /= weight.sum()
    every = np.stack([np.clip(x.factors, -MOST, MOST) for x in paths])
    # Probabilities are averaged, not factors: an order that hardly fits must not decide.
    yes = np.einsum("o,o...->...", weight, expit(every))
    no = np.einsum("o,o...->...", weight, expit(-every))
    best = paths[0]
    factors = np.log(yes) - np.log(no)
    return Peeled(factors, best.readers, best.fit, best.value, best.error, best.order)
