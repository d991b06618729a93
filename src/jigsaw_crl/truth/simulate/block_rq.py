"""Algorithm 4 of the paper: the block RQ decomposition, `H = R Q`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jigsaw_crl.base.arrays import BoolArray, FloatArray

__all__ = ["block_rq"]


def block_rq(
    H: FloatArray, blocks: Sequence[Sequence[int]], order: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Factor `H = R Q` along the block order.

    R is zero outside a block's own columns and those of its ancestor blocks; the rows of Q have
    unit norm, and a block's rows are orthogonal to those of its ancestor blocks.

    Parameters
    ----------
    H : array, shape (p, n_features)
        Full row rank.
    blocks : sequence of sequence of int
        A partition of the rows.
    order : array of bool, shape (n_blocks, n_blocks)
        `order[a, d]`: block a is an ancestor of block d; closed.

    Returns
    -------
    R : array, shape (p, p)
    Q : array, shape (p, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from jigsaw_crl.truth.simulate.block_rq import block_rq
    >>> H = np.array([[3.0, 4.0], [0.0, 2.0]])
    >>> R, Q = block_rq(H, [[0], [1]], np.array([[False, False], [True, False]]))
    >>> Q.tolist(), R.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [[3.0, 4.0], [0.0, 2.0]])
    """
    R = np.zeros((len(H), len(H)))
    Q = np.zeros_like(H)
    # Ancestors first: in a closed order an ancestor has strictly fewer ancestors.
    for block in np.argsort(order.sum(axis=0), kind="stable").tolist():
        own = list(blocks[block])
        above = [i for a in np.flatnonzero(order[:, block]).tolist() for i in blocks[a]]
        rows = H[own]
        if above:
            basis, _ = np.linalg.qr(Q[above].T)
            # Twice, because one projection leaves rounding of the size of what it removed.
            for _ in range(2):
                rows = rows - (rows @ basis) @ basis.T
        Q[own] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        span = own + above
        R[np.ix_(own, span)] = np.linalg.lstsq(Q[span].T, H[own].T, rcond=None)[0].T
    return R, Q
