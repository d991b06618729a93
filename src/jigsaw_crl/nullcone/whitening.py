"""What does the client look like when nobody intervenes? The pooled control covariance.

Every regime j agrees with the control covariance `C₀` except on the plane ⟨q_j, c_j⟩ that its
intervention moves. So every regime says something about `C₀`. In coordinates whitened by a current
`L Lᵀ ≈ C₀`, with `M_j = L⁻¹ S_j L⁻ᵀ` and `P_j` the projector off the directions detected in
`M_j − I`, the correction `H` (symmetric) solves

    n₀ (M₀ − I − H) + Σ_j n_j P_j (M_j − I − H) P_j = 0 ,

by conjugate gradients, and `L ← L · chol(I + H)`. Population moments enter as samples of a size
that stands for machine precision (`rounding_size`), so that one path serves both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from jigsaw_crl.client import Client
from jigsaw_crl.nullcone.spikes import detect
from jigsaw_crl.spectrum import reduce_to_rank

__all__ = ["Reduced", "Whitened", "pool", "reduce", "rounding_size"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

# Pooling converges linearly with a small factor: H falls by √(p/n) a round.
MAX_ROUNDS = 4
# H below this share of its own sampling error no longer matters.
NEGLIGIBLE = 0.02
# Keeps I + H positive definite when a wild first estimate asks for too much.
SMALLEST_STEP = -0.7


@dataclass(frozen=True, eq=False)
class Reduced:
    """Second moments in the p-dimensional column space that all regimes share.

    Parameters
    ----------
    basis : array, shape (n_features, p)
        Orthonormal; feature space = basis · reduced space.
    control : array, shape (p, p)
    regimes : array, shape (r, p, p)
        One per regime (a label has several when it was applied at several strengths).
    owner : array of int, shape (r,)
        Index of the label of each regime.
    n_control : float
    n : array, shape (r,)
        Sample sizes; `rounding_size` for exact moments.
    exact : bool
    noise : float
        Variance of the sensors' noise that was taken off; the rows still carried it, so sampling
        errors are those of the moments with it.
    """

    basis: FloatArray
    control: FloatArray
    regimes: FloatArray
    owner: IntArray
    n_control: float
    n: FloatArray
    exact: bool
    noise: float = 0.0


@dataclass(frozen=True, eq=False)
class Whitened:
    """Regimes in coordinates where the control covariance is the identity.

    Parameters
    ----------
    L : array, shape (p, p)
        `L Lᵀ` is the pooled control covariance in reduced space.
    M : array, shape (r, p, p)
        `L⁻¹ S_j L⁻ᵀ`.
    n : array, shape (r,)
    n_eff : float
        Sample size behind `L`: its relative error `H` has entries of variance 1/n_eff.
    noise : array, shape (p, p), or None
        Covariance of the sensors' noise in these coordinates; None without any.
    """

    L: FloatArray
    M: FloatArray
    n: FloatArray
    n_eff: float
    noise: FloatArray | None = None


def rounding_size(condition: float, p: int) -> float:
    """The sample size whose noise stands for rounding: `1/(p · eps · condition)²`.

    Second moments given to machine precision, whitened by a matrix of condition number κ, carry
    relative errors of about eps·κ; an estimate from n rows carries 1/√n.
    """
    eps = float(np.finfo(np.float64).eps)
    return 1.0 / (p * eps * max(condition, 1.0)) ** 2


def reduce(client: Client) -> Reduced:
    """Restrict a client's moments to the space of its latents, without the sensors' noise floor."""
    space = reduce_to_rank(client)
    small = space.project(client.control_second_moment())
    owned = [(i, m) for i, label in enumerate(client.labels) for m in client.second_moments(label)]
    regimes = np.stack([space.project(m) for _, m in owned])
    owner = np.array([i for i, _ in owned], dtype=np.intp)
    sizes = [m.n for label in client.labels for m in client.interventions[label]]
    p = space.rank
    n_control = client.control.n
    if n_control is None:
        values = np.linalg.eigvalsh(small)
        size = rounding_size(float(values[-1] / values[0]), p)
        n, n0 = np.full(len(regimes), size), size
    else:
        n, n0 = np.array(sizes, dtype=np.float64), float(n_control)
    exact = n_control is None
    return Reduced(space.basis, small, regimes, owner, n0, n, exact, space.subtracted)


def pool(reduced: Reduced) -> Whitened:
    """Whiten all regimes by the control covariance that all of them support."""
    L: FloatArray = np.asarray(np.linalg.cholesky(reduced.control), dtype=np.float64)
    M = _congruence(L, reduced.regimes)
    M0 = np.eye(len(L))
    p = len(L)
    n_eff = reduced.n_control
    rounds = 0 if reduced.exact else MAX_ROUNDS
    for _ in range(rounds):
        spikes = detect(M, reduced.n, n_eff, _whitened_noise(L, reduced.noise))
        # A regime with several targets differs from C₀ in more directions than we project off.
        n = np.where(spikes.several, 0.0, reduced.n)
        H = _solve_correction(M0, M, reduced.n_control, n, spikes.directions)
        low = float(np.linalg.eigvalsh(H)[0])
        if low < SMALLEST_STEP:
            H *= SMALLEST_STEP / low
        step = np.linalg.cholesky(np.eye(p) + H)
        L = np.asarray(L @ step, dtype=np.float64)
        M0 = _congruence(L, reduced.control)
        M = _congruence(L, reduced.regimes)
        n_eff = effective_size(reduced.n_control, n)
        if float(np.abs(H).max()) < NEGLIGIBLE / np.sqrt(n_eff):
            break
    return Whitened(L, M, reduced.n, n_eff, _whitened_noise(L, reduced.noise))


def _whitened_noise(L: FloatArray, variance: float) -> FloatArray | None:
    """`L⁻¹ σ² L⁻ᵀ`."""
    return variance * _congruence(L, np.eye(len(L))) if variance > 0 else None


def effective_size(n_control: float, n: FloatArray) -> float:
    """Size of the pool behind C₀: a regime counts half, since it is silent about its own plane."""
    return float(n_control + 0.5 * n.sum())


def _congruence(L: FloatArray, S: FloatArray) -> FloatArray:
    """`L⁻¹ S L⁻ᵀ`, batched over leading axes, exactly symmetric."""
    inverse = solve_triangular(L, np.eye(len(L)), lower=True)
    out = inverse @ S @ inverse.T
    return np.asarray((out + np.swapaxes(out, -1, -2)) / 2, dtype=np.float64)


def _solve_correction(
    M0: FloatArray, M: FloatArray, n0: float, n: FloatArray, directions: FloatArray
) -> FloatArray:
    """Conjugate gradients on symmetric matrices for the equation in the module's docstring.

    `directions` has shape (r, p, 2), orthonormal columns or zeros: `P_j = I − V_j V_jᵀ`.
    """
    p = len(M0)
    V = directions
    flat = np.swapaxes(V, 0, 1).reshape(p, -1)  # (p, 2r)
    B = (flat * np.repeat(n, V.shape[2])) @ flat.T

    def off_planes(X: FloatArray) -> FloatArray:
        """`Σ_j n_j P_j X P_j` for one X common to all regimes."""
        inner = np.swapaxes(V, 1, 2) @ (X @ V)  # (r, 2, 2)
        back = (V @ (inner * n[:, None, None])) @ np.swapaxes(V, 1, 2)
        return np.asarray(float(n.sum()) * X - B @ X - X @ B + back.sum(axis=0))

    D = M - np.eye(p)
    projected = D - V @ (np.swapaxes(V, 1, 2) @ D)
    projected = projected - (projected @ V) @ np.swapaxes(V, 1, 2)
    right = n0 * (M0 - np.eye(p)) + np.einsum("r,rij->ij", n, projected)
    H = np.zeros((p, p))
    residual = right.copy()
    direction = residual.copy()
    square = float(np.vdot(residual, residual))
    stop = 1e-12 * square
    for _ in range(2 * p + 10):
        if square <= stop:
            break
        image = n0 * direction + off_planes(direction)
        alpha = square / float(np.vdot(direction, image))
        H += alpha * direction
        residual -= alpha * image
        new = float(np.vdot(residual, residual))
        direction = residual + (new / square) * direction
        square = new
    return (H + H.T) / 2
