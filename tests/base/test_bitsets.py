"""Orders as bit sets, and the greedy order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.bitsets import greedy_order, pack, unpack
from jigsaw_crl.base.order import transitive_closure


@pytest.mark.parametrize("m", [1, 5, 64, 65, 130])
def test_packing_into_words_is_undone_by_unpacking(m):
    matrix = np.random.default_rng(m).random((7, m)) < 0.3
    np.testing.assert_array_equal(unpack(pack(matrix), m), matrix)


@given(seed=st.integers(0, 10_000), p=st.integers(2, 12), grown=st.booleans())
def test_the_greedy_order_adds_pairs_by_weight_while_their_closure_gains(seed, p, grown):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(p, p)) * 3
    start = transitive_closure(np.triu(rng.random((p, p)) < 0.2, 1))
    order = start.copy() if grown else np.zeros((p, p), dtype=bool)
    found = greedy_order(weight, order if grown else None)
    off = ~np.eye(p, dtype=bool)
    for a, d in sorted(np.argwhere((weight > 0) & off).tolist(), key=lambda ad: -weight[*ad]):
        tried = order.copy()
        tried[a, d] = True
        tried = transitive_closure(tried)
        if not np.diagonal(tried).any() and weight[tried & ~order].sum() > 0:
            order = tried
    np.testing.assert_array_equal(found, order)
