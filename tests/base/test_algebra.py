"""Linear algebra of positive semi-definite matrices."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.algebra import fixed_rank_pinv


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 4))
def test_the_pseudo_inverse_of_known_rank_is_the_moore_penrose_one(seed, rank, spare):
    factor = np.random.default_rng(seed).normal(size=(rank + spare, rank))
    matrix = factor @ factor.T
    values = np.linalg.eigvalsh(matrix)
    inverse = fixed_rank_pinv(matrix, rank)
    assert np.array_equal(inverse, inverse.T)
    # Relative to what the conditioning allows.
    slack = 1e-12 * (values[-1] / values[-rank]) ** 2
    scale_m, scale_i = np.abs(matrix).max(), np.abs(inverse).max()
    assert np.abs(matrix @ inverse @ matrix - matrix).max() <= slack * scale_m
    assert np.abs(inverse @ matrix @ inverse - inverse).max() <= slack * scale_i
    if values[-1] / values[-rank] < 1e6:
        expected = np.linalg.pinv(matrix, hermitian=True, rcond=1e-9)
        assert np.allclose(inverse, expected, rtol=1e-6, atol=1e-7 * scale_i)
