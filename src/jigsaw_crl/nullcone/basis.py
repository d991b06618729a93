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

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.nullcone.reading import Reading
from jigsaw_crl.nullcone.readings import ZERO
from jigsaw_crl.nullcone.structure import Structure

__all__ = ["constrained_functionals", "duals", "orthogonal_rows"]

# In single precision.
Single = npt.NDArray[Any]

# The problem is mildly non-linear: a second round removes the second-order remainder.
ROUNDS = 2
MAX_STEPS = 200
# Root mean square of the products, in standard errors, at which the solver stops: a hundredth
# of the sampling error does not change a functional visibly.
RESIDUAL = 0.05
# A correction that would take a variance below this share of it is too large to be one.
LEAST = 0.1
# Length of a unit row off the others from which it is rounding.
DEPENDENT = 1e-7


def constrained_functionals(reading: Reading, structure: Structure) -> FloatArray:
    """Functionals on features, one per regime, shape (r, n_features).

    Exact moments have no error to condition on.
    """
    targets, choice = reading.targets, reading.choice.reading
    white, rows = targets.white, np.arange(len(choice))
    if white.exact:
        return np.asarray(targets.u[rows, choice] @ white.W)
    vectors, rank, sign = _lines(reading)
    must = _vanishing(structure, white.owner, rank)
    W = white.W
    for _ in range(ROUNDS):
        problem = _Problem(vectors, rank, sign, white.n, white.n_eff, must)
        vectors, step = problem.corrected()
        W = step @ W
    return np.asarray(vectors[:, 0] @ W)


def _lines(reading: Reading) -> tuple[FloatArray, IntArray, FloatArray]:
    """The chosen readings as lines, shape (r, 2, p), with their ranks and signs.

    Where c is seen and fixes the line at least as well as the mean does, q and c of T1, with
    `D = q cᵀ + c qᵀ`. Otherwise one line with `D = 2σ n nᵀ`, with the eigenvalue `√(α/w_D)` that
    would fix it as well.
    """
    t, choice = reading.targets, reading.choice.reading
    at = np.arange(len(choice)), choice
    u, c, lam, alpha = t.u[at], t.c[at], t.lam[at], t.precision[at]
    by_c = 2.0 * t.w_cov * t.signal[at] > alpha
    two = t.usable & (choice != ZERO) & by_c & (t.odds > 0)
    full = c + 0.5 * lam[:, None] * u
    scale = np.where(two, np.linalg.norm(full, axis=1), np.sqrt(alpha / t.w_cov) / 2)
    scale = np.sqrt(np.where(scale > 0, scale, 1.0))[:, None]
    lines = np.stack([u * scale, np.where(two[:, None], full / scale, 0.0)], axis=1)
    lines[~t.usable] = 0.0
    sign = np.where(two | ~t.usable, 0.0, np.where(lam < 0, -1.0, 1.0))
    return lines, np.where(two, 2, t.usable * 1), sign


def duals(lines: FloatArray) -> FloatArray:
    """`m^s` in each plane with ⟨m^s, n^s⟩ = 0 and ⟨m^s, n^{1−s}⟩ = 1, for lines of shape (r, 2, p).

    By Cramer's rule: many systems of two equations in a few array operations.
    """
    a, b = lines[:, 0], lines[:, 1]
    aa, ab, bb = (np.einsum("rp,rp->r", x, y)[:, None] for x, y in ((a, a), (a, b), (b, b)))
    off = np.stack([aa * b - ab * a, bb * a - ab * b], axis=1)
    return np.asarray(off / (aa * bb - ab**2)[:, None])


def _vanishing(structure: Structure, owner: IntArray, rank: IntArray) -> BoolArray:
    """`[i, s, j, t]`: must line s of regime i be orthogonal to line t of j? Line 0 is q, 1 is c."""
    across = ~structure.same_district[np.ix_(owner, owner)]
    unrelated = across & ~structure.ancestor[np.ix_(owner, owner)]  # i is no ancestor of j
    must = np.zeros((len(owner), 2, len(owner), 2), dtype=bool)
    must[:, 0, :, 0] = across
    must[:, 0, :, 1] = unrelated & (rank == 2)
    must[:, 1, :, 0] = must[:, 0, :, 1].T
    seen = rank > 0
    return np.asarray(must & seen[:, None, None, None] & seen[:, None])


class _Problem:
    """One linearised conditioning; arrays of lines have shape (r, 2, p).

    With `D = nᵀ F`, `h = ½` for rank 2 and 1 for rank 1, the error of a
    line is `δn = e − h ⟨m, e⟩ F` with `e = m (N − H)`, for either rank. Rank 1: it is fixed up to a
    multiple of n itself, which no orthogonality sees; the error of D along n shows in its length.
    """

    def __init__(
        self,
        vectors: FloatArray,
        rank: IntArray,
        sign: FloatArray,
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
        # `D = nᵀ F`.
        swapped = np.where((rank == 2)[:, None, None], self.vectors[:, ::-1], 0)
        self.F: Single = (swapped + 2 * sign[:, None, None] * self.vectors).astype(np.float32)
        self.h = np.where(rank == 2, np.float32(0.5), np.float32(1.0))[:, None, None]
        self.m = self._duals(rank, sign.astype(np.float32))
        self.Mm: Single = self.m + (self.m @ self.vectors.mT) @ self.F
        self.mMm = self.m @ self.Mm.mT
        self.m_and_n = np.concatenate([self.m, self.vectors]).reshape(4 * r, p)

    def corrected(self) -> tuple[FloatArray, FloatArray]:
        """Corrected lines in re-whitened coordinates, and the step to these."""
        d, H = self._errors(self._multipliers())
        values, vectors = np.linalg.eigh(np.eye(len(H)) - H)
        step = (vectors / np.sqrt(np.maximum(values, LEAST))) @ vectors.T
        return np.asarray((self.exact - d) @ step, dtype=np.float64), step

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
        d = self.mMm @ (v + (v @ self.vectors.mT) @ self.F)
        d = (d + (self.Mm @ v.mT) @ self.Mm) / self.n - self.m @ H
        return d - self.h * _dot(self.m, d) * self.F, H

    def _variance(self) -> Single:
        """The diagonal of the operator, nearly: the sampling variance of each product."""
        size = np.einsum("rsp,rsp->rs", self.vectors, self.vectors).ravel()
        own = np.maximum(np.einsum("rsp,rsp->rs", self.m, self.Mm), 0) / self.n[:, 0]
        own += np.einsum("rsp,rsp->rs", self.m, self.m) / self.n_eff
        half = size[:, None] * own.ravel()
        return np.where(self.must, half + half.T, np.float32(1))


def _dot(x: Single, y: Single) -> Single:
    return np.asarray((x * y).sum(axis=-1, keepdims=True))


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
