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
from scipy.linalg import solve_triangular
from scipy.sparse.linalg import LinearOperator, cg

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.nullcone.lines import Lines, duals
from jigsaw_crl.nullcone.structure import Structure

__all__ = ["constrained_functionals", "orthogonal_rows"]

# In single precision.
Single = npt.NDArray[Any]

# The problem is mildly non-linear: a second round removes the second-order remainder.
ROUNDS = 2
MAX_STEPS = 200
# Root mean square of the products, in standard errors, at which the solver stops: a hundredth
# of the sampling error does not change a functional visibly.
RESIDUAL = 0.05
# Length of a unit row off the others from which it is rounding.
DEPENDENT = 1e-7


def constrained_functionals(
    W: FloatArray,
    lines: Lines,
    choice: IntArray,
    n: FloatArray,
    n_eff: float,
    owner: IntArray,
    structure: Structure,
    *,
    exact: bool = False,
) -> FloatArray:
    """Functionals on features, one per regime, shape (r, n_features).

    Parameters
    ----------
    W : array, shape (p, n_features)
    lines, choice, n, n_eff, owner
        As in a `Reading`.
    structure : Structure
        Over labels.
    exact : bool
        Exact moments have no error to condition on.
    """
    free = _vanishing(structure, owner, choice, lines)
    vectors, form = lines.n, lines.form
    for _ in range(0 if exact else ROUNDS):
        problem = _Problem(vectors, lines.rank, form, n, n_eff, free)
        vectors, step = problem.corrected()
        W = solve_triangular(step, W, lower=True, check_finite=False)
    rows = np.arange(len(choice))
    return np.asarray(vectors[rows, choice] @ W)


def _vanishing(structure: Structure, owner: IntArray, choice: IntArray, lines: Lines) -> BoolArray:
    """`[i, s, j, t]`: must line s of regime i be orthogonal to line t of regime j?"""
    r = len(owner)
    across = ~structure.same_district[np.ix_(owner, owner)]
    unrelated = across & ~structure.ancestor[np.ix_(owner, owner)]  # i is no ancestor of j
    must = np.zeros((r, 2, r, 2), dtype=bool)
    i, j = np.arange(r)[:, None], np.arange(r)[None, :]
    q_i, q_j = choice[:, None], choice[None, :]
    must[i, q_i, j, q_j] = across
    two = lines.rank == 2
    must[i, q_i, j, 1 - q_j] |= unrelated & two[None, :]
    must[i, 1 - q_i, j, q_j] |= unrelated.T & two[:, None]
    seen = lines.rank > 0
    must &= seen[:, None, None, None] & seen[None, None, :, None]
    return must


