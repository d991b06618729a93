"""The noise of sensors, and the step to which they round, on every road to a client."""

import numpy as np
import pytest

import jigsaw_crl as jc

from .tables import frame_of, regimes_of


def test_a_manifest_states_the_noise_of_all_sensors_or_of_each(folder):
    path = folder / "study.toml"
    path.write_text("sensor_noise = 0.5")
    (client,) = jc.read_study(folder).clients
    assert dict(client.sensor_noise) == dict.fromkeys(client.features, 0.5)
    np.testing.assert_allclose(client.white.space.sensors, 0.25)
    first = client.features[0]
    path.write_text(f"sensor_noise = 0.5\n[clients.lab1]\nsensor_noise = {{{first} = 2}}")
    (client,) = jc.read_study(folder).clients
    assert dict(client.sensor_noise) == {first: 2.0}
    # The noise of the others is not known.
    assert not np.isclose(client.white.space.sensors, 0.25).any()


def test_python_states_it_on_every_road(folder):
    frame = frame_of(regimes_of())
    read = jc.read_client(folder / "lab1.csv", sensor_noise=0.5)
    table = jc.Client.from_table(frame, name="lab1", sensor_noise=0.5)
    moments = jc.Client.from_moments(
        "lab1",
        control=table.control,
        interventions=table.interventions,
        features=table.features,
        sensor_noise=dict.fromkeys(table.features, 0.5),
    )
    assert dict(read.sensor_noise) == dict(table.sensor_noise) == dict(moments.sensor_noise)
    with pytest.raises(jc.InputError, match="no feature 'nobody'"):
        jc.read_client(folder / "lab1.csv", sensor_noise={"nobody": 1.0})
