"""Which rows and matrices are accepted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.checks import check_rows, check_second_moment

PLACE = {"client": "lab", "regime": "valve"}


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(0, 8), st.floats(-60, 60))
def test_covariances_of_any_scale_and_rank_are_accepted_and_made_symmetric(seed, d, n, scale):
    rng = np.random.default_rng(seed)
    rows = 10.0**scale * rng.normal(size=(n, d))
    covariance = rows.T @ rows
    written = covariance * (1 + 1e-10 * rng.normal(size=(d, d)))
    found = check_second_moment(written, **PLACE)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found, covariance, rtol=1e-8, atol=0)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_asymmetric_and_indefinite_matrices_are_refused(seed, d):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(d, d))
    covariance = factor @ factor.T
    crooked = covariance.copy()
    crooked[0, 1] += 1e-3 * covariance.max()
    with pytest.raises(InputError, match="not symmetric"):
        check_second_moment(crooked, **PLACE)
    lowest = np.linalg.eigvalsh(covariance)[0]
    with pytest.raises(InputError, match="indefinite"):
        check_second_moment(covariance - (lowest + 1e-3 * covariance.max()) * np.eye(d), **PLACE)


def test_numeric_arrays_are_neither_copied_nor_converted():
    for kind in (np.float32, np.float64, np.int16, np.bool_):
        rows = np.ones((3, 2), dtype=kind)
        assert check_rows(rows) is rows
