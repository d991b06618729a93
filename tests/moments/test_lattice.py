"""The step to which columns were rounded, found when rows are read."""

import numpy as np
import pytest

from jigsaw_crl.moments.accumulator import Accumulator
from jigsaw_crl.moments.lattice import common_steps, steps_of
from jigsaw_crl.moments.preparing import RowOptions
from jigsaw_crl.moments.regime import Moments

# Standard deviations of columns in steps: from hardly any levels to many.
SPREADS = np.array([0.8, 1.0, 3.0, 20.0, 100.0])


def rounded(seed, rows=400):
    return np.round(np.random.default_rng(seed).normal(size=(rows, 5)) * SPREADS)


@pytest.mark.parametrize("step", [1.0, 0.1, 0.0254, 250.0])
@pytest.mark.parametrize("offset", [0.0, 7.3, -1000.0])
def test_the_step_is_found_whatever_the_unit_and_the_offset(step, offset):
    for seed in range(5):
        found = rounded(seed) * step + offset
        np.testing.assert_allclose(steps_of(found), step, rtol=1e-6)
        found[::7, :] = np.nan  # passed over
        np.testing.assert_allclose(steps_of(found), step, rtol=1e-6)


@pytest.mark.parametrize("rows", [5, 20, 400])
def test_columns_that_were_not_rounded_have_no_step(rows):
    rng = np.random.default_rng(rows)
    assert not any(steps_of(rng.normal(size=(rows, 5))).any() for _ in range(200))

    assert not steps_of(rng.integers(0, 3, size=(100, 4)).astype(float)).any()  # three values


def test_rows_with_different_steps_have_the_finer_one_or_none():
    a, b = np.array([1.0, 2.0, 1.0, 0.0]), np.array([1.0, 0.5, 0.7, 1.0])
    assert common_steps([a, b]).tolist() == [1.0, 0.5, 0.0, 0.0]
    assert common_steps([a, None]) is None


def test_moments_keep_the_step_however_their_rows_were_cut_into_chunks():
    rows = rounded(1, 3_000) / 4
    whole = Moments.from_rows(rows)
    np.testing.assert_allclose(whole.step, 0.25)
    for size in (1, 333, 2_000):
        parts = Accumulator(5)
        for start in range(0, len(rows), size):
            parts.add(rows[start : start + size])
        assert parts.moments().step.tolist() == whole.step.tolist()
    grouped = Accumulator(5, RowOptions(grouped=True))
    grouped.add(rows, ([str(i) for i in range(10)], np.arange(len(rows)) % 10))
    np.testing.assert_allclose(grouped.moments().step, 0.25)
    halves = [Moments.from_rows(half) for half in (rows[:1_500], rows[1_500:])]
    np.testing.assert_allclose(halves[0].merge(halves[1]).step, 0.25)
    np.testing.assert_allclose(Moments.of_batches(dict(zip("ab", halves, strict=True))).step, 0.25)
    assert whole.select(np.array([3, 1])).step.shape == (2,)
