"""Algorithm 2, ID-Block-Causal-Order, and its finite-sample version.

Blocks are found one after another, ancestors first. Comments give the line numbers of the paper;
`literal` follows the paper more closely.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.baseline.block_ancestor import (
    Block,
    block_ancestors,
    block_ancestors_fs,
    block_basis,
)
from jigsaw_crl.baseline.budget import Budget, BudgetSpent
from jigsaw_crl.baseline.differences import Differences
from jigsaw_crl.baseline.exact_search import smallest_tight_set
from jigsaw_crl.baseline.planes import Planes, Space, complement, dimension, project
from jigsaw_crl.baseline.ratio_search import best_set_of_size

__all__ = ["Blocks", "ExactSearch", "RatioSearch", "block_causal_order", "block_causal_order_fs"]

ExactSearch = Callable[[Space, Budget], tuple[int, ...]]
RatioSearch = Callable[[FloatArray, int, float, Budget], tuple[int, ...] | None]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of one client, their order and the latent basis: the output of Algorithm 2.

    Parameters
    ----------
    ancestors : mapping from block to frozenset of blocks
        Every ancestor block of each block of Ĉ_k. Blocks are tuples of label positions, in the
        order in which they were found.
    Q : array, shape (m, n_features)
        Q̂_k, rows in the order of the labels.
    undivided : tuple of int
        Labels put into one last block because the budget ran out; empty otherwise.
    mismatch : int
        Exact moments only: dimension of the last block's space minus its number of labels. It is
        0 unless the client violates the paper's assumptions.
    """

    ancestors: Mapping[Block, frozenset[Block]]
    Q: FloatArray
    undivided: Block = ()
    mismatch: int = 0


def block_causal_order(
    planes: Planes, budget: Budget, search: ExactSearch = smallest_tight_set
) -> Blocks:
    """Blocks of a client from exact moments: Algorithm 2.

    `search` does lines 3 to 12: it returns the smallest label set with `dim P(Ĉ; W_t) = |Ĉ|`.
    """
    m, p, _ = planes.vectors.shape
    ancestors: dict[Block, frozenset[Block]] = {}  # line 1: ℐ₀ ← ∅
    spaces: dict[Block, FloatArray] = {}  # in whitened coordinates
    rows: dict[Block, FloatArray] = {}  # q̂, in X-space
    remaining = list(range(m))  # line 1: R₀
    undivided: Block = ()
    mismatch, error = 0, 0.0
    while remaining:  # line 2
        N = complement(p, spaces.values())  # line 5: W_t
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
        # If the vectors add only σ in the new direction, their error e tilts it by e/σ.
        error = max(error, float(np.linalg.norm(space.errors[list(chosen)])) / smallest)
        rows[members] = block_basis(  # line 13 again: q̂ of Ĉ
            spaces[members], [rows[b] for b in ancestors[members]], planes.to_features
        )
        remaining = [i for i in remaining if i not in members]  # lines 16 to 18
    return Blocks(ancestors, _in_label_order(rows, m), undivided, mismatch)  # lines 15, 20 and 21


def block_causal_order_fs(
    differences: Differences, tau: float, budget: Budget, search: RatioSearch = best_set_of_size
) -> Blocks:
    """Blocks of a client from estimates: Algorithm 2-FS.

    `search` does lines 6 to 13: it returns the label set of size r with the largest ratio, or None.
    """
    m, p = len(differences.labels), differences.to_features.shape[1]
    ancestors: dict[Block, frozenset[Block]] = {}  # line 1: ℐ₀ ← ∅
    rows: dict[Block, FloatArray] = {}
    remaining = list(range(m))  # line 1: R₀
    undivided: Block = ()
    while remaining:  # line 2
        N = complement(p, [q.T for q in rows.values()])  # line 5: W_t does not change while r grows
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
        if chosen is None:  # r has reached |R|, where all remaining labels pass
            chosen = tuple(range(len(remaining)))
        members = tuple(remaining[i] for i in chosen)
        rows[members], involved = block_ancestors_fs(members, differences, rows, tau)  # line 19
        ancestors[members] = _with_theirs(involved, ancestors)  # line 20
        remaining = [i for i in remaining if i not in members]  # line 22
    q = _in_label_order(rows, m)  # line 21
    return Blocks(ancestors, q @ differences.to_features.T, undivided)  # line 25


def _with_theirs(
    involved: list[Block], ancestors: Mapping[Block, frozenset[Block]]
) -> frozenset[Block]:
    """The blocks of 𝒜 and all their ancestors."""
    return frozenset(involved).union(*(ancestors[b] for b in involved))


def _own_space(space: Space, chosen: tuple[int, ...], N: FloatArray) -> tuple[FloatArray, float]:
    """The |Ĉ| leading directions of P(Ĉ; W_t), whitened, and the smallest singular value."""
    vectors = np.concatenate(list(space.vectors[list(chosen)]), axis=1)
    left, sigma, _ = np.linalg.svd(vectors)
    r = len(chosen)
    smallest = float(sigma[r - 1]) if len(sigma) >= r else 0.0
    # An intervention without effect leaves no direction; 1 avoids a division by zero.
    return N @ left[:, :r], smallest if smallest > np.sqrt(np.finfo(np.float64).eps) else 1.0


def _in_label_order(rows: Mapping[Block, FloatArray], m: int) -> FloatArray:
    """The rows of all blocks in one matrix, in the order of the labels."""
    Q = np.zeros((m, next(iter(rows.values())).shape[1]))
    for members, q in rows.items():
        Q[list(members)] = q
    return Q
