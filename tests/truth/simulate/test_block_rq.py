"""The block RQ decomposition of random worlds."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from .strategies import worlds


@given(worlds)
def test_block_rq_has_the_supports_of_its_definition(world):
    for k in range(world.n_clients):
        truth = world.truth(k)
        assert np.allclose(truth.R @ truth.Q, truth.H, atol=1e-9 * np.abs(truth.H).max())
        assert np.allclose(np.linalg.norm(truth.Q, axis=1), 1)
        for i, row in enumerate(truth.labels):
            for j, column in enumerate(truth.labels):
                own, other = truth.block_of(row), truth.block_of(column)
                if truth.block_order.is_ancestor(other, own):
                    assert abs(truth.Q[i] @ truth.Q[j]) < 1e-10
                elif own != other:
                    assert truth.R[i, j] == 0
