"""Rows of Q̂: the functional of the features that reads each latent.

In whitened coordinates the functional of target i is `q_i`, so on features it is `q_iᵀ W`. The
structure says which inner products ⟨q_i, q_j⟩ and ⟨q_i, c_j⟩ are exactly zero. Given the errors
(N_i of each regime, H of the whitening) are Gaussian, the lines are replaced by their conditional
mean given that those products vanish: with `δT = 𝓛(N, H)` the first-order error of the products,

    (N̂, Ĥ) = Cov·𝓛ᵀ (𝓛 Cov 𝓛ᵀ)⁻¹ T ,

solved by conjugate gradients; 𝓛 and its adjoint cost a few matrix products, not one entry per pair
of pairs. Row i of Q̂ is then q_i's functional minus its projection, in feature space, on the rows of
its ancestor blocks, scaled to unit length (block RQ of the paper).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator, cg

from jigsaw_crl.base.arrays import BoolArray, FloatArray
from jigsaw_crl.client.white import White
from jigsaw_crl.nullcone.judge import SMALLEST
from jigsaw_crl.nullcone.reading import Reading
from jigsaw_crl.nullcone.readings import ZERO
from jigsaw_crl.nullcone.structure import Structure

__all__ = ["constrained_functionals", "orthogonal_rows"]

# In single precision.
Single = npt.NDArray[Any]

# The problem is mildly non-linear: a second round removes the second-order remainder.
ROUNDS, MAX_STEPS = 2, 200
# Root mean square of the products, in standard errors, at which the solver stops: a hundredth
# of the sampling error does not change a functional visibly.
RESIDUAL = 0.05
# Length of a unit row off the others from which it is rounding.
DEPENDENT = 1e-7


def constrained_functionals(reading: Reading, structure: Structure) -> FloatArray:
    """Functionals on features, one per regime, shape (r, n_features).

    Exact moments have no error to condition on.
    """
    t, choice = reading.targets, reading.choice.reading
    white, at = t.white, (np.arange(len(choice)), choice)
    u, W = t.u[at], white.W
    if white.exact:
        return np.asarray(u @ W)
    # Where c is seen and fixes the line at least as well as the mean does, q and c of T1, with
    # `D = q cᵀ + c qᵀ`. Otherwise one line with `D = 2σ n nᵀ`, with the eigenvalue `√(α/w_D)` that
    # would fix it as well.
    lam, alpha = t.lam[at], t.precision[at]
    by_c = 2.0 * t.w_cov * t.signal[at] > alpha
    two = t.usable & (choice != ZERO) & by_c & (t.odds > 0)
    full = t.c[at] + 0.5 * lam[:, None] * u
    scale = np.where(two, np.linalg.norm(full, axis=1), np.sqrt(alpha / t.w_cov) / 2)
    scale = np.sqrt(np.where(scale > 0, scale, 1.0))[:, None]
    lines = np.stack([u * scale, np.where(two[:, None], full / scale, 0.0)], axis=1)
    lines[~t.usable] = 0.0
    sign = np.where(two | ~t.usable, 0.0, np.where(lam < 0, -1.0, 1.0))
    # `[i, s, j, t]`: must line s of regime i be orthogonal to line t of j? Line 0 is q, 1 is c.
    owner, labels = white.owner, np.ix_(white.owner, white.owner)
    across = ~structure.same_district[labels] & t.usable[:, None] & t.usable
    must = np.zeros((len(owner), 2, len(owner), 2), dtype=bool)
    must[:, 0, :, 0] = across
    must[:, 0, :, 1] = across & ~structure.ancestor[labels] & two
    must[:, 1, :, 0] = must[:, 0, :, 1].T
    for _ in range(ROUNDS):
        lines, step = _corrected(lines, two, sign, white, must.reshape((2 * len(owner),) * 2))
        W = step @ W
    return np.asarray(lines[:, 0] @ W)


def _corrected(
    lines: FloatArray, two: BoolArray, sign: FloatArray, white: White, must: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Lines after one linearised conditioning, in re-whitened coordinates, and the step to these.

    Arrays of lines have shape (r, 2, p). With `D = nᵀ F`, `h = ½` for two lines and 1 for one, the
    error of a line is `δn = e − h ⟨m, e⟩ F` with `e = m (N − H)`. The m are in the plane of the
    lines, with ⟨m^s, n^s⟩ = 0 and ⟨m^s, n^{1−s}⟩ = 1; for one line σ n/(2‖n‖²). One line is fixed
    up to a multiple of itself, which no orthogonality sees; the error of D along it shows in its
    length.
    """
    r, _, p = lines.shape
    # The correction is needed to a few digits only, and single precision is twice as fast.
    n, rows, n_eff = lines.astype(np.float32), white.n.astype(np.float32), np.float32(white.n_eff)
    each, flat = rows[:, None, None], n.reshape(2 * r, p)
    both, along = two[:, None, None], 2 * sign.astype(np.float32)[:, None, None]
    F: Single = np.where(both, n[:, ::-1], 0) + along * n
    h = np.where(both, np.float32(0.5), np.float32(1.0))
    # By Cramer's rule: many systems of two equations in a few array operations.
    gram = lines @ lines.mT
    aa, ab, bb = gram[:, :1, :1], gram[:, :1, 1:], gram[:, 1:, 1:]
    det = np.where(both, aa * bb - ab**2, 1.0)
    a, b = lines[:, :1], lines[:, 1:]
    off = np.concatenate([aa * b - ab * a, bb * a - ab * b], axis=1) / det
    one = along * lines / np.where(aa > 0, 4 * aa, 1.0)
    m: Single = np.where(both, off, one).astype(np.float32)
    Mm: Single = m + (m @ n.mT) @ F
    mMm, m_and_n = m @ Mm.mT, np.concatenate([m, n]).reshape(4 * r, p)

    def errors(y: Single) -> tuple[Single, Single]:
        """Errors of the lines and of the whitening, for multipliers y.

        `N = (2/n) M sym(Σ v mᵀ) M` for each regime, with `v = w − h ⟨F, w⟩ m`, `w = Σ y n` and
        `M = I + nᵀF`; `H = −(2/n_eff) sym(Σ m vᵀ + ½ Σ n wᵀ)`.
        """
        w = (y @ flat).reshape(n.shape)
        v = w - h * (F * w).sum(axis=-1, keepdims=True) * m
        A = m_and_n.T @ np.concatenate([v, w / 2]).reshape(m_and_n.shape)
        H = (A + A.T) / -n_eff
        d = mMm @ (v + (v @ n.mT) @ F)
        d = (d + (Mm @ v.mT) @ Mm) / each - m @ H
        return d - h * (m * d).sum(axis=-1, keepdims=True) * F, H

    # The diagonal of the operator, nearly: the sampling variance of each product.
    own = np.maximum(np.einsum("rsp,rsp->rs", m, Mm), 0) / each[:, 0]
    own += np.einsum("rsp,rsp->rs", m, m) / n_eff
    half = np.einsum("rsp,rsp->rs", n, n).reshape(-1, 1) * own.ravel()
    root = np.where(must, 1 / np.sqrt(np.where(must, half + half.T, 1)), np.float32(0))

    def image(y: Single) -> Single:
        d, H = errors(root * y.reshape(root.shape))
        moved = flat @ (d.reshape(flat.shape) - flat @ H / 2).T
        return np.asarray((root * (moved + moved.T)).ravel())

    products = (root * (flat @ flat.T)).ravel()
    system = LinearOperator((len(products),) * 2, matvec=image, dtype=np.float32)
    enough = RESIDUAL * np.sqrt(np.count_nonzero(must))
    # Products far beyond their errors may make it diverge: what should vanish then does not.
    with np.errstate(over="ignore", invalid="ignore"):
        y, unsolved = cg(system, products, rtol=0.0, atol=enough, maxiter=MAX_STEPS)
    if unsolved:
        return lines, np.eye(p)
    d, H = errors(root * y.reshape(root.shape))
    values, vectors = np.linalg.eigh(np.eye(p) - H)
    step = (vectors / np.sqrt(np.maximum(values, SMALLEST))) @ vectors.T
    return np.asarray((lines - d) @ step, dtype=np.float64), step


def orthogonal_rows(functionals: FloatArray, structure: Structure) -> FloatArray:
    """Rows of Q̂: each functional minus its projection on its ancestor blocks' rows.

    The span of the ancestors' rows is the span of their functionals, whatever their own order.

    Parameters
    ----------
    functionals : array, shape (p_labels, n_features)
        One per label.
    """
    above = structure.reach & ~structure.reach.T
    scale = np.linalg.norm(functionals, axis=1, keepdims=True)
    unit = functionals / np.where(scale > 0, scale, 1.0)
    rows = unit.copy()
    for block in structure.blocks:
        Q, R = np.linalg.qr(unit[above[:, block[0]]].T)
        # A row that depends on those before it adds no direction.
        Q = Q[:, np.abs(np.diagonal(R)) > DEPENDENT]
        for _ in range(2):  # the second pass removes what rounding left
            rows[block] -= (rows[block] @ Q) @ Q.T
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norm > 0, norm, 1.0))
