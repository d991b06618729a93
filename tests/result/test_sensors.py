"""Named sensors say which way is up, units follow from them, and loadings stay at the site."""

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import write_moments

from ..study.tables import frame_of

CHAIN = np.diag([0.8, -0.9, 0.7], k=-1)
NAMES = ["pump", "valve", "flow", "tank"]
PLANTS = {"north": NAMES[:3], "south": NAMES[1:], "west": ["pump", "flow"], "east": NAMES[2:]}
# Total effects, and the standard deviations of the latents in the control.
TOTAL = np.linalg.inv(np.eye(4) - CHAIN)
SPREAD = np.sqrt(np.diagonal(TOTAL @ TOTAL.T))


def responses(world, k):
    """How far each feature moves with one standard deviation of each label, in truth."""
    truth = world.truth(k)
    own = [NAMES.index(label) for label in truth.labels]
    moved = truth.mixing @ TOTAL[own][:, own] * SPREAD[own]
    return pd.DataFrame(moved, [f"x{i + 1}" for i in range(len(moved))], truth.labels)


def plants(shift=1.0, seed=0, n=20_000, **up):
    """The clients; `up` has the labels of each plant for which a rising sensor is named."""
    cut = jc.simulate.Intervention("hard", shift=shift)
    sets = list(PLANTS.values())
    world = jc.simulate.world_from_graph(
        CHAIN, sets, [6, 6, 5, 4], seed, intervention=cut, names=NAMES, client_names=list(PLANTS)
    )
    clients = []
    for k, name in enumerate(PLANTS):
        named = {label: responses(world, k)[label].idxmax() for label in up.get(name, ())}
        units = {sensor: f"u{sensor}" for sensor in named.values()}
        client = world.client(k, n, seed=seed).with_interventions("hard")
        clients.append(client.with_sensors(named, units))
    return world, clients


ALL = {"north": ("pump", "valve"), "east": ("flow", "tank")}


@pytest.mark.parametrize("seed", range(4))
def test_effects_have_the_signs_of_the_system_once_sensors_say_which_way_is_up(seed):
    """Whatever the shifts are, and at sites that name no sensor too.

    Without shifts, effects across sites that name sensors for different labels have no sign.
    """
    for shift, fewest in ((1.0, 5), (0.0, 2)):
        _, clients = plants(shift, seed, None, **ALL)
        effects = jc.recover(clients).effects.set_index(["cause", "effect"])
        known = effects[effects.verdict == "ancestor"].total
        assert len(known) >= fewest
        for (a, d), total in known.items():
            i, j = NAMES.index(a), NAMES.index(d)
            assert total == pytest.approx(TOTAL[j, i] * SPREAD[i] / SPREAD[j], abs=1e-6)


def test_a_sensor_turns_labels_and_nothing_else():
    _, plain = plants()
    _, tied = plants(**ALL)
    before, after = (jc.recover(clients) for clients in (plain, tied))
    pd.testing.assert_frame_equal(before.order.to_frame(), after.order.to_frame())
    sizes = [abs(r.effects[["total", "standard_error"]]) for r in (before, after)]
    np.testing.assert_allclose(*sizes, rtol=0.02, atol=1e-3)
    # Files carry the direction, and no name of a sensor.
    sent = [jc.Fragment.from_json(f.to_json()) for f in after.fragments.values()]
    again = jc.assemble(sent)
    np.testing.assert_array_equal(again.effects.estimate, after.order.effects.estimate)
    assert not any("x1" in f.to_json() or "ux" in f.to_json() for f in after.fragments.values())


def test_loadings_are_the_responses_of_the_sensors():
    world, clients = plants(**ALL)
    result = jc.recover(clients)
    for k, (site, fragment) in enumerate(result.fragments.items()):
        truth, found = responses(world, k), fragment.loadings
        got = found.pivot(index="sensor", columns="label", values="response")
        turned = np.sign((got * truth).sum())
        np.testing.assert_allclose(got * turned, truth.loc[got.index, got.columns], atol=0.08)
        assert found.groupby("sensor")["share"].sum().max() < 1.05
        assert (result.loadings.site == site).sum() == len(found)
    named = result.loadings[result.loadings.up]
    assert sorted(named.label) == sorted(NAMES)
    assert (named.response > 0).all()
    row = result.effects.set_index(["cause", "effect"]).loc[("flow", "tank")]
    scale = named.set_index("label").response
    assert row.in_units == pytest.approx(row.total * scale["tank"] / scale["flow"])
    assert row.unit == "{} per {}".format(*named.set_index("label").unit[["tank", "flow"]])
    assert jc.assemble(list(result.fragments.values())).effects is not None
    assert jc.Fragment.from_json(result.fragments["north"].to_json()).loadings is None


def test_the_manifest_names_sensors_and_a_moments_file_keeps_them(tmp_path):
    world, _ = plants()
    frame = frame_of(world.sample(0, 500).regimes)
    frame.columns = [*"abcdef", "regime"]
    frame.to_csv(tmp_path / "north.csv", index=False)
    manifest = tmp_path / "study.toml"
    manifest.write_text('[up]\npump = "b"\n[units]\nb = "m3/h"\n')
    (client,) = jc.read_study(tmp_path).clients
    assert (dict(client.up), dict(client.units)) == ({"pump": "b"}, {"b": "m3/h"})
    kept = jc.read_client(write_moments(client, tmp_path / "north.moments.npz"))
    assert (dict(kept.up), dict(kept.units)) == ({"pump": "b"}, {"b": "m3/h"})
    (tmp_path / "north.moments.npz").unlink()
    manifest.write_text('[up]\npump = "g"\n')
    with pytest.raises(jc.InputError, match="no client has label 'pump' with a column 'g'"):
        jc.read_study(tmp_path)
    with pytest.raises(jc.InputError, match="no feature 'g'"):
        client.with_sensors({"pump": "g"})
