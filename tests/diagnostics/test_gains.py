"""Gains that differ between regimes are named, and nothing else is taken for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client

CHECK = "drifting-gains"


def checks_of(departures, seed=6_100_000, n=10_000):
    world = jc.simulate.random_world(12, 2, 0.6, seed)
    clients = world.clients(n, seed=seed, departures=departures)
    return [{f.check for f in check_client(c).findings} for c in clients]


def test_drifting_gains_are_named_and_explain_what_they_look_like():
    for found in checks_of(["gain-drift=0.01"]):
        assert CHECK in found
        assert not found & {"several-targets", "uneven-noise"}


@pytest.mark.parametrize(
    "departures",
    [
        ["uneven-sensors=100x0.05"],
        ["nonlinear-sensors=0.25"],
        ["t-noise=3"],
        ["batch-offsets=0.3"],
        ["off-target=1x0.3"],
    ],
)
def test_other_departures_are_not_taken_for_drifting_gains(departures):
    assert all(CHECK not in found for found in checks_of(departures))


def held_pump(rng, n=5_000):
    """Pump → valve → flow by six sensors of perfect gains; the pump is held at sd .05."""

    def rows(pump=1.0, valve=1.0, flow=1.0, m=n):
        a = pump * rng.normal(size=m)
        b = (valve == 1.0) * 0.8 * a + valve * rng.normal(size=m)
        c = (flow == 1.0) * 0.8 * b + flow * rng.normal(size=m)
        return np.column_stack([a, b, c]) @ G + 0.1 * rng.normal(size=(m, 6))

    G = rng.normal(size=(3, 6))
    held = {"pump": rows(pump=0.05), "valve": rows(valve=0.05), "flow": rows(flow=0.05)}
    return jc.Client.from_samples("plant", observational=rows(), interventions=held)


@pytest.mark.slow
def test_an_intervention_that_holds_its_target_is_no_drift():
    for seed in range(20):
        client = held_pump(np.random.default_rng(seed))
        assert CHECK not in {f.check for f in check_client(client).findings}
        assert set(jc.recover_fragment(client).labels) == {"pump", "valve", "flow"}


def test_a_regime_of_few_rows_does_not_turn_the_check_off():
    world = jc.simulate.random_world(6, 1, 1.0, 6_100_002)
    client = world.client(0, 10_000, seed=1, departures=["gain-drift=0.05"])
    label = client.labels[0]
    few = replace(client.interventions[label][0], n=12)
    shorter = jc.Client.from_moments(
        "lab", control=client.control, interventions={**client.interventions, label: few}
    )
    assert CHECK in {f.check for f in check_client(shorter).findings}


def test_a_study_of_drifting_gains_is_refused_with_that_reason():
    world = jc.simulate.random_world(12, 4, 0.6, 6_100_001)
    with pytest.raises(jc.InputError, match="gains differ between regimes"):
        jc.recover(world.clients(10_000, departures=["gain-drift=0.05"]))
