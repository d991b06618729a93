"""The global linear system, what an intervention does to it, and what a client sees of it.

Letters are the paper's: `Z = A Z + E`, `Cov(E) = Σ` (diagonal), and `A[i, j] ≠ 0` means that j is a
direct cause of i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.frozen import ReadOnlyArrays

__all__ = ["INTERVENTIONS", "SEM", "Change", "Intervention", "Marginal"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

_KINDS = (
    "additive",
    "shrink",
    "hard-keep",
    "hard-replace",
    "noise-only",
    "mean-only",
    "mean-noise",
)


@dataclass(frozen=True, eq=False)
class Marginal:
    """A client's own system `Z_k = A_k Z_k + E_k` (Proposition 1).

    Parameters
    ----------
    A : array, shape (p_k, p_k)
    Sigma : array, shape (p_k, p_k)
        `Cov(E_k)`; off-diagonal entries are the bidirected edges.
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

    Parameters
    ----------
    A : array, shape (p, p)
        `A[i, j]` is the direct effect of j on i; acyclic.
    variances : array, shape (p,)
        Diagonal of Σ.
    means : array, shape (p,)
        Mean of E; zero unless an intervention moves it.
    """

    A: FloatArray
    variances: FloatArray
    means: FloatArray

    def __post_init__(self) -> None:
        for name in ("A", "variances", "means"):
            value = np.array(getattr(self, name), dtype=np.float64)
            value.flags.writeable = False
            object.__setattr__(self, name, value)

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

    def mean(self) -> FloatArray:
        """`E Z`."""
        return np.asarray(self.total_effects() @ self.means, dtype=np.float64)

    def marginal(self, observed: IntArray) -> Marginal:
        """What remains for a client that accesses the nodes O and not the nodes M.

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
    """What one intervention adds to its target's equation.

    Parameters
    ----------
    target : int
        The node.
    weights : array, shape (p,)
        Δa, supported on the parents of the target.
    variance : float
        Δσ.
    mean : float
        Shift of the noise's mean.
    """

    target: int
    weights: FloatArray
    variance: float
    mean: float = 0.0


@dataclass(frozen=True)
class Intervention:
    """How interventions are drawn.

    Parameters
    ----------
    kind : str
        - ``"additive"`` (the paper's): Δa ~ Unif[low, high] on every parent of the target, Δσ ~
          Unif[low, high];
        - ``"shrink"``: weights halved and noise variance quartered (again for each further dose);
        - ``"hard-keep"``: the parents' weights are cut, the noise stays;
        - ``"hard-replace"``: the weights are cut, the noise variance becomes 1 + Unif[low, high];
        - ``"noise-only"``: Δσ alone; ``"mean-only"``: a shift of the mean by Unif[low, high]
          alone; ``"mean-noise"``: both of these.
    low, high : float
        The range of the draws.

    Examples
    --------
    >>> from jigsaw_crl.truth.simulate import Intervention
    >>> Intervention()
    Intervention(kind='additive', low=2.0, high=3.0)
    >>> Intervention.named("weak")
    Intervention(kind='additive', low=0.5, high=1.0)
    """

    kind: str = "additive"
    low: float = 2.0
    high: float = 3.0

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError(
                f"there is no intervention of kind {self.kind!r}",
                f"Choose one of {', '.join(_KINDS)}.",
            )
        if not 0 < self.low <= self.high < np.inf:
            raise InputError(
                f"an intervention cannot be drawn from [{self.low}, {self.high}]",
                "Pass 0 < low <= high.",
            )

    @classmethod
    def named(cls, name: Intervention | str) -> Intervention:
        """A protocol by name (a key of `INTERVENTIONS`); an `Intervention` is handed back."""
        if isinstance(name, Intervention):
            return name
        try:
            return INTERVENTIONS[name]
        except KeyError:
            raise InputError(
                f"there is no intervention protocol {name!r}",
                f"Choose one of {', '.join(INTERVENTIONS)}.",
            ) from None

    def draw(self, sem: SEM, target: int, rng: np.random.Generator, dose: int = 0) -> Change:
        """One change of the target's equation."""
        parents = sem.A[target] != 0
        # Always the same three draws, so that protocols can be compared on the same numbers.
        weights = np.where(parents, rng.uniform(self.low, self.high, sem.n_latent), 0.0)
        variance, mean = (float(x) for x in rng.uniform(self.low, self.high, 2))
        none, old = np.zeros(sem.n_latent), float(sem.variances[target])
        if self.kind == "additive":
            return Change(target, weights, variance)
        if self.kind == "shrink":
            kept = 0.5 ** (1 + dose)
            return Change(target, (kept - 1) * sem.A[target], (kept**2 - 1) * old)
        if self.kind == "hard-keep":
            return Change(target, -sem.A[target], 0.0)
        if self.kind == "hard-replace":
            return Change(target, -sem.A[target], 1.0 + variance - old)
        if self.kind == "noise-only":
            return Change(target, none, variance)
        if self.kind == "mean-only":
            return Change(target, none, 0.0, mean)
        return Change(target, none, variance, mean)


INTERVENTIONS = {
    "paper": Intervention(),
    "weak": Intervention(low=0.5, high=1.0),
    "strong": Intervention(low=4.0, high=6.0),
    **{kind: Intervention(kind) for kind in _KINDS[1:]},
}
