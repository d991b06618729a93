"""The control covariance that all regimes support.

Every regime j agrees with the control covariance `C₀` except on the plane ⟨q_j, c_j⟩ that its
intervention moves. So every regime says something about `C₀`. In the coordinates of a `White`, with
`P_j` the projector off the directions detected in `M_j − I`, the correction `H` (symmetric) solves

    n₀ (M₀ − I − H) + Σ_j n_j P_j (M_j − I − H) P_j = 0 ,

by conjugate gradients, and the coordinates become `(I + H)^(−½) x`. Exact moments are left as they
are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.client.white import White
from jigsaw_crl.moments.regime import inverse_square_root
from jigsaw_crl.nullcone.judge import Judged, judge

__all__ = ["pool"]


# Pooling converges linearly with a small factor: H falls by √(p/n) a round.
MAX_ROUNDS = 4
# A correction below this share of its own sampling error no longer matters.
NEGLIGIBLE = 0.05
# Relative residual of the correction: what is left of it is the next round's.
RESIDUAL = 1e-3
# Smallest eigenvalue of a correction H: it keeps I + H positive definite when the first estimate is
# far off.
SMALLEST_STEP = -0.7


def pool(white: White) -> tuple[White, Judged]:
    """Whiten all regimes by the control covariance that all of them support, and judge them."""
    judged = judge(white)
    p = white.dimension
    M0 = identity = np.eye(p)
    for _ in range(0 if white.exact else MAX_ROUNDS):
        # A regime with several targets differs from C₀ in more directions than are projected off.
        n = np.where(judged.several, 0.0, white.n)
        D = np.tensordot(n, white.M, axes=1) - n.sum() * identity
        ends = np.stack([white.eigen.high, white.eigen.low], axis=1)
        moved = np.stack([judged.high, judged.low], axis=1) > 1
        H = _solve_correction(M0, D, white.M, white.n_control, n, ends * moved[:, :, None])
        if float(np.linalg.norm(H)) / p < NEGLIGIBLE / np.sqrt(white.n_eff):
            break
        # No eigenvalue is as low as minus the norm.
        if float(np.linalg.norm(H)) > -SMALLEST_STEP:
            low = float(np.linalg.eigvalsh(H)[0])
            H *= min(SMALLEST_STEP / min(low, SMALLEST_STEP), 1.0)
        step = inverse_square_root(identity + H)
        M0 = step @ M0 @ step
        # A regime counts half for C₀, because it says nothing about its plane.
        white = replace(white.moved(step), n_eff=white.n_control + 0.5 * float(n.sum()))
        judged = judge(white)
    return white, judged


def _solve_correction(
    M0: FloatArray, D: FloatArray, M: FloatArray, n0: float, n: FloatArray, directions: FloatArray
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

    moved = (directions @ M).reshape(2 * r, p) - V
    right = n0 * (M0 - np.eye(p)) + off_planes(moved, D)
    size = float(n.sum())

    def image(H: FloatArray) -> FloatArray:
        H = H.reshape(p, p)
        return (n0 * H + off_planes(V @ H, size * H)).ravel()

    system = LinearOperator((p * p, p * p), matvec=image, dtype=np.float64)
    H = cg(system, right.ravel(), rtol=RESIDUAL, maxiter=2 * p + 10)[0].reshape(p, p)
    return np.asarray((H + H.T) / 2)