class _Problem:
    """One linearised conditioning; arrays of lines have shape (r, 2, p).

    With `F = form · n` (so that `D = nᵀ F`), `h = ½` for rank 2 and 1 for rank 1, the error of a
    line is `δn = e − h ⟨m, e⟩ F` with `e = m (N − H)`, for either rank. Rank 1: it is fixed up to a
    multiple of n itself, which no orthogonality sees; the error of D along n shows in its length.
    """

    def __init__(
        self,
        vectors: FloatArray,
        rank: IntArray,
        form: FloatArray,
        n: FloatArray,
        n_eff: float,
        must: BoolArray,
    ) -> None:
        r, _, p = vectors.shape
        self.exact = vectors
        self.must = must.reshape(2 * r, 2 * r)
        # The correction is needed to a few digits only, and single precision is twice as fast.
        self.vectors: Single = vectors.astype(np.float32)
        self.n, self.n_eff = n.astype(np.float32)[:, None, None], np.float32(n_eff)
        self.F: Single = form.astype(np.float32) @ self.vectors
        self.h = np.where(rank == 2, np.float32(0.5), np.float32(1.0))[:, None, None]
        self.m = self._duals(rank, (form[:, 0, 0] / 2).astype(np.float32))
        self.Mm: Single = self.m + (self.m @ _turned(self.vectors)) @ self.F
        self.mMm = self.m @ _turned(self.Mm)
        self.m_and_n = np.concatenate([self.m, self.vectors]).reshape(4 * r, p)

    def corrected(self) -> tuple[FloatArray, FloatArray]:
        """Corrected lines in re-whitened coordinates, and the Cholesky factor of their control."""
        r, _, p = self.vectors.shape
        d, H = self._errors(self._multipliers())
        step = _cholesky(np.eye(p) - H)
        away = (self.exact - d).reshape(2 * r, p).T
        corrected = solve_triangular(step, away, lower=True, check_finite=False)
        return np.asarray(corrected.T.reshape(r, 2, p), dtype=np.float64), step

    def _duals(self, rank: IntArray, sign: Single) -> Single:
        """`m^s` in the plane with ⟨m^s, n^s⟩ = 0, ⟨m^s, n^{1−s}⟩ = 1 (rank 1: σ n/(2‖n‖²))."""
        m = np.zeros_like(self.vectors)
        two = rank == 2
        m[two] = duals(self.exact[two])
        one = rank == 1
        v = self.vectors[one, 0]
        m[one, 0] = sign[one, None] * v / (2 * np.einsum("rp,rp->r", v, v))[:, None]
        return m

    def _multipliers(self) -> Single:
        """y with `𝓛 Cov 𝓛ᵀ y = T`, shape (2r, 2r), in units of the products' standard errors."""
        flat = self.vectors.reshape(len(self.must), -1)
        root = np.where(self.must, 1 / np.sqrt(self._variance()), np.float32(0))

        def image(y: Single) -> Single:
            d, H = self._errors(root * y.reshape(root.shape))
            moved = flat @ (d.reshape(flat.shape) - flat @ H / 2).T
            return np.asarray((root * (moved + moved.T)).ravel())

        products = (root * (flat @ flat.T)).ravel()
        system = LinearOperator((len(products),) * 2, matvec=image, dtype=np.float32)
        enough = RESIDUAL * np.sqrt(np.count_nonzero(self.must))
        y, _ = cg(system, products, rtol=0.0, atol=enough, maxiter=MAX_STEPS)
        return np.asarray(root * y.reshape(root.shape))

    def _errors(self, y: Single) -> tuple[Single, Single]:
        """Errors of the lines, shape (r, 2, p), and of the whitening, for multipliers y.

        `N = (2/n) M sym(Σ v mᵀ) M` for each regime, with `v = w − h ⟨F, w⟩ m`, `w = Σ y n` and
        `M = I + nᵀF`; `H = −(2/n_eff) sym(Σ m vᵀ + ½ Σ n wᵀ)`.
        """
        shape = self.vectors.shape
        w = (y @ self.vectors.reshape(len(y), -1)).reshape(shape)
        v = w - self.h * _dot(self.F, w) * self.m
        A = self.m_and_n.T @ np.concatenate([v, w / 2]).reshape(self.m_and_n.shape)
        H = (A + A.T) / -self.n_eff
        d = self.mMm @ (v + (v @ _turned(self.vectors)) @ self.F)
        d = (d + (self.Mm @ _turned(v)) @ self.Mm) / self.n - self.m @ H
        return d - self.h * _dot(self.m, d) * self.F, H

    def _variance(self) -> Single:
        """The diagonal of the operator, nearly: the sampling variance of each product."""
        size = np.einsum("rsp,rsp->rs", self.vectors, self.vectors).ravel()
        own = np.maximum(np.einsum("rsp,rsp->rs", self.m, self.Mm), 0) / self.n[:, 0]
        own += np.einsum("rsp,rsp->rs", self.m, self.m) / self.n_eff
        half = size[:, None] * own.ravel()
        return np.where(self.must, half + half.T, np.float32(1))


def _turned(x: Single) -> Single:
    return np.swapaxes(x, 1, 2)


def _dot(x: Single, y: Single) -> Single:
    return np.asarray((x * y).sum(axis=-1, keepdims=True))


def _cholesky(matrix: FloatArray) -> FloatArray:
    """Cholesky factor; a correction too large to be one is shrunk until it is."""
    identity = np.eye(len(matrix))
    # No eigenvalue is further from 1 than this.
    if np.linalg.norm(matrix - identity) < 0.9:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    for share in (1.0, 0.5, 0.25, 0.0):
        candidate = identity + share * (matrix - identity)
        if np.linalg.eigvalsh(candidate)[0] > 0.1:
            return np.asarray(np.linalg.cholesky(candidate), dtype=np.float64)
    return identity


def orthogonal_rows(functionals: FloatArray, structure: Structure) -> FloatArray:
    """Rows of Q̂: each functional minus its projection on its ancestor blocks' rows.

    The span of the ancestors' rows is the span of their functionals, whatever their own order.

    Parameters
    ----------
    functionals : array, shape (p_labels, n_features)
        One per label.
    """
    above = structure.strict_block_ancestors()
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
