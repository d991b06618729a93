"""The checkers of Assumptions 1, 2 and 3."""

from itertools import combinations

import numpy as np
from assumptions import check_assumptions, fully_indecomposable
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.truth.simulate import Change, Intervention, setting, world_from_graph


def test_the_paper_s_settings_meet_all_three_assumptions():
    for name in "ABC":
        for seed in range(3):
            report = check_assumptions(setting(name, seed))
            assert report.holds == {1: True, 2: True, 3: True}, str(report)
            assert report.unseen == ()


def test_interventions_that_leave_the_weights_alone_break_assumption_2():
    report = check_assumptions(setting("A", seed=0, intervention="noise-only"))
    assert report.holds == {1: True, 2: False, 3: True}
    assert {d.condition for d in report.degenerate} == {"i", "ii", "iii"}


def test_a_change_that_cancels_along_two_paths_is_found(monkeypatch):
    # a -> t directly and through the hidden h; the change moves both weights so that the total
    # effect of a on t stays what it was: condition (i) fails for the pair.
    A = np.zeros((3, 3))
    A[1, 0], A[1, 2], A[2, 0] = 0.5, 0.5, 1.0
    world = world_from_graph(A, [["a", "t"]], None, 0, names=["a", "t", "h"])
    report = check_assumptions(world)
    assert report.holds[2]
    assert report.unseen == ("h",)

    def cancelling(self, sem, target, rng, dose=0, sign=None):
        weights = np.where(sem.A[target] != 0, [1.0, 0.0, -1.0], 0.0)
        return Change(target, weights, 1.0)

    monkeypatch.setattr(Intervention, "draw", cancelling)
    (failure,) = check_assumptions(world).degenerate
    assert (failure.condition, failure.labels) == ("i", {"a", "t"})


@given(st.integers(1, 6), st.floats(0.2, 0.9), st.integers(0, 2**32 - 1))
def test_condition_iii_equals_a_search_over_all_subsets(size, density, seed):
    pattern = np.random.default_rng(seed).random((size, size)) < density
    expected = all(
        pattern[list(rows)].any(axis=0).sum() > count
        for count in range(1, size)
        for rows in combinations(range(size), count)
    )
    assert fully_indecomposable(pattern) == expected
