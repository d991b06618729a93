"""Gains that differ between regimes are named, and nothing else is taken for them."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client

CHECK = "drifting-gains"


def checks_of(departures, seed=6_100_000, n=10_000):
    world = jc.simulate.random_world(12, 4, 0.6, seed)
    clients = world.clients(n, seed=seed, departures=departures)
    return [{f.check for f in check_client(c).findings} for c in clients]


@pytest.mark.parametrize("size", ["0.01", "0.05"])
def test_drifting_gains_are_named_and_explain_what_they_look_like(size):
    for found in checks_of([f"gain-drift={size}"]):
        assert CHECK in found
        assert not found & {"several-targets", "uneven-noise"}


@pytest.mark.parametrize(
    "departures",
    [
        [],
        ["uneven-sensors=100x0.05"],
        ["nonlinear-sensors=0.25"],
        ["t-noise=3"],
        ["batch-offsets=0.3"],
        ["off-target=1x0.3"],
    ],
)
def test_other_departures_are_not_taken_for_drifting_gains(departures):
    assert all(CHECK not in found for found in checks_of(departures))


@pytest.mark.parametrize("n", [300, 1_000, 10_000])
def test_no_false_alarm_on_clean_rows(n):
    for seed in range(6_100_010, 6_100_020):
        assert all(CHECK not in found for found in checks_of([], seed, n))


def test_a_study_of_drifting_gains_is_refused_with_that_reason():
    world = jc.simulate.random_world(12, 4, 0.6, 6_100_001)
    with pytest.raises(jc.InputError, match="gains differ between regimes"):
        jc.recover(world.clients(10_000, departures=["gain-drift=0.05"]))
