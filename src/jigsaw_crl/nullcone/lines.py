"""The two candidate lines of a target's own noise.

With `D = λ₁ a aᵀ − λ₂ b bᵀ` (λ₁, λ₂ > 0), the null cone of D within its plane is the pair of lines

    n^± = (√λ₁ a ± √λ₂ b)/√2 ,     D = n⁺ n⁻ᵀ + n⁻ n⁺ᵀ ,

and one of them is the line of q (the other that of c). Their duals in the plane are
`m^± = D⁺ n^± = (a/√λ₁ ∓ b/√λ₂)/√2`. When D has rank 1, `D = 2σ n nᵀ` with the one line
`n = √(|λ|/2) a` and the dual `m = σ a/√(2|λ|)`, where σ is the sign of λ.

Rounding hides a small λ₂, and a regime of rank 2 is then taken for one of rank 1. Its q and c lie
at the angle `atan √(λ₂/λ₁)` on either side of a: the root of what is hidden, far more than rounding
itself turns a line. See `Lines.tilts`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.nullcone.spikes import MARGIN, Spikes, bulk_edges

__all__ = ["Lines", "duals", "null_lines"]


# In few dimensions `p · eps · κ` is no bound: every step of the computation rounds.
LEAST_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Lines:
    """The candidate lines of every regime.

    Parameters
    ----------
    n, m : array, shape (r, 2, p)
        Lines and duals; a regime of rank 1 has its line in slot 0 and zeros in slot 1, one of
        rank 0 has zeros only.
    rank : array of int, shape (r,)
    sign : array, shape (r,)
        σ of a rank-1 regime, 0 otherwise.
    unseen : array, shape (r,)
        Size of the eigenvalue of a rank-1 regime that would be the second; 0 otherwise.
    """

    n: FloatArray
    m: FloatArray
    rank: IntArray
    sign: FloatArray
    unseen: FloatArray

    def errors(self, rounding: FloatArray) -> FloatArray:
        """How far the lines of every regime may be off, as an angle, shape (r,).

        An error of D of norm r turns either line by at most `1.5 r ‖m‖/‖n‖` to first order (rank 2:
        `‖m‖/‖n‖ = 1/√(λ₁λ₂)`), and D carries the rounding of `I + D`, of norm 1 + λ₁ ≤ 1 + 2‖n‖².
        A regime without a line has the error ∞.

        Parameters
        ----------
        rounding : array, shape (r,)
            Relative rounding error of the whitened moments.
        """
        return self._turn(rounding, np.linalg.norm(self.m[:, 0], axis=1))

    def axis_errors(self, rounding: FloatArray) -> FloatArray:
        """The same for the eigenvector of the larger eigenvalue, which is at least `‖n‖²`."""
        n = np.linalg.norm(self.n[:, 0], axis=1)
        return self._turn(rounding, np.divide(1.0, n, out=np.zeros_like(n), where=n > 0))

    def _turn(self, rounding: FloatArray, m: FloatArray) -> FloatArray:
        """`1.5 r m/‖n‖` with r the rounding of D."""
        rounding = np.maximum(rounding, LEAST_ROUNDING)
        n = np.linalg.norm(self.n[:, 0], axis=1)
        of_form = rounding * (1.0 + 2.0 * n**2)
        turn = of_form * np.divide(m, n, out=np.full_like(n, np.inf), where=n > 0)
        return np.asarray(np.maximum(1.5 * turn, rounding))

    def tilts(self, rounding: FloatArray) -> FloatArray:
        """How far q may be from the one line of a rank-1 regime, as an angle, shape (r,).

        A second eigenvalue below the edge of detection may be real. 0 for regimes of other ranks,
        whose lines have the error `errors` alone.

        Parameters
        ----------
        rounding : array, shape (r,)
            Relative rounding error of the whitened moments.
        """
        # The control and the regime both round.
        lower, scale, _, _ = bulk_edges(self.n.shape[2] - 1, 0.5 / rounding**2)
        hidden = np.maximum(self.unseen, 1.0 - lower + MARGIN * scale)
        size = 2.0 * np.einsum("rp,rp->r", self.n[:, 0], self.n[:, 0])
        one = self.rank == 1
        share = np.divide(hidden, size, out=np.zeros_like(size), where=one)
        return np.asarray(np.arctan(np.sqrt(share)))

    @property
    def form(self) -> FloatArray:
        """`W` with `D = Σ_ab n_a W_ab n_bᵀ`, shape (r, 2, 2)."""
        W = np.zeros((len(self.rank), 2, 2))
        W[self.rank == 2] = [[0.0, 1.0], [1.0, 0.0]]
        W[:, 0, 0] += 2.0 * self.sign
        return W


def duals(lines: FloatArray) -> FloatArray:
    """`m^s` in each plane with ⟨m^s, n^s⟩ = 0 and ⟨m^s, n^{1−s}⟩ = 1, for lines of shape (r, 2, p).

    By Cramer's rule: many systems of two equations in a few array operations.
    """
    a, b = lines[:, 0], lines[:, 1]
    aa, ab, bb = (np.einsum("rp,rp->r", x, y)[:, None] for x, y in ((a, a), (a, b), (b, b)))
    off = np.stack([aa * b - ab * a, bb * a - ab * b], axis=1)
    return np.asarray(off / (aa * bb - ab**2)[:, None])


def null_lines(spikes: Spikes) -> Lines:
    """Lines and duals from the extreme eigenpairs of each regime."""
    r, p = spikes.high_vector.shape
    n, m = np.zeros((r, 2, p)), np.zeros((r, 2, p))
    rank = spikes.has_high.astype(np.intp) + spikes.has_low.astype(np.intp)
    sign, unseen = np.zeros(r), np.zeros(r)

    two = rank == 2
    root1, root2 = np.sqrt(spikes.high[two])[:, None], np.sqrt(-spikes.low[two])[:, None]
    a, b = spikes.high_vector[two], spikes.low_vector[two]
    n[two, 0], n[two, 1] = (root1 * a + root2 * b), (root1 * a - root2 * b)
    m[two, 0], m[two, 1] = (a / root1 - b / root2), (a / root1 + b / root2)
    n[two] /= np.sqrt(2.0)
    m[two] /= np.sqrt(2.0)

    one = rank == 1
    high = spikes.has_high[one]
    size = np.where(high, spikes.high[one], -spikes.low[one])[:, None]
    a = np.where(high[:, None], spikes.high_vector[one], spikes.low_vector[one])
    sign[one] = np.where(high, 1.0, -1.0)
    n[one, 0] = np.sqrt(size / 2) * a
    m[one, 0] = sign[one][:, None] * a / np.sqrt(2 * size)
    unseen[one] = np.abs(np.where(high, spikes.low[one], spikes.high[one]))
    return Lines(n, m, rank, sign, unseen)
