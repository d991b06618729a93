"""The control covariance that all regimes support, and coordinates whitened by it.

Every regime j agrees with the control covariance `C₀` except on the plane ⟨q_j, c_j⟩ that its
intervention moves. So every regime says something about `C₀`. In coordinates whitened by a current
`L Lᵀ ≈ C₀`, with `M_j = L⁻¹ S_j L⁻ᵀ` and `P_j` the projector off the directions detected in
`M_j − I`, the correction `H` (symmetric) solves

    n₀ (M₀ − I − H) + Σ_j n_j P_j (M_j − I − H) P_j = 0 ,

by conjugate gradients, and `L ← L · chol(I + H)`. Population moments enter as samples of a size
that stands for machine precision (`rounding_size`), so that one path serves both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.client.batches import Means, batch_means
from jigsaw_crl.client.client import Client
from jigsaw_crl.client.extremes import Extremes, Form, Regimes
from jigsaw_crl.client.spectrum import Spectrum, reduce_to_rank
from jigsaw_crl.moments.regime import solve_lower
from jigsaw_crl.nullcone.spikes import Spikes, find

__all__ = ["Reduced", "Start", "Whitened", "pool", "reduce", "rounding_size"]


# Pooling converges linearly with a small factor: H falls by √(p/n) a round.
MAX_ROUNDS = 4
# A correction below this share of its own sampling error no longer matters.
NEGLIGIBLE = 0.05
# Relative residual of the correction: what is left of it is the next round's.
RESIDUAL = 1e-3
# Smallest eigenvalue of a correction H: it keeps I + H positive definite when the first estimate is
# far off.
SMALLEST_STEP = -0.7
# Rounding in few dimensions is that of so many: every step of the computation rounds. Of 87,000
# products of lines that vanish, of 3,000 exact clients with 2 to 14 latents, the largest had an
# error of 0.08 eps·κ in units of its bound. It is a quarter of what passes for zero
# (`district_lines.SURE`); with p itself, in 2 dimensions, it was more.
FEWEST = 30


@dataclass(frozen=True, eq=False)
class Start:
    """What the checks of a client already know, so that it is not computed again.

    Parameters
    ----------
    space : Spectrum
    extremes : Extremes
        Outermost eigenpairs of the regimes whitened by the control alone, noise included.
    means : Means
    """

    space: Spectrum
    extremes: Extremes
    means: Means


@dataclass(frozen=True, eq=False)
class Reduced:
    """Second moments in the p-dimensional column space that all regimes share.

    Parameters
    ----------
    basis : array, shape (n_features, p)
        Takes features to the reduced space: see `Spectrum`.
    control : array, shape (p, p)
    regimes : Regimes
        In feature space, one per regime (a label has several when it was applied at several
        strengths); they are large and not copied.
    owner : array of int, shape (r,)
        Index of the label of each regime.
    n_control : float
    n : array, shape (r,)
        Sample sizes; `rounding_size` for exact moments.
    exact : bool
    noise : float or array, shape (n_features,)
        Variance of the sensors' noise that was taken off; the rows still carried it, so sampling
        errors are those of the moments with it.
    means : Means or None
        Means of the regimes without the offsets of their batches; the regimes are then about their
        own means. None for exact moments, which are about the control's mean: a shift acts as a
        change of variance.
    """

    basis: FloatArray
    control: FloatArray
    regimes: Regimes
    owner: IntArray
    n_control: float
    n: FloatArray
    exact: bool
    noise: float | FloatArray = 0.0
    means: Means | None = None

    def counting(self, factor: float) -> Reduced:
        """The same with the errors of so many times fewer rows, and without shifts of the means."""
        assert self.means is not None
        still = np.broadcast_to(self.means.control, self.means.regimes.shape)
        unmoved = replace(self.means, regimes=still)
        rows = self.n_control / factor, self.n / factor
        return replace(self, n_control=rows[0], n=rows[1], means=unmoved)


@dataclass(frozen=True, eq=False)
class Whitened:
    """Regimes in coordinates where the control covariance is the identity.

    Parameters
    ----------
    L : array, shape (p, p)
        `L Lᵀ` is the pooled control covariance in reduced space.
    form : Form
        `M_j = L⁻¹ S_j L⁻ᵀ` for every regime.
    spikes : Spikes
        Its extreme eigenpairs.
    n : array, shape (r,)
    n_eff : float
        Sample size behind `L`: its relative error `H` has entries of variance 1/n_eff.
    noise : array, shape (p, p), or None
        Covariance of the sensors' noise in these coordinates; None without any.
    """

    L: FloatArray
    form: Form
    spikes: Spikes
    n: FloatArray
    n_eff: float
    noise: FloatArray | None = None

    @property
    def M(self) -> FloatArray:
        """All `M_j`, shape (r, p, p)."""
        return self.form.dense


def rounding_size(condition: float, p: int) -> float:
    """The sample size whose noise stands for rounding: `1/(p · eps · condition)²`, p at least 30.

    Second moments given to machine precision, whitened by a matrix of condition number κ, carry
    relative errors of about eps·κ; an estimate from n rows carries 1/√n.
    """
    eps = float(np.finfo(np.float64).eps)
    return 1.0 / (max(p, FEWEST) * eps * max(condition, 1.0)) ** 2


def reduce(client: Client, start: Start | None = None) -> Reduced:
    """Restrict a client's moments to the space of its latents, without the sensors' noise floor.

    `start` has the leading space and the means, precomputed; computed if None.
    """
    space = reduce_to_rank(client) if start is None else start.space
    small = space.project(client.control_second_moment())
    owner = np.repeat(
        np.arange(len(client.labels)), [len(client.interventions[x]) for x in client.labels]
    )
    sizes = [m.n for label in client.labels for m in client.interventions[label]]
    p = space.rank
    n_control = client.control.n
    if n_control is None:
        values = np.linalg.eigvalsh(small)
        size = rounding_size(float(values[-1] / values[0]), p)
        n, n0 = np.full(len(owner), size), size
    else:
        n, n0 = np.array(sizes, dtype=np.float64), float(n_control)
    exact = n_control is None
    regimes = Regimes.of(client)
    given = (owner, n0, n, exact, space.sensors)
    if exact:
        return Reduced(space.basis, small, regimes, *given)
    means = batch_means(client, space) if start is None else start.means
    return Reduced(space.basis, small, regimes.about_own_means(), *given, means)


def pool(reduced: Reduced, start: Extremes | None = None) -> Whitened:
    """Whiten all regimes by the control covariance that all of them support.

    `start` are the outermost eigenpairs of the regimes whitened by the control alone, noise
    included, precomputed; computed if None.
    """
    L: FloatArray = np.asarray(np.linalg.cholesky(reduced.control), dtype=np.float64)
    p = len(L)
    M0 = identity = np.eye(p)
    n, n_eff = reduced.n, reduced.n_control
    total = reduced.regimes.weighted(n)
    form = _whitening(L, reduced)
    known = None if np.any(reduced.noise) else start
    before = None if start is None else start.vectors
    spikes, pairs = find(form, reduced.n, n_eff, before, ratio=not reduced.exact, known=known)
    for _ in range(0 if reduced.exact else MAX_ROUNDS):
        # A regime with several targets differs from C₀ in more directions than are projected off.
        silent = np.where(spikes.several, reduced.n, 0.0)
        n = reduced.n - silent
        pooled = total - reduced.regimes.weighted(silent) if silent.any() else total
        size = float(n.sum())
        D = form.project(pooled, size) - size * identity
        H = _solve_correction(M0, D, form, reduced.n_control, n, spikes.directions)
        if float(np.linalg.norm(H)) / p < NEGLIGIBLE / np.sqrt(n_eff):
            break
        # No eigenvalue is as low as minus the norm.
        if float(np.linalg.norm(H)) > -SMALLEST_STEP:
            low = float(np.linalg.eigvalsh(H)[0])
            H *= min(SMALLEST_STEP / min(low, SMALLEST_STEP), 1.0)
        step = np.linalg.cholesky(identity + H)
        L = np.asarray(L @ step, dtype=np.float64)
        form = _whitening(L, reduced)
        M0 = solve_lower(L, solve_lower(L, reduced.control).T)
        n_eff = effective_size(reduced.n_control, n)
        spikes, pairs = find(form, reduced.n, n_eff, pairs.vectors)
    return Whitened(L, form, spikes, reduced.n, n_eff, form.noise)


def _whitening(L: FloatArray, reduced: Reduced) -> Form:
    W = solve_lower(L, reduced.basis.T)
    return Form(reduced.regimes, np.ascontiguousarray(W), reduced.noise)


def effective_size(n_control: float, n: FloatArray) -> float:
    """Rows behind the pooled C₀: a regime counts half, because it says nothing about its plane."""
    return float(n_control + 0.5 * n.sum())


def _solve_correction(
    M0: FloatArray, D: FloatArray, form: Form, n0: float, n: FloatArray, directions: FloatArray
) -> FloatArray:
    """Conjugate gradients on symmetric matrices for the equation in the module's docstring.

    `D` is `Σ_j n_j (M_j − I)`. `directions` has shape (r, 2, p), orthonormal rows `V_j` or zeros:
    `P_j = I − V_jᵀ V_j`. Sums over regimes are products of the stacked rows `V`, shape (2r, p).
    """
    r, _, p = directions.shape
    V = directions.reshape(2 * r, p)
    weights = n[:, None, None]
    nV = (directions * weights).reshape(2 * r, p)

    def off_planes(VX: FloatArray, total: FloatArray) -> FloatArray:
        """`Σ_j n_j P_j X_j P_j` from `total = Σ_j n_j X_j` and the rows `V_j X_j`."""
        inner = VX.reshape(r, 2, p) @ np.swapaxes(directions, 1, 2)  # (r, 2, 2)
        half = VX - 0.5 * (inner @ directions).reshape(2 * r, p)
        out = nV.T @ half
        return np.asarray(total - out - out.T)

    moved = form(directions, np.arange(r)).reshape(2 * r, p) - V
    right = n0 * (M0 - np.eye(p)) + off_planes(moved, D)
    size = float(n.sum())

    def image(H: FloatArray) -> FloatArray:
        H = H.reshape(p, p)
        return (n0 * H + off_planes(V @ H, size * H)).ravel()

    system = LinearOperator((p * p, p * p), matvec=image, dtype=np.float64)
    H = cg(system, right.ravel(), rtol=RESIDUAL, maxiter=2 * p + 10)[0].reshape(p, p)
    return np.asarray((H + H.T) / 2)
