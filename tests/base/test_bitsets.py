"""Orders as bit sets."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl.base.bitsets import pack, unpack


@pytest.mark.parametrize("m", [1, 5, 64, 65, 130])
def test_packing_into_words_is_undone_by_unpacking(m):
    matrix = np.random.default_rng(m).random((7, m)) < 0.3
    np.testing.assert_array_equal(unpack(pack(matrix), m), matrix)
