"""The choice of τ."""

from __future__ import annotations

import pytest

from jigsaw_crl import baseline
from jigsaw_crl.base.errors import InputError


def test_the_threshold_of_highest_mean_score_is_chosen():
    runs = [lambda tau: -((tau - 0.02) ** 2), lambda tau: -((tau - 0.04) ** 2)]
    assert baseline.calibrate_tau(runs) == 0.03
    assert baseline.calibrate_tau(iter(runs), grid=[0.01, 0.2]) == 0.01
    assert [round(100 * tau) for tau in baseline.TAU_GRID] == list(range(1, 11))


def test_among_equal_scores_the_threshold_nearest_to_the_default_is_chosen():
    assert baseline.calibrate_tau([lambda _: 1.0]) == baseline.DEFAULT_TAU == 0.05
    assert baseline.calibrate_tau([lambda _: 1.0], grid=[0.06, 0.04, 0.01]) == 0.04


@pytest.mark.parametrize(
    ("runs", "grid", "message"),
    [
        ([], baseline.TAU_GRID, "nothing to calibrate"),
        ([lambda _: 1.0], [], "nothing to calibrate"),
        ([lambda _: 1.0], [0.1, 2.0], "tau is 2.0"),
        ([lambda _: float("nan")], baseline.TAU_GRID, "nothing to calibrate"),
    ],
)
def test_a_calibration_without_usable_runs_or_grid_is_refused(runs, grid, message):
    with pytest.raises(InputError, match=message):
        baseline.calibrate_tau(runs, grid)
