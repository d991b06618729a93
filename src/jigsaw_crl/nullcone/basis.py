"""Rows of Q̂: the functional of the features that reads each latent.

In whitened coordinates the functional of target i is `q_i`, so on features it is `q_iᵀ L⁻¹`. The
structure says which inner products ⟨q_i, q_j⟩ and ⟨q_i, c_j⟩ are exactly zero. Given the errors
(N_i of each regime, H of the whitening) are Gaussian, the lines are replaced by their conditional
mean given that those products vanish: with `δT = 𝓛(N, H)` the first-order error of the products,

    (N̂, Ĥ) = Cov·𝓛ᵀ (𝓛 Cov 𝓛ᵀ)⁻¹ T ,

solved by conjugate gradients; 𝓛 and its adjoint cost three matrix products, not one entry per pair
of pairs. Row i of Q̂ is then q_i's functional minus its projection, in feature space, on the rows of
its ancestor blocks, scaled to unit length (block RQ of the paper).

Compiled functions are imported where they are used, for start-up time.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.moments.regime import solve_lower
from jigsaw_crl.nullcone import basis_arrays
from jigsaw_crl.nullcone.lines import Lines, duals
from jigsaw_crl.nullcone.structure import Structure

__all__ = ["constrained_functionals", "orthogonal_rows"]

Single = npt.NDArray[np.float32]

# The problem is mildly non-linear: a second round removes the second-order remainder.
ROUNDS = 2
MAX_STEPS = 200
# Root mean square of the products, in standard errors, at which the solver stops: a hundredth
# of the sampling error does not change a functional visibly.
RESIDUAL = 0.05
# Up to this many lines (two for each regime), array code takes at most four milliseconds more than
# compiled loops, which take four seconds to compile.
FEW = 40


def constrained_functionals(
    L: FloatArray,
    lines: Lines,
    choice: IntArray,
    n: FloatArray,
    n_eff: float,
    owner: IntArray,
    structure: Structure,
    *,
    exact: bool = False,
) -> FloatArray:
    """Functionals on reduced space, one per regime, shape (r, p).

    Parameters
    ----------
    L : array, shape (p, p)
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
        L = L @ step
    rows = np.arange(len(choice))
    return np.asarray(solve_lower(L, vectors[rows, choice].T, transposed=True).T)


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
    line is `δn = e − h ⟨m, e⟩ F` with `e = m (N − H)`, for either rank.
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
        self.exact = vectors.reshape(2 * r, p)
        self.must = must.reshape(2 * r, 2 * r)
        # The correction is needed to a few digits only, and single precision is twice as fast.
        self.vectors: Single = vectors.astype(np.float32)
        self.flat = self.vectors.reshape(2 * r, p)
        self.n, self.n_eff = np.repeat(n.astype(np.float32), 2), np.float32(n_eff)
        self.F: Single = form.astype(np.float32) @ self.vectors
        self.h = np.repeat(np.where(rank == 2, np.float32(0.5), np.float32(1.0)), 2)
        self.m = self._duals(rank, (form[:, 0, 0] / 2).astype(np.float32))
        self.Mm = self.m + (self.m @ np.swapaxes(self.vectors, 1, 2)) @ self.F
        self.mMm = (self.m @ np.swapaxes(self.Mm, 1, 2)).reshape(2 * r, 2)
        self.m_and_n = np.concatenate([self.m.reshape(2 * r, p), self.flat])

    def corrected(self) -> tuple[FloatArray, FloatArray]:
        """Corrected lines in re-whitened coordinates, and the factor that L gets."""
        r, _, p = self.vectors.shape
        d, H = self._errors()
        step = _cholesky(np.eye(p) - H)
        corrected = solve_lower(step, (self.exact - d).T).T.reshape(r, 2, p)
        return np.asarray(corrected, dtype=np.float64), step

    def _duals(self, rank: IntArray, sign: Single) -> Single:
        """`m^s` in the plane with ⟨m^s, n^s⟩ = 0, ⟨m^s, n^{1−s}⟩ = 1 (rank 1: σ n/(2‖n‖²))."""
        m = np.zeros_like(self.vectors)
        two = rank == 2
        m[two] = duals(self.exact.reshape(m.shape)[two])
        one = rank == 1
        v = self.vectors[one, 0]
        m[one, 0] = sign[one, None] * v / (2 * np.einsum("rp,rp->r", v, v))[:, None]
        return m

    def _errors(self) -> tuple[Single, Single]:
        """Conditional errors of the lines and of the whitening: `𝓛 Cov 𝓛ᵀ y = T` is solved."""
        lines, p = self.flat.shape
        F, Mm = self.F.reshape(lines, p), self.Mm.reshape(lines, p)
        residual = np.where(self.must, self.flat @ self.flat.T, np.float32(0))
        precision = np.float32(1) / self._scale()
        stop = RESIDUAL**2 * np.count_nonzero(self.must)
        d, H = np.empty_like(self.flat), np.empty((p, p), dtype=np.float32)
        of_lines = (self.flat, F, Mm, self.mMm, self.m_and_n, self.h, self.n, self.n_eff)
        _loops(lines).solve(residual, precision, self.must, *of_lines, MAX_STEPS, stop, d, H)
        return d, H

    def _scale(self) -> Single:
        """The diagonal of the operator, nearly: the sampling variance of each product."""
        size = np.einsum("ap,ap->a", self.flat, self.flat)
        own = np.einsum("rsp,rsp->rs", self.m, self.Mm).ravel() / self.n
        own += np.einsum("rsp,rsp->rs", self.m, self.m).ravel() / self.n_eff
        half = size[:, None] * own
        return np.where(self.must, half + half.T, np.float32(1))


def _loops(lines: int) -> ModuleType:
    """Array code for few lines, compiled loops for many."""
    if lines <= FEW:
        return basis_arrays
    # Compiled on first use: numba takes longer to import than a small study to recover.
    from jigsaw_crl.nullcone import basis_loops

    return basis_loops


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
    """Rows of Q̂ in reduced space: each minus its projection on its ancestor blocks' rows.

    Parameters
    ----------
    functionals : array, shape (p_labels, p)
        One per label.
    """
    above = structure.strict_block_ancestors()
    scale = np.linalg.norm(functionals, axis=1, keepdims=True)
    unit = functionals / np.where(scale > 0, scale, 1.0)
    # The span of the ancestors' rows is the span of their functionals, whatever their own order.
    rows, p = unit.copy(), len(unit)
    if 2 * p <= FEW:
        basis_arrays.off_ancestors(unit, above, rows)
    else:
        from jigsaw_crl.nullcone.basis_loops import off_ancestors

        off_ancestors(unit, unit @ unit.T, above, np.empty((p, p)), np.empty(p), rows)
    norm = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norm > 0, norm, 1.0))
