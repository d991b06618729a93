"""The choice of τ."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc
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
        ([], baseline.TAU_GRID, "no run"),
        ([lambda _: 1.0], [], "grid of tau is empty"),
        ([lambda _: 1.0], [0.1, 2.0], "tau is 2.0"),
        ([lambda _: float("nan")], baseline.TAU_GRID, "nan or infinity"),
    ],
)
def test_a_calibration_without_usable_runs_or_grid_is_refused(runs, grid, message):
    with pytest.raises(InputError, match=message):
        baseline.calibrate_tau(runs, grid)


def test_the_calibrated_threshold_scores_at_least_as_well_as_the_ends_of_the_grid():
    def run(seed):
        world = jc.simulate.setting("A", seed)
        clients = [world.client(k, n_samples=10**6, seed=seed) for k in range(world.n_clients)]
        truths = [world.truth(k) for k in range(world.n_clients)]

        def score(tau):
            found = [baseline.recover_fragment(c, tau=tau) for c in clients]
            return (
                jc.metrics.global_f1(world.order, baseline.assemble_pairs(found).pairs)
                - jc.metrics.subspace_error(truths, found)
                - jc.metrics.support_leakage(truths, found)
            )

        return score

    runs = [run(seed) for seed in range(100, 105)]
    best = baseline.calibrate_tau(runs)
    mean = {tau: sum(r(tau) for r in runs) for tau in (best, 0.01, 0.1)}
    assert mean[best] == max(mean.values())
