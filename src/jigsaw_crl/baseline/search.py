"""Lines 3 to 17 of Algorithm 2-FS: the label set of largest ratio, by branch and bound.

With `G_j = M_jᵀ M_j` the Gram matrix of a label's projected change, the stacked matrix M(C) has
`M(C)ᵀ M(C) = Σ_{j ∈ C} G_j`, so its singular values are square roots of the eigenvalues of a sum.
A set passes when the tail `T_r = Σ_{i > r} σ_i` is at most a share τ of all singular values.

The paper examines every set (`literal.largest_ratio`); this search has the same result. Sets grow
one label at a time, and adding rows never decreases a singular value: a part S of C has
`T_r(S) ≤ T_r(C)`. Conversely, for every C that contains S, the energy ‖M_j‖²_F of the labels to be
added bounds `Σ_{i ≤ r} σ_i(C)` (see `largest_head`). If `T_r(S)` exceeds a share τ/(1 − τ) of that
bound, no set containing S passes, and none is tried. Once a set has passed, τ is replaced by its
share, because only a better set matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import TOGETHER, FloatArray, IntArray
from jigsaw_crl.baseline.literal import Block, Precisions, rho, stacked

# Examining a set means computing the eigenvalues of a p_k × p_k matrix, about 20 µs at p_k = 24, so
# a search stops after about 20 s. The budget counts sets, not seconds, so that results do not
# depend on the machine.
DEFAULT_BUDGET = 1_000_000
# Square roots of eigenvalues carry an error of √eps of the largest, which pruning must allow for.
ROOT_EPS = float(np.sqrt(np.finfo(np.float64).eps))


class BudgetSpent(Exception):
    """The budget is too small for the next step of a search; caught inside this module."""


@dataclass
class BranchAndBound:
    """The search for `literal.id_block_causal_order_fs`, with the result of the printed one."""

    # Label sets that may be examined for one client, and how many have been.
    budget: int
    spent: int = 0
    # Labels that became one last block because the budget ran out.
    undivided: Block = ()

    def spend(self, sets: int) -> None:
        """Count `sets` more; raises `BudgetSpent` when the budget would be exceeded."""
        if self.spent + sets > self.budget:
            self.spent = self.budget
            raise BudgetSpent
        self.spent += sets

    def __call__(self, R: Sequence[str], W: FloatArray, Theta: Precisions, tau: float) -> Block:
        # I − Wᵀ(WWᵀ)⁻¹W = N Nᵀ, and M N has the singular values of M N Nᵀ.
        N = np.linalg.qr(W.T, mode="complete")[0][:, len(W) :]
        changes = [stacked(Theta, (j,)) @ N for j in R]
        try:
            for r in range(1, len(R)):  # lines 3, 4 and 16
                chosen = best_set_of_size(changes, r, tau, self.spend)  # lines 6 to 13
                if chosen is not None:
                    return tuple(R[i] for i in chosen)
        except BudgetSpent:
            self.undivided = tuple(R)
        return tuple(R)  # r has reached |R|, where all remaining labels pass


def best_set_of_size(
    changes: Sequence[FloatArray], r: int, tau: float, spend: Callable[[int], None]
) -> tuple[int, ...] | None:
    """The set C of r labels with the largest `ρ_r(M(C))`; None if that is below 1 − τ.

    `changes` has M_j of each remaining label, and the result positions in it, ascending. Each set
    or part of a set whose eigenvalues are computed is counted with `spend`.
    """
    grams = np.stack([M.T @ M for M in changes])
    energy = np.trace(grams, axis1=1, axis2=2)
    # Labels of large energy first: this makes the bound on what can be added smallest.
    order = np.argsort(-energy, kind="stable")
    changes, grams = [changes[j] for j in order], grams[order]
    rising = np.concatenate([[0.0], np.cumsum(energy[order])])
    m, s, _ = grams.shape
    share, best = tau, None
    stack: list[IntArray] = [np.empty((1, 0), dtype=np.intp)]
    while stack:
        for parts in _grown(stack.pop(), m, r):
            spend(len(parts))
            chosen = np.zeros((len(parts), m))
            np.put_along_axis(chosen, parts, 1.0, axis=1)
            summed = (chosen @ grams.reshape(m, s * s)).reshape(-1, s, s)
            sigma = np.sqrt(np.clip(np.linalg.eigvalsh(summed), 0.0, None))  # ascending
            tail, missing = sigma[:, : max(s - r, 0)].sum(axis=1), r - parts.shape[1]
            if missing:
                # The labels that can be added come after the last one.
                next_ = parts[:, -1] + 1
                added = rising[next_ + missing] - rising[next_]
                most = largest_head(sigma[:, -r:], added) / (1.0 - share)
                slack = s * ROOT_EPS * np.sqrt(added + sigma[:, -1] ** 2)
                stack.append(parts[tail <= share * most + slack])
                continue
            total = sigma.sum(axis=1)
            tail = np.divide(tail, total, out=np.zeros_like(tail), where=total > 0)
            # Of equal sets the earlier one stays.
            for part in parts[tail <= min(share, tail.min()) + s * ROOT_EPS]:
                exact = 1.0 - rho(np.concatenate([changes[j] for j in part]), r)
                if exact < share or (best is None and exact <= share):
                    share, best = exact, part
    return None if best is None else tuple(sorted(order[best].tolist()))


def _grown(parts: IntArray, m: int, r: int) -> Iterator[IntArray]:
    """Every part extended by one later label, in batches; enough labels remain to reach r."""
    size = parts.shape[1]
    first = parts[:, -1] + 1 if size else np.zeros(len(parts), dtype=np.intp)
    counts = m - (r - size) - first + 1
    parent = np.repeat(np.arange(len(parts)), counts)
    within = np.arange(len(parent)) - np.repeat(np.cumsum(counts) - counts, counts)
    children = np.column_stack([parts[parent], first[parent] + within])
    return (children[i : i + TOGETHER] for i in range(0, len(children), TOGETHER))


def largest_head(sigma: FloatArray, added: FloatArray) -> FloatArray:
    """Upper bound on `Σ_{i ≤ r} σ_i` of a matrix to which rows of energy `added` are appended.

    Appended rows never decrease a σ_i and increase `Σ_{i ≤ r} σ_i²` by at most their energy
    (Ky Fan). The square root is concave, so the sum is largest when the smallest values are raised
    to a common level. `sigma` has the r largest singular values of each of N matrices, ascending.
    """
    squares = sigma**2
    level = (np.cumsum(squares, axis=1) + added[:, None]) / np.arange(1, sigma.shape[1] + 1)
    # Raise as many values as lie below the resulting level.
    count = np.maximum(np.count_nonzero(level >= squares, axis=1), 1)
    here = np.arange(len(sigma)), count - 1
    unlifted = sigma.sum(axis=1) - np.cumsum(sigma, axis=1)[here]
    return np.asarray(count * np.sqrt(level[here]) + unlifted, dtype=np.float64)
