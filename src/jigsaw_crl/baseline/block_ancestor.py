"""Algorithm 1, ID-Block-Ancestor, and its finite-sample version.

Given a new block Ĉ, find which earlier blocks are its ancestors and which directions are its own.
Comments give the line numbers of the paper; `literal` follows the paper more closely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jigsaw_crl.base.arrays import FloatArray
from jigsaw_crl.baseline.differences import Differences, ratio
from jigsaw_crl.baseline.planes import Planes, complement, dimension, project

__all__ = ["Block", "block_ancestors", "block_ancestors_fs", "block_basis"]

Block = tuple[int, ...]


def block_ancestors(
    members: Block, planes: Planes, spaces: Mapping[Block, FloatArray], error: float
) -> list[Block]:
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
    return ancestors  # lines 9 and 10 are in `block_basis`


def block_basis(
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


def block_ancestors_fs(
    members: Block, differences: Differences, rows: Mapping[Block, FloatArray], tau: float
) -> tuple[FloatArray, list[Block]]:
    """Rows q̂ of Ĉ and its ancestor blocks: Algorithm 1-FS, on estimates.

    Parameters
    ----------
    members : tuple of int
        Ĉ, as positions of labels.
    differences : Differences
    rows : mapping from block to array, shape (|B|, p)
        q̂ of each earlier block.
    tau : float

    Returns
    -------
    q : array, shape (|Ĉ|, p)
    ancestors : list of blocks
        𝒜.
    """
    p = differences.to_features.shape[1]
    found = list(rows)
    ancestors = list(found)  # line 1: 𝒜 ← ℐ
    M = differences.stacked(members)  # line 2: M̃(Ĉ)
    for B in found:  # line 3
        N = complement(p, [rows[b].T for b in found if b != B])  # line 4: W₋B
        rho = ratio(M @ N, len(members))  # lines 5 and 6: ρ(M₋B(Ĉ))
        if rho > 1.0 - tau:  # line 7: strictly, where Algorithm 2-FS accepts equality
            ancestors.remove(B)  # line 8
    N = complement(p, [rows[b].T for b in ancestors])  # line 11: W_anc
    right = np.linalg.svd(M @ N)[2]  # line 12: M
    q = right[: len(members)] @ N.T  # line 13: the top |Ĉ| right singular vectors
    return q, ancestors  # line 14
