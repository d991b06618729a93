"""The global linear system, its change under an intervention, and its marginal at a client.

Letters are the paper's: `Z = A Z + E`, `Cov(E) = Σ` (diagonal), and `A[i, j] ≠ 0` means that j is a
direct cause of i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.base.frozen import ReadOnlyArrays


@dataclass(frozen=True, eq=False)
class Marginal:
    """A client's own system `Z_k = A_k Z_k + E_k`, `Cov(E_k) = Σ_k` (Proposition 1).

    Off-diagonal entries of Σ_k are the bidirected edges.
    """

    A: FloatArray
    Sigma: FloatArray

    def precision(self) -> FloatArray:
        """`(I − A_k)ᵀ Σ_k⁻¹ (I − A_k)`, the inverse covariance of Z_k."""
        rest = np.eye(len(self.A)) - self.A
        return np.asarray(rest.T @ np.linalg.solve(self.Sigma, rest), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class SEM(ReadOnlyArrays):
    """A linear structural equation model `Z = A Z + E` with independent noises.

    A has shape (p, p); the variances are the diagonal of Σ, and the means those of E: zero unless
    an intervention moves them.
    """

    A: FloatArray
    variances: FloatArray
    means: FloatArray

    def __post_init__(self) -> None:
        self._copy_read_only("A", "variances", "means")

    @property
    def n_latent(self) -> int:
        return len(self.A)

    def total_effects(self) -> FloatArray:
        """`(I − A)⁻¹`: entry (i, j) is the total effect of a unit of noise of j on i."""
        return np.asarray(np.linalg.inv(np.eye(self.n_latent) - self.A), dtype=np.float64)

    def covariance(self) -> FloatArray:
        """`Cov(Z) = (I − A)⁻¹ Σ (I − A)⁻ᵀ`."""
        effects = self.total_effects()
        return np.asarray((effects * self.variances) @ effects.T, dtype=np.float64)

    def marginal(self, observed: IntArray) -> Marginal:
        """The system of a client that accesses the nodes O and not the nodes M.

        `A_k = A_OO + A_OM (I − A_MM)⁻¹ A_MO` and
        `Σ_k = Σ_OO + B Σ_MM Bᵀ` with `B = A_OM (I − A_MM)⁻¹`.
        """
        O = np.asarray(observed)
        M = np.setdiff1d(np.arange(self.n_latent), O)
        A = self.A
        B = np.linalg.solve((np.eye(len(M)) - A[np.ix_(M, M)]).T, A[np.ix_(O, M)].T).T
        return Marginal(
            A[np.ix_(O, O)] + B @ A[np.ix_(M, O)],
            np.diag(self.variances[O]) + (B * self.variances[M]) @ B.T,
        )

    def changed(self, change: Change) -> SEM:
        """The system under an intervention: `Ã = A + e_t Δaᵀ`, `Σ̃ = Σ + Δσ e_t e_tᵀ`."""
        A, variances, means = self.A.copy(), self.variances.copy(), self.means.copy()
        A[change.target] += change.weights
        variances[change.target] += change.variance
        means[change.target] += change.mean
        return SEM(A, variances, means)


@dataclass(frozen=True, eq=False)
class Change:
    """The change that an intervention makes to its target's equation.

    The weights are Δa, supported on the parents of the target, the variance is Δσ, and the mean the
    shift of the noise's mean.
    """

    target: int
    weights: FloatArray
    variance: float
    mean: float = 0.0

    def scaled(self, share: float) -> Change:
        """A share of the change."""
        return Change(self.target, share * self.weights, share * self.variance, share * self.mean)
