"""Estimates, lines 6 to 13 of Algorithm 2-FS: the label set of size r with the largest ratio.

With `G_j = M_jᵀ M_j` the Gram matrix of a label's projected change, the stacked matrix M(C) has
`M(C)ᵀ M(C) = Σ_{j ∈ C} G_j`, so its singular values are square roots of the eigenvalues of a sum.
A set passes when the tail `T_r = Σ_{i > r} σ_i` is at most a share τ of all singular values.

The paper examines every set (`literal.largest_ratio`); this is a branch-and-bound search with the
same result. Sets grow one label at a time, and adding rows never decreases a singular value: a part
S of C has `T_r(S) ≤ T_r(C)`. Conversely, for every C that contains S, the energy ‖M_j‖²_F of the
labels to be added bounds `Σ_{i ≤ r} σ_i(C)` (see `largest_head`), and the triangle inequality gives
`Σ_i σ_i(C) ≤ ‖M(S)‖_* + Σ_{j ∈ C∖S} ‖M_j‖_*`. If `T_r(S)` exceeds a share τ of the smaller bound,
no set containing S passes, and none is tried. Once a set has passed, τ is replaced by its share,
because only a better set matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.baseline.budget import Budget, BudgetSpent
from jigsaw_crl.baseline.literal import Precisions, stacked
from jigsaw_crl.baseline.planes import complement

__all__ = ["BranchAndBound", "best_set_of_size", "largest_head"]


# Matrices in one batch: 2048 of size 24 × 24 take 9 MB, which fits in the cache.
BATCH = 2048
# Square roots of eigenvalues carry an error of √eps of the largest, which pruning must allow for.
ROOT_EPS = float(np.sqrt(np.finfo(np.float64).eps))


@dataclass
class _Best:
    """The best set so far, and its tail share: a set must not exceed it to replace the best."""

    share: float
    members: IntArray | None = None


def best_set_of_size(
    grams: FloatArray, r: int, tau: float, budget: Budget
) -> tuple[int, ...] | None:
    """The set C of r labels with the largest `ρ_r(M(C))`, if that is at least 1 − τ.

    Parameters
    ----------
    grams : array, shape (m, s, s)
        `G_j` for each remaining label.
    r : int
        Size of the sets, at most m.
    tau : float
    budget : Budget
        Each set or part of a set whose eigenvalues are computed counts.

    Returns
    -------
    tuple of int, or None
        Positions in `grams`, ascending; None when no set passes.
    """
    m, s, _ = grams.shape
    # Labels of large energy first: this makes the bounds on what can be added smallest.
    energy = np.trace(grams, axis1=1, axis2=2)
    order = np.argsort(-energy, kind="stable")
    nuclear = _singular(grams[order]).sum(axis=1)
    search = _Search(grams[order].reshape(m, s * s), energy[order], nuclear, s, r)
    best = _Best(share=tau)
    stack: list[IntArray] = [np.empty((1, 0), dtype=np.intp)]
    while stack:
        for children in _grown(stack.pop(), m, r):
            budget.spend(len(children))
            kept = search.examine(children, best)
            if len(kept):
                stack.append(kept)
    if best.members is None:
        return None
    return tuple(sorted(int(i) for i in order[best.members]))


@dataclass
class BranchAndBound:
    """The search for `literal.id_block_causal_order_fs`, with the result of the printed one.

    Parameters
    ----------
    budget : Budget
    undivided : tuple of str
        Labels that became one last block because the budget ran out; empty otherwise.
    """

    budget: Budget
    undivided: tuple[str, ...] = ()
    best = staticmethod(best_set_of_size)

    def __call__(
        self, R: Sequence[str], W: FloatArray, Theta: Precisions, tau: float
    ) -> tuple[str, ...]:
        N = complement(W.shape[1], [W.T])
        M = [stacked(Theta, (j,)) @ N for j in R]
        grams = np.stack([Mj.T @ Mj for Mj in M])
        try:
            for r in range(1, len(R)):  # lines 3, 4 and 16
                chosen = self.best(grams, r, tau, self.budget)  # lines 6 to 13
                if chosen is not None:
                    return tuple(R[i] for i in chosen)
        except BudgetSpent:
            self.undivided = tuple(R)
        return tuple(R)  # r has reached |R|, where all remaining labels pass


def _grown(parts: IntArray, m: int, r: int) -> list[IntArray]:
    """Every part extended by one later label, in batches; enough labels remain to reach r."""
    size = parts.shape[1]
    first = parts[:, -1] + 1 if size else np.zeros(len(parts), dtype=np.intp)
    last = m - (r - size)  # the last label after which enough others remain
    counts = last - first + 1
    parent = np.repeat(np.arange(len(parts)), counts)
    within = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    children = np.column_stack([parts[parent], first[parent] + within])
    return [children[i : i + BATCH] for i in range(0, len(children), BATCH)]


def _singular(grams: FloatArray) -> FloatArray:
    """Singular values of M from MᵀM, ascending."""
    return np.asarray(np.sqrt(np.clip(np.linalg.eigvalsh(grams), 0.0, None)), dtype=np.float64)


def _summed(flat: FloatArray, sets: IntArray, s: int) -> FloatArray:
    """`Σ_{j ∈ C} G_j` for each set, by one matrix product."""
    chosen = np.zeros((len(sets), len(flat)))
    np.put_along_axis(chosen, sets, 1.0, axis=1)
    return (chosen @ flat).reshape(-1, s, s)


def _tail_share(sigma: FloatArray, r: int) -> FloatArray:
    """`1 − ρ_r` from ascending singular values; 0 for a matrix of zeros, which has rank ≤ r."""
    total = sigma.sum(axis=1)
    tail = sigma[:, : max(sigma.shape[1] - r, 0)].sum(axis=1)
    return np.asarray(np.divide(tail, total, out=np.zeros_like(tail), where=total > 0))


@dataclass(frozen=True, eq=False)
class _Search:
    """The data of a search, labels in decreasing order of energy ‖M_j‖²_F."""

    grams: FloatArray  # (m, s·s)
    energy: FloatArray  # (m,), decreasing
    nuclear: FloatArray  # (m,), ‖M_j‖_*
    s: int
    r: int

    def examine(self, parts: IntArray, best: _Best) -> IntArray:
        """The parts that a passing set may contain; sets of full size update `best` instead."""
        size = parts.shape[1]
        sigma = _singular(_summed(self.grams, parts, self.s))
        if size == self.r:
            share = _tail_share(sigma, self.r)
            i = int(np.argmin(share))
            # Ties keep the earlier set; the first set may have a share of exactly τ.
            if share[i] < best.share or (best.members is None and share[i] <= best.share):
                best.share, best.members = float(share[i]), parts[i]
            return parts[:0]
        total = sigma.sum(axis=1)
        tail = sigma[:, : max(self.s - self.r, 0)].sum(axis=1)
        # The labels that can be added come after the last one, in decreasing order of energy.
        missing, last = self.r - size, parts[:, -1]
        rising = np.concatenate([[0.0], np.cumsum(self.energy)])
        added = rising[last + 1 + missing] - rising[last + 1]
        most_total = np.minimum(
            total + self._most_nuclear(missing)[last],
            largest_head(sigma[:, -self.r :], added) / (1.0 - best.share),
        )
        slack = self.s * ROOT_EPS * np.sqrt(added + sigma[:, -1] ** 2)
        still_open: IntArray = parts[tail <= best.share * most_total + slack]
        return still_open

    def _most_nuclear(self, missing: int) -> FloatArray:
        """For each label, the largest `Σ ‖M_j‖_*` of `missing` labels after it."""
        m = len(self.nuclear)
        return np.array([np.sort(self.nuclear[i + 1 :])[-missing:].sum() for i in range(m)])


def largest_head(sigma: FloatArray, added: FloatArray) -> FloatArray:
    """Upper bound on `Σ_{i ≤ r} σ_i` of a matrix to which rows of energy `added` are appended.

    Appended rows never decrease a σ_i and increase `Σ_{i ≤ r} σ_i²` by at most their energy
    (Ky Fan). The square root is concave, so the sum is largest when the smallest values are raised
    to a common level.

    Parameters
    ----------
    sigma : array, shape (N, r)
        The r largest singular values of each of N matrices, ascending.
    added : array, shape (N,)
    """
    squares = sigma**2
    lifted = np.arange(1, sigma.shape[1] + 1)
    level = (np.cumsum(squares, axis=1) + added[:, None]) / lifted
    # Raise as many values as lie below the resulting level.
    count = np.maximum(np.count_nonzero(level >= squares, axis=1), 1)
    here = np.arange(len(sigma)), count - 1
    unlifted = sigma.sum(axis=1) - np.cumsum(sigma, axis=1)[here]
    return np.asarray(count * np.sqrt(level[here]) + unlifted, dtype=np.float64)
