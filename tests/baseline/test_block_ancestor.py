"""Algorithm 1: ancestors of a block, against the literal version and the printed rule."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.block_ancestor import block_ancestors_fs
from jigsaw_crl.baseline.differences import Differences, differences_of

from .clients import SAMPLE_SIZES, SEEDS, TAUS, sampled_client


@given(SEEDS, SAMPLE_SIZES, TAUS)
def test_ancestors_and_rows_from_estimates_equal_the_literal_ones(seed, n, tau):
    client = sampled_client(seed, n)
    labels, differences = client.labels, differences_of(client)
    Theta, U = literal.precisions(client), differences_of(client).to_features
    # Earlier blocks: all labels but the last, one block each, with the rows of the literal run.
    C, I, q = (labels[-1],), [(x,) for x in labels[:-1]], {}
    for k, B in enumerate(I):
        q |= literal.id_block_ancestor_fs(B, Theta, I[:k], q, tau)[0]
    rows, above = literal.id_block_ancestor_fs(C, Theta, I, q, tau)
    ours, found = block_ancestors_fs(
        (len(labels) - 1,),
        differences,
        {(j,): (q[x] @ U)[None] for j, x in enumerate(labels[:-1])},
        tau,
    )
    assert [(labels[j],) for (j,) in found] == above
    literally = rows[C[0]] @ U
    np.testing.assert_allclose(np.outer(ours, ours), np.outer(literally, literally), atol=1e-6)


def test_an_ancestor_is_kept_when_the_ratio_equals_the_threshold():
    # The new block's change off the other blocks has σ = (3, 1), so its ratio is exactly 3/4.
    differences = Differences(("a", "b"), np.eye(2), (np.diag([1.0, 0.0]), np.diag([3.0, 1.0])))
    rows = {(0,): np.array([[0.0, 1.0]])}
    assert block_ancestors_fs((1,), differences, rows, 0.25)[1] == [(0,)]
    assert block_ancestors_fs((1,), differences, rows, 0.25 + 1e-9)[1] == []
