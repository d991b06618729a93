"""Rows that lie farthest out are left out as a whole."""

import numpy as np

from jigsaw_crl.moments.accumulator import Accumulator
from jigsaw_crl.moments.preparing import RowOptions, inner_rows
from jigsaw_crl.moments.regime import Moments


def correlated(n, seed, d=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ np.random.default_rng(9).normal(size=(d, d))


def test_spoilt_rows_are_the_ones_left_out():
    rows = correlated(2000, 0)
    spoilt = np.random.default_rng(1).choice(2000, size=20, replace=False)
    rows[spoilt] *= 10
    kept = inner_rows(rows, 0.05)
    assert np.count_nonzero(~kept) == 100
    # A few of the multiplied rows were near the centre and still are.
    assert np.count_nonzero(kept[spoilt]) <= 2


def test_spoilt_rows_that_mask_one_another_are_found():
    rows = correlated(1000, 2)
    rows[:200] = 30 + 0.1 * rows[:200]
    assert not inner_rows(rows, 0.3)[:200].any()


def test_an_accumulator_that_trims_gives_the_moments_of_the_rows_that_stay():
    rows = correlated(700, 5)
    stream = Accumulator(5, RowOptions(trim=0.1))
    for chunk in (rows[:100], rows[100:101], rows[101:]):
        stream.add(chunk)
    found, expected = stream.moments(), Moments.from_rows(rows[inner_rows(rows, 0.1)])
    assert found.n == expected.n == 630
    assert stream.left_out == 70
    np.testing.assert_allclose(found.covariance, expected.covariance, rtol=1e-12)
