"""Algorithm 2, ID-Block-Causal-Order, and its finite-sample version.

Blocks are found one after another, ancestors first. Comments carry the line numbers of the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jigsaw_crl.baseline.block_ancestor import (
    Block,
    block_ancestors,
    block_ancestors_fs,
    block_basis,
)
from jigsaw_crl.baseline.budget import Budget, BudgetSpent
from jigsaw_crl.baseline.differences import Differences, off_rows
from jigsaw_crl.baseline.exact_search import smallest_tight_set
from jigsaw_crl.baseline.planes import Planes, Space, complement, dimension, project
from jigsaw_crl.baseline.ratio_search import best_set_of_size

__all__ = ["Blocks", "ExactSearch", "RatioSearch", "block_causal_order", "block_causal_order_fs"]

FloatArray = npt.NDArray[np.float64]
ExactSearch = Callable[[Space, Budget], tuple[int, ...]]
RatioSearch = Callable[[FloatArray, int, float, Budget], tuple[int, ...] | None]


@dataclass(frozen=True, eq=False)
class Blocks:
    """What Algorithm 2 returns for one client.

    Parameters
    ----------
    ancestors : mapping from block to frozenset of blocks
        Ĉ_k with its order, transitively closed; blocks (tuples of label positions) in the order in
        which they were found.
    Q : array, shape (m, n_features)
        Q̂_k, rows in the order of the labels.
    looks : int
        Label sets looked at.
    undivided : tuple of int
        Labels that were put into one last block because the budget ended; empty when it did not.
    mismatch : int
        Exact moments only: dimension of the last block's space minus its number of labels, not 0
        when the client breaks the paper's assumptions.
    """

    ancestors: Mapping[Block, frozenset[Block]]
    Q: FloatArray
    looks: int
    undivided: Block = ()
    mismatch: int = 0


def block_causal_order(
    planes: Planes, budget: Budget, search: ExactSearch = smallest_tight_set
) -> Blocks:
    """Algorithm 2 on exact moments.

    Lines 3 to 12, the search for the next block, are `search`; `Ĉ` is the smallest set with
    `dim P(Ĉ; W_t) = |Ĉ|`.
    """
    m, p, _ = planes.vectors.shape
    ancestors: dict[Block, frozenset[Block]] = {}  # line 1: ℐ₀ ← ∅
    spaces: dict[Block, FloatArray] = {}  # in whitened coordinates
    rows: dict[Block, FloatArray] = {}  # q̂, in X-space
    remaining = list(range(m))  # line 1: R₀
    undivided: Block = ()
    mismatch, error = 0, 0.0
    while remaining:  # line 2
        N = complement(np.concatenate([np.empty((p, 0)), *spaces.values()], axis=1))  # line 5: W_t
        space = project(planes, remaining, N, error)
        try:
            chosen = search(space, budget)  # lines 6 to 11
        except BudgetSpent:
            chosen, undivided = tuple(range(len(remaining))), tuple(remaining)
        members = tuple(remaining[i] for i in chosen)
        mismatch = int(dimension(space, [chosen])[0]) - len(chosen)
        involved = block_ancestors(members, planes, spaces, error)  # line 13: Algorithm 1
        ancestors[members] = _with_theirs(involved, ancestors)  # line 14
        spaces[members], smallest = _own_space(space, chosen, N)
        # An error e in vectors that leave only σ of new direction tilts that direction by e/σ.
        error = max(error, float(np.linalg.norm(space.errors[list(chosen)])) / smallest)
        rows[members] = block_basis(  # line 13 again: q̂ of Ĉ
            spaces[members], [rows[b] for b in ancestors[members]], planes.to_features
        )
        remaining = [i for i in remaining if i not in members]  # lines 16 to 18
    return Blocks(  # lines 15, 20 and 21
        ancestors, _in_label_order(rows, m), budget.spent, undivided, mismatch
    )


def block_causal_order_fs(
    differences: Differences, tau: float, budget: Budget, search: RatioSearch = best_set_of_size
) -> Blocks:
    """Algorithm 2-FS on estimates."""
    m, p = len(differences.labels), differences.to_features.shape[1]
    ancestors: dict[Block, frozenset[Block]] = {}  # line 1: ℐ₀ ← ∅
    rows: dict[Block, FloatArray] = {}
    remaining = list(range(m))  # line 1: R₀
    undivided: Block = ()
    while remaining:  # line 2
        N = off_rows(p, list(rows.values()))  # line 5: W_t does not change while r grows
        M = [differences.rows[j] @ N for j in remaining]
        grams = np.stack([Mj.T @ Mj for Mj in M])
        chosen: tuple[int, ...] | None = None
        try:
            for r in range(1, len(remaining)):  # lines 3, 4 and 16
                chosen = search(grams, r, tau, budget)  # lines 6 to 13
                if chosen is not None:  # line 14: flag ← False
                    break
        except BudgetSpent:
            undivided = tuple(remaining)
        if chosen is None:  # r has reached |R|: nothing is left to choose
            chosen = tuple(range(len(remaining)))
        members = tuple(remaining[i] for i in chosen)
        rows[members], involved = block_ancestors_fs(members, differences, rows, tau)  # line 19
        ancestors[members] = _with_theirs(involved, ancestors)  # line 20
        remaining = [i for i in remaining if i not in members]  # line 22
    q = _in_label_order(rows, m)  # line 21
    return Blocks(ancestors, q @ differences.to_features.T, budget.spent, undivided)  # line 25


def _with_theirs(
    involved: list[Block], ancestors: Mapping[Block, frozenset[Block]]
) -> frozenset[Block]:
    """Every C' with C' = C̃ or C' an ancestor of C̃, for a C̃ in 𝒜."""
    return frozenset(involved).union(*(ancestors[b] for b in involved))


def _own_space(space: Space, chosen: tuple[int, ...], N: FloatArray) -> tuple[FloatArray, float]:
    """The leading |Ĉ| directions of P(Ĉ; W_t) in whitened coordinates, and the weakest's size."""
    vectors = np.concatenate(list(space.vectors[list(chosen)]), axis=1)
    left, sigma, _ = np.linalg.svd(vectors)
    r = len(chosen)
    smallest = float(sigma[r - 1]) if len(sigma) >= r else 0.0
    # A direction that is missing (an intervention without effect) has no size to divide by.
    return N @ left[:, :r], smallest if smallest > np.sqrt(np.finfo(np.float64).eps) else 1.0


def _in_label_order(rows: Mapping[Block, FloatArray], m: int) -> FloatArray:
    Q = np.zeros((m, next(iter(rows.values())).shape[1]))
    for members, q in rows.items():
        Q[list(members)] = q
    return Q
