"""Noise and gains of the sensors: the reason that is given is the true one."""

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc

from ..client.test_relations import bent
from .reports import checks, client

CHECK = "drifting-gains"


def checks_of(departures, seed=6_100_000, n=10_000):
    world = jc.simulate.random_world(12, 2, 0.6, seed)
    clients = world.clients(n, seed=seed, departures=departures)
    return [set(checks(c)) for c in clients]


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
    return client(rows(), held)


@pytest.mark.slow
def test_an_intervention_that_holds_its_target_is_no_drift():
    for seed in range(20):
        plant = held_pump(np.random.default_rng(seed))
        assert CHECK not in checks(plant)
        assert set(jc.recover_fragment(plant).labels) == {"pump", "valve", "flow"}


def test_a_regime_of_few_rows_does_not_turn_the_check_off():
    world = jc.simulate.random_world(6, 1, 1.0, 6_100_002)
    whole = world.client(0, 10_000, seed=1, departures=["gain-drift=0.05"])
    label = whole.labels[0]
    few = {**whole.interventions, label: replace(whole.interventions[label][0], n=12)}
    shorter = jc.Client.from_moments("lab", control=whole.control, interventions=few)
    assert CHECK in checks(shorter)


def uneven(n, features):
    """What is said of sensors of unequal noise."""
    rng = np.random.default_rng(0)
    G = rng.normal(size=(features, 3))
    size = np.geomspace(0.1, 10, features)

    def rows(gain):
        noise = size * rng.normal(size=(n, features))
        return (rng.normal(size=(n, 3)) * gain) @ G.T + noise

    regimes = {f"z{j}": rows(1 + 3 * np.eye(3)[j]) for j in range(3)}
    (f,) = checks(client(rows(1), regimes, n_latent=3))["uneven-noise"]
    return f"{f.message}. {f.remedy}"


def test_few_rows_are_not_called_few_features():
    few_rows = uneven(11, 30)
    assert "no regime counts for 12 rows" in few_rows
    assert "features are too few" not in few_rows
    assert "each feature is divided by the size of its noise" in uneven(2_000, 30)


def bent_sensor(bend, seed=6_100_000):
    """A client of which one sensor, x3, saturates about its mean."""
    world = jc.simulate.random_world(6, 1, 1.0, seed, features=2.0)
    rows = world.sample(0, 10_000, seed=seed, departures=["sensor-noise=0.002"])
    return bent(rows, 2, how=lambda z: np.tanh(bend * z) / bend).to_client()


@pytest.mark.parametrize("bend", [0.3, 1.0])
def test_a_sensor_that_bends_is_named_and_explains_what_it_looks_like(bend):
    one = bent_sensor(bend)
    found = checks(one)
    (told,) = found["bent-sensor"]
    assert told.severity == "warning"
    assert "the feature 'x3' breaks" in told.message
    assert told.value > told.threshold
    looks = {"several-targets", "not-linear", "light-tails", CHECK, "uneven-noise", "more-latents"}
    assert not looks & set(found)
    # Names of features do not leave the client.
    (shared,) = (f for f in jc.recover_fragment(one).findings if f.check == "bent-sensor")
    assert "x3" not in shared.message
    assert shared.message.startswith("a feature breaks")
