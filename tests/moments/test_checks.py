"""Which rows and matrices are accepted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.moments.checks import check_rows, check_second_moment


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 8), st.floats(-60, 60))
def test_covariances_of_any_scale_and_rank_are_accepted_and_made_symmetric(seed, d, n, scale):
    rng = np.random.default_rng(seed)
    rows = 10.0**scale * rng.normal(size=(n, d))
    covariance = rows.T @ rows
    written = covariance * (1 + 1e-10 * rng.normal(size=(d, d)))
    found = check_second_moment(written, client="lab", regime="valve")
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, covariance, rtol=1e-8, atol=0)


def test_numeric_arrays_are_neither_copied_nor_converted():
    for kind in (np.float32, np.float64, np.int16, np.bool_):
        rows = np.ones((3, 2), dtype=kind)
        assert check_rows(rows) is rows
