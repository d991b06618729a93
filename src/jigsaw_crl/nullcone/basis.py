"""Which functional of the features reads each latent? The rows of Q̂.

In whitened coordinates the functional of target i is `q_i`, so on features it is `q_iᵀ L⁻¹`. The
structure says which inner products ⟨q_i, q_j⟩ and ⟨q_i, c_j⟩ are exactly zero. Given the errors
(N_i of each regime, H of the whitening) are Gaussian, the lines are replaced by their conditional
mean given that those products vanish: with `δT = 𝓛(N, H)` the first-order error of the products,

    (N̂, Ĥ) = Cov·𝓛ᵀ (𝓛 Cov 𝓛ᵀ)⁻¹ T ,

solved by conjugate gradients; 𝓛 and its adjoint cost three matrix products, not one entry per pair
of pairs. Row i of Q̂ is then q_i's functional minus its projection, in feature space, on the rows of
its ancestor blocks, scaled to unit length (block RQ of the paper).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from jigsaw_crl.nullcone.lines import Lines
from jigsaw_crl.nullcone.structure import Structure

__all__ = ["constrained_functionals", "orthogonal_rows"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]

# The problem is mildly non-linear: the second round removes what the first left at second order.
ROUNDS = 2
MAX_STEPS = 200
# Relative residual of the conjugate gradients: far below the sampling error that is being removed.
RESIDUAL = 1e-5


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
    vectors = lines.n
    for _ in range(0 if exact else ROUNDS):
        problem = _Problem(vectors, lines.rank, lines.sign, n, n_eff, free)
        vectors, step = problem.corrected()
        L = L @ step
    rows = np.arange(len(choice))
    return np.asarray(solve_triangular(L, vectors[rows, choice].T, lower=True, trans="T").T)


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


@dataclass(frozen=True, eq=False)
class _Problem:
    """One linearised conditioning; arrays of lines have shape (r, 2, p)."""

    vectors: FloatArray
    rank: IntArray
    sign: FloatArray
    n: FloatArray
    n_eff: float
    must: BoolArray

    def corrected(self) -> tuple[FloatArray, FloatArray]:
        """Corrected lines in re-whitened coordinates, and the factor that L gets."""
        r, _, p = self.vectors.shape
        flat = self.vectors.reshape(2 * r, p)
        T = np.where(self.must, (flat @ flat.T).reshape(r, 2, r, 2), 0.0)
        duals = self._duals()
        y = self._solve(T, duals)
        d, H = self._errors(y, duals)
        step = _cholesky(np.eye(p) - H)
        moved = (self.vectors - d).reshape(2 * r, p)
        return solve_triangular(step, moved.T, lower=True).T.reshape(r, 2, p), step

    def _duals(self) -> FloatArray:
        """`m^s` in the plane with ⟨m^s, n^s⟩ = 0, ⟨m^s, n^{1−s}⟩ = 1 (rank 1: σ n/(2‖n‖²))."""
        m = np.zeros_like(self.vectors)
        two = self.rank == 2
        V = self.vectors[two]
        G = V @ np.swapaxes(V, 1, 2)
        m[two] = np.linalg.solve(G, V)[:, ::-1]
        one = self.rank == 1
        v = self.vectors[one, 0]
        m[one, 0] = self.sign[one, None] * v / (2 * np.einsum("rp,rp->r", v, v))[:, None]
        return m

    def _pull(self, w: FloatArray, m: FloatArray) -> FloatArray:
        """`w − ½⟨n^{1−s}, w⟩ m^s` (rank 1: `w − 2σ⟨n, w⟩ m`)."""
        other = np.einsum("rsp,rsp->rs", self.vectors[:, ::-1], w) * 0.5
        own = np.einsum("rsp,rsp->rs", self.vectors, w) * 2.0 * self.sign[:, None]
        pulled = w - np.where((self.rank == 2)[:, None], other, own)[..., None] * m
        return np.asarray(pulled)

    def _stretch(self, v: FloatArray) -> FloatArray:
        """`M_i v = v + D_i v`, for vectors of shape (r, k, p)."""
        inner = v @ np.swapaxes(self.vectors, 1, 2)  # (r, k, 2)
        two = (self.rank == 2)[:, None, None]
        weights = np.where(two, inner[..., ::-1], 2.0 * self.sign[:, None, None] * inner)
        return v + weights @ self.vectors

    def _errors(self, y: FloatArray, m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Conditional errors of the lines and of the whitening for multipliers y."""
        r, _, p = self.vectors.shape
        w = (y.reshape(2 * r, 2 * r) @ self.vectors.reshape(2 * r, p)).reshape(r, 2, p)
        v = self._pull(w, m)
        # H = −(2/n_eff) sym(Σ v mᵀ + ½ Σ n wᵀ)
        A = np.tensordot(v, m, axes=([0, 1], [0, 1]))
        A = A + 0.5 * np.tensordot(self.vectors, w, axes=([0, 1], [0, 1]))
        H = -(A + A.T) / self.n_eff
        # N_i m^s with N_i = (2/n_i) M_i sym(Σ v mᵀ) M_i
        Mv, Mm = self._stretch(v), self._stretch(m)
        N_m = (m @ np.swapaxes(Mm, 1, 2)) @ Mv + (m @ np.swapaxes(Mv, 1, 2)) @ Mm
        change = N_m / self.n[:, None, None] - m @ H
        along = 0.5 * np.einsum("rsp,rsp->rs", m, change)[..., None]
        # Rank 1: δn is fixed up to a multiple of n itself, which no orthogonality sees; the error
        # of D along n shows in its length only.
        d = np.where(
            (self.rank == 2)[:, None, None],
            change - along * self.vectors[:, ::-1],
            change - 4 * self.sign[:, None, None] * along * self.vectors,
        )
        return d, H

    def _apply(self, y: FloatArray, m: FloatArray) -> FloatArray:
        """`𝓛 Cov 𝓛ᵀ y` on the products that must vanish."""
        r, _, p = self.vectors.shape
        d, H = self._errors(y, m)
        flat = self.vectors.reshape(2 * r, p)
        cross = flat @ d.reshape(2 * r, p).T
        out = (cross + cross.T - flat @ H @ flat.T).reshape(r, 2, r, 2)
        return np.where(self.must, out, 0.0)

    def _solve(self, T: FloatArray, m: FloatArray) -> FloatArray:
        y = np.zeros_like(T)
        # Products scale with their lines; the diagonal of the operator is close to this.
        size = np.einsum("rsp,rsp->rs", self.vectors, self.vectors)
        size = np.where(size > 0, size, 1.0)
        condition = size[:, :, None, None] * size[None, None]
        residual = T.copy()
        image = residual / condition
        direction = image.copy()
        square = float(np.vdot(residual, image))
        stop = RESIDUAL**2 * square
        for _ in range(MAX_STEPS):
            if square <= stop:
                break
            applied = self._apply(direction, m)
            curvature = float(np.vdot(direction, applied))
            if curvature <= 0:
                break
            alpha = square / curvature
            y += alpha * direction
            residual -= alpha * applied
            image = residual / condition
            new = float(np.vdot(residual, image))
            direction = image + (new / square) * direction
            square = new
        return y


def _cholesky(matrix: FloatArray) -> FloatArray:
    """Cholesky factor; a correction too large to be one is shrunk until it is."""
    identity = np.eye(len(matrix))
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
    rows = np.empty_like(unit)
    for block in structure.blocks:
        ancestors = np.flatnonzero(above[:, block[0]])
        part = unit[block]
        if ancestors.size:
            span = np.linalg.qr(unit[ancestors].T)[0]
            part = part - (part @ span) @ span.T
            part = part - (part @ span) @ span.T
        norm = np.linalg.norm(part, axis=1, keepdims=True)
        rows[block] = part / np.where(norm > 0, norm, 1.0)
    return rows
