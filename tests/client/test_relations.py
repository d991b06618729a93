"""A sensor that bends breaks relations between sensors, and the client is read without it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client
from jigsaw_crl.study import write_moments

NAMES = ("pump", "valve", "flow", "tank")
CHAIN = np.diag([0.9, -1.1, 0.8], k=-1)
HARD = jc.simulate.Intervention("hard", shift=1.0, raises=True)


def rows(seed, sensors=9, *, n=6_000, intervention="paper", departures=("sensor-noise=0.01",)):
    world = jc.simulate.world_from_graph(
        CHAIN, [NAMES], [sensors], seed=seed, names=NAMES, intervention=intervention
    )
    return world.sample(0, n, seed=seed, departures=departures)


def bent(drawn, *sensors, how=np.tanh):
    """The rows with some sensors bent, in standard deviations about their means."""
    centre, spread = drawn.tables[0].mean(axis=0), drawn.tables[0].std(axis=0)
    tables = []
    for x in drawn.tables:
        z = (x - centre) / spread
        z[:, list(sensors)] = how(z[:, list(sensors)])
        tables.append(centre + spread * z)
    return replace(drawn, tables=tuple(tables))


def client(drawn, **more):
    return jc.Client.from_samples("plant", **drawn.arguments(), **more)


@pytest.mark.parametrize("intervention", ["paper", HARD])
@pytest.mark.parametrize("noise", [(), ("sensor-noise=0.01",)])
@pytest.mark.parametrize("how", [np.tanh, lambda z: np.exp(0.5 * z)])
def test_a_bent_sensor_is_named_and_is_no_latent(intervention, noise, how):
    for seed in range(3):
        drawn = rows(seed, intervention=intervention, departures=noise)
        found = client(bent(drawn, seed, how=how))
        assert set(found.bent) == {f"x{seed + 1}"}
        assert found.n_latent == 4
        assert found.columns == found.features == tuple(f"x{i + 1}" for i in range(9))
        assert not client(drawn).bent


def test_two_bent_sensors_are_named_where_enough_are_left():
    found = client(bent(rows(0, 12), 2, 7), n_latent=4)
    assert set(found.bent) == {"x3", "x8"}


def test_nothing_is_named_without_two_relations():
    assert not client(bent(rows(0, 5), 2), n_latent=4).bent


def test_with_few_relations_no_sensor_is_named_in_place_of_another():
    for seed in range(12):
        found = client(bent(rows(seed, 6), seed % 6), n_latent=4)
        assert set(found.bent) <= {f"x{seed % 6 + 1}"}


@pytest.mark.parametrize(
    "departure",
    [
        "gain-drift=0.02",
        "batch-offsets=0.1",
        "outliers=0.01x10",
        "t-noise=3",
        "penetrance=0.5",
        "nonlinear-sensors=0.25",
    ],
)
def test_other_departures_bend_no_sensor(departure):
    for seed in range(5):
        drawn = rows(seed, departures=("sensor-noise=0.02", departure))
        assert not client(drawn).bent


@pytest.mark.parametrize(
    ("hidden", "more"), [(0, {"features": 2.0, "system": "squares"}), (2, {"features": 1.5})]
)
def test_a_nonlinear_system_and_hidden_latents_bend_no_sensor(hidden, more):
    for seed in range(8):
        world = jc.simulate.random_world(6, 1, 1.0, seed, **more)
        noise = ["sensor-noise=0.02"]
        assert not client(
            world.sample(0, 6_000, seed=seed, labels=world.labels[hidden:], departures=noise)
        ).bent


def test_units_and_the_order_of_sensors_do_not_matter():
    drawn, units = bent(rows(1), 3), 10.0 ** np.arange(-4, 5)
    turned = replace(drawn, tables=tuple((x * units)[:, ::-1] for x in drawn.tables))
    one, other = (client(x, n_latent=4).bent for x in (drawn, turned))
    assert one == {"x4": pytest.approx(other["x6"], rel=1e-6)}
    assert set(other) == {"x6"}


def test_the_bent_sensor_has_no_part_in_what_is_read():
    drawn = bent(rows(2, intervention=HARD), 4)
    plant = client(drawn, hard=True)
    assert np.all(plant.white.W[:, 4] == 0)
    fragment = jc.recover_fragment(plant)
    assert fragment.features == plant.columns
    z = fragment.transform(drawn.tables[0])
    spoilt = drawn.tables[0].copy()
    spoilt[:, 4] = 1e6
    np.testing.assert_array_equal(fragment.transform(spoilt), z)
    # The latents are those of the client that never had the sensor.
    others = np.delete(np.arange(9), 4)
    less = replace(drawn, tables=tuple(x[:, others] for x in drawn.tables))
    alone = jc.recover_fragment(client(less, hard=True))
    np.testing.assert_allclose(z, alone.transform(less.tables[0]), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fragment.bayes.log_factor, alone.bayes.log_factor, rtol=1e-6)


def test_a_bent_sensor_still_says_which_way_is_up():
    drawn = bent(rows(2, intervention=HARD), 4)
    first = client(drawn, hard=True)
    assert set(first.bent) == {"x5"}
    plants = [first.with_sensors(up={"pump": x}) for x in first.columns]
    ups = [jc.recover_fragment(plant).loadings for plant in plants]
    for sensor, table in zip(first.columns, ups, strict=True):
        row = table[(table.label == "pump") & (table.sensor == sensor)].iloc[0]
        assert row.response > 0
        assert row.up


def test_it_stays_without_a_label_and_through_a_file_of_moments(tmp_path):
    plant = client(bent(rows(1), 3))
    left = plant.without({"tank"})
    assert set(left.bent) == set(plant.bent) == {"x4"}
    assert np.all(left.white.W[:, 3] == 0)
    write_moments(plant, tmp_path / "plant.npz")
    again = jc.read_client(tmp_path / "plant.npz")
    assert set(again.bent) == set(plant.bent)
    assert again.features == plant.features


def test_tails_of_a_bent_sensor_do_not_cost_rows():
    drawn = bent(rows(1), 5, how=lambda z: np.exp(0.7 * z))
    plant = client(drawn)
    assert set(plant.bent) == {"x6"}
    assert all(m.n == m.rows for _, m in plant.named_regimes)
    assert any(m.n < m.rows for _, m in client(drawn, n_latent=8).named_regimes)


def test_the_answer_is_the_truth_where_all_sensors_gave_none():
    for seed in range(3):
        drawn = bent(rows(seed, departures=()), seed)
        order = jc.recover([client(drawn)]).order
        assert order.pairs() <= {(a, b) for i, a in enumerate(NAMES) for b in NAMES[i + 1 :]}
        assert len(order.pairs()) >= 3
        # With every sensor, as many latents as the bend makes of them.
        with pytest.raises(jc.InputError):
            jc.recover([client(drawn, n_latent=5)])


@pytest.mark.parametrize("intervention", ["paper", HARD])
@pytest.mark.parametrize(
    "column",
    [
        lambda x: np.full(len(x), 5.0),
        lambda x: np.full(len(x), x[0, 0]),
        lambda x: 1.8 * x[:, 2] + 32,
        lambda x: -1e-4 * x[:, 0],
    ],
    ids=["stuck", "setpoint", "copy", "flipped"],
)
def test_a_stuck_sensor_or_a_copy_in_other_units_changes_nothing(intervention, column):
    drawn = rows(0, intervention=intervention, departures=("sensor-noise=0.1",))
    tables = (np.c_[x, column(x)] for x in drawn.tables)
    spoilt = replace(drawn, tables=tuple(tables))
    plain, found = client(drawn), client(spoilt)
    assert dict(found.bent) == dict(client(spoilt, n_latent=4).bent) == {"x10": 0.0}
    assert found.n_latent == plain.n_latent == 4
    np.testing.assert_allclose(found.white.M, plain.white.M)
    told = {f.check: f for f in check_client(found).findings}
    assert told["idle-sensors"].severity == "info"
    assert "'x10': constant within every regime, or another feature" in told["idle-sensors"].message
    assert "more-latents" not in told


def test_without_noise_no_sensor_is_idle_because_all_say_the_same():
    drawn = rows(0, departures=())
    assert not client(drawn).bent
    one = [x[:, :1] * [1.0, 2.0, -3.0] for x in drawn.tables]
    assert not jc.Client.from_samples("a", observational=one[0], interventions={"b": one[1]}).bent


def test_the_loadings_of_a_stuck_sensor_are_zero(recwarn):
    drawn = rows(0)
    stuck = replace(drawn, tables=tuple(np.c_[x, np.full(len(x), 5.0)] for x in drawn.tables))
    found = jc.recover([client(stuck)])
    assert not recwarn.list
    loadings = found.fragments["plant"].loadings
    assert (loadings[loadings.sensor == "x10"].share == 0).all()
