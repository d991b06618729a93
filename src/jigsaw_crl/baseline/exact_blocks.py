"""Algorithms 1 and 2 on exact moments, in polynomial time and with bounds on rounding errors.

Blocks are found one after another, ancestors first. Comments give the line numbers of the paper;
`literal` follows the paper more closely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.baseline.budget import Budget, BudgetSpent
from jigsaw_crl.baseline.exact_search import smallest_tight_set
from jigsaw_crl.baseline.planes import Planes, Space, complement, dimension, project

__all__ = ["Block", "Blocks", "exact_blocks"]

Block = tuple[str, ...]
_Members = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Blocks:
    """The blocks of one client, their order and the latent basis: the output of Algorithm 2.

    Parameters
    ----------
    ancestors : mapping from block to frozenset of blocks
        Every ancestor block of each block of Ĉ_k, in the order in which they were found.
    Q : array, shape (m, n_features)
        Q̂_k, rows in the order of the labels.
    undivided : tuple of str
        Labels put into one last block because the budget ran out; empty otherwise.
    mismatch : int
        Exact moments only: dimension of the last block's space minus its number of labels. It is
        0 unless the client violates the paper's assumptions.
    """

    ancestors: Mapping[Block, frozenset[Block]]
    Q: FloatArray
    undivided: Block = ()
    mismatch: int = 0


def exact_blocks(planes: Planes, budget: Budget) -> Blocks:
    """Blocks of a client from exact moments: Algorithm 2."""
    m, p, _ = planes.vectors.shape
    ancestors: dict[_Members, frozenset[_Members]] = {}  # line 1: ℐ₀ ← ∅
    spaces: dict[_Members, FloatArray] = {}  # in whitened coordinates
    rows: dict[_Members, FloatArray] = {}  # q̂, in X-space
    remaining = list(range(m))  # line 1: R₀
    undivided: _Members = ()
    mismatch, error = 0, 0.0
    while remaining:  # line 2
        N = complement(p, spaces.values())  # line 5: W_t
        space = project(planes, remaining, N, error)
        try:
            chosen = smallest_tight_set(space, budget)  # lines 3 to 12
        except BudgetSpent:
            chosen, undivided = tuple(range(len(remaining))), tuple(remaining)
        members = tuple(remaining[i] for i in chosen)
        mismatch = int(dimension(space, [chosen])[0]) - len(chosen)
        involved = _ancestors(members, planes, spaces, error)  # line 13: Algorithm 1
        above = frozenset(involved).union(*(ancestors[b] for b in involved))
        ancestors[members] = above  # line 14
        spaces[members], smallest = _own_space(space, chosen, N)
        # If the vectors add only σ in the new direction, their error e tilts it by e/σ.
        error = max(error, float(np.linalg.norm(space.errors[list(chosen)])) / smallest)
        rows[members] = _basis(  # line 13 again: q̂ of Ĉ
            spaces[members], [rows[b] for b in above], planes.to_features
        )
        remaining = [i for i in remaining if i not in members]  # lines 16 to 18
    Q = np.zeros((m, len(planes.to_features)))
    for members, own in rows.items():
        Q[list(members)] = own

    def named(members: _Members) -> Block:
        return tuple(planes.labels[i] for i in members)

    found = {named(b): frozenset(map(named, above)) for b, above in ancestors.items()}
    return Blocks(found, Q, named(undivided), mismatch)  # lines 15, 20 and 21


def _ancestors(
    members: _Members, planes: Planes, spaces: Mapping[_Members, FloatArray], error: float
) -> list[_Members]:
    """Earlier blocks that the changes of Ĉ involve: Algorithm 1, lines 1 to 8, on exact moments.

    Parameters
    ----------
    members : tuple of int
        Ĉ, as positions of labels.
    planes : Planes
    spaces : mapping from block to array, shape (p, |B|)
        Orthonormal basis of each earlier block's space in whitened coordinates, where the spaces of
        different blocks are orthogonal.
    error : float
        Bound on the error of those bases.

    Returns
    -------
    list of blocks
        𝒜. Ancestors of these blocks are ancestors of Ĉ too; Algorithm 2 adds them.
    """
    p = planes.vectors.shape[1]
    found = list(spaces)
    ancestors = list(found)  # line 1: 𝒜 ← ℐ
    for B in found:  # line 2
        N = complement(p, [spaces[b] for b in found if b != B])  # line 3: W₋B
        V = project(planes, members, N, error)  # line 4: P(Ĉ; W₋B)
        # line 5 asks for equality; fewer dimensions occur only if an intervention has no effect.
        if dimension(V, [range(len(members))])[0] <= len(members):
            ancestors.remove(B)  # line 6
    return ancestors  # lines 9 and 10 are in `_basis`


def _basis(
    space: FloatArray, ancestor_rows: Sequence[FloatArray], to_features: FloatArray
) -> FloatArray:
    """Rows q̂ of Ĉ in X-space, shape (|Ĉ|, n_features): Algorithm 1, lines 9 and 10.

    Parameters
    ----------
    space : array, shape (p, |Ĉ|)
        Ĉ's own space in whitened coordinates. Modulo the rows W of the ancestor blocks it equals
        the span of the changes of Ĉ, so either may be projected.
    ancestor_rows : sequence of arrays, shape (|B|, n_features)
        q̂ of every ancestor block. The paper prints 𝒜 only, which may miss an ancestor when rows of
        H are orthogonal; the definition of Q asks for all ancestors.
    to_features : array, shape (n_features, p)
    """
    rows = (to_features @ space).T
    # Equal lengths: otherwise the directions of short rows drown in the rounding of long ones.
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    if ancestor_rows:
        W = np.linalg.qr(np.concatenate(ancestor_rows).T)[0]  # line 9
        for _ in range(2):  # the second pass removes the rounding error of the first
            rows = rows - (rows @ W) @ W.T
    V: FloatArray = np.linalg.svd(rows, full_matrices=False)[2]
    return V  # line 10


def _own_space(space: Space, chosen: tuple[int, ...], N: FloatArray) -> tuple[FloatArray, float]:
    """The |Ĉ| leading directions of P(Ĉ; W_t), whitened, and the smallest singular value."""
    vectors = np.concatenate(list(space.vectors[list(chosen)]), axis=1)
    left, sigma, _ = np.linalg.svd(vectors)
    r = len(chosen)
    smallest = float(sigma[r - 1]) if len(sigma) >= r else 0.0
    # An intervention without effect leaves no direction; 1 avoids a division by zero.
    return N @ left[:, :r], smallest if smallest > np.sqrt(np.finfo(np.float64).eps) else 1.0
