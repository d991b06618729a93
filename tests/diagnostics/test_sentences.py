"""Sentences of findings on data for which other sentences would be false."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_client
from jigsaw_crl.diagnostics.findings import finding

from .reports import checks, client


def said(control, regimes):
    return {name: found[0] for name, found in checks(client(control, regimes)).items()}


def test_a_regime_whose_noisy_feature_moved_is_not_said_to_be_like_the_control():
    # The moved feature is noise alone, so the directions of the latents do not show it.
    rng = np.random.default_rng(5)
    loadings = np.array([[3.0, 3.0, -3.0, 0.0], [3.0, -3.0, 1.0, 0.0]])
    latents, noise = rng.normal(size=(3, 2_000, 2)), rng.normal(size=(3, 2_000, 4))
    control, same, moved = latents @ loadings + noise
    moved[:, 3] += 4.0
    plant = client(control, {"same": same, "moved": moved}, n_latent=2)
    told = check_client(plant).findings
    about = {f.regime: f.message for f in told if f.check == "weak-intervention"}
    assert "in the directions of the latents, so nothing" in about["same"]
    assert "(but in the mean of" in about["moved"]
    assert "standard errors" in about["moved"]
    (study,) = (f.message for f in told if f.check == "no-signal")
    assert "(but in the mean of" in study


def test_a_claim_of_hard_that_fails_is_not_blamed_on_the_intervention_alone():
    # Noise and bent responses look so too: in a chamber all interventions were hard.
    told = finding("not-hard", 3.0, 2.0, client="lab", regime="pump").message
    assert "noise of the sensors" in told
    assert "not linear" in told


def test_noise_is_compared_with_each_features_own_variance():
    # Two latents, six sensors with the same relative noise in units from 1 to 1,000.
    rng = np.random.default_rng(6)
    mixing = rng.normal(size=(6, 2))
    mixing *= (2.0 / np.linalg.norm(mixing, axis=1))[:, None]
    units = np.array([1.0, 1.0, 30.0, 30.0, 1e3, 1e3])

    def rows(change, noise):
        latents = rng.normal(size=(20_000, 2)) * change
        return (latents @ mixing.T + noise * rng.normal(size=(20_000, 6))) * units

    regimes = ([1, 1], [2, 1], [1, 2])
    control, one, two = (rows(np.array(c), 0.3) for c in regimes)
    assert "uneven-noise" not in said(control, {"a": one, "b": two})
    uneven = np.array([0.1, 0.1, 0.1, 0.8, 0.8, 0.8])
    control, one, two = (rows(np.array(c), uneven) for c in regimes)
    message = said(control, {"a": one, "b": two})["uneven-noise"].message
    assert "%" in message
    assert "e+" not in message


@pytest.mark.parametrize("share", [0.002, 0.03])
def test_a_code_for_missing_readings_is_named(share):
    rng = np.random.default_rng(7)
    control, regime = rng.normal(10.0, 2.0, size=(2, 3_000, 3))
    regime[:, 0] *= 2.0
    control[rng.random(3_000) < share, 1] = -9999.0
    found = said(control, {"pump": regime})
    assert "-9999" in found["missing-code"].message
    assert "--drop-missing" in found["missing-code"].remedy
    assert not {"heavy-tails", "outliers"} & found.keys()


def test_outliers_that_are_no_code_are_not_called_one():
    rng = np.random.default_rng(8)
    control, regime = rng.normal(size=(2, 3_000, 3))
    control[:4, 1] = [700.0, -650.0, 420.0, 380.0]
    found = said(control, {"pump": 2.0 * regime})
    assert "missing-code" not in found
    assert {"outliers", "heavy-tails"} & found.keys()


def plant(seed, n, top):
    """A chain through six sensors, the third of which stops at a quantile of the control."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(3, 6))

    def rows(j):
        z = rng.normal(size=(n, 3))
        z[:, 1] += 0.8 * z[:, 0]
        z[:, 2] += 0.7 * z[:, 1]
        z[:, j] = 2 * z[:, j] + 1
        return z @ G + 0.1 * rng.normal(size=(n, 6))

    control, *rest = (rows(j) for j in ([], 0, 1, 2))
    stop = np.quantile(control[:, 2], top)
    for x in (control, *rest):
        x[:, 2] = np.minimum(x[:, 2], stop)
    return control, dict(zip("abc", rest, strict=True)), stop


@pytest.mark.parametrize("top", [0.8, 0.95])
def test_a_sensor_that_is_clipped_at_its_maximum_is_named_with_the_value_and_the_remedy(top):
    for seed in range(2):
        control, rest, stop = plant(seed, 10_000, top)
        found = said(control, rest)
        message = found["clipped"].message
        assert message.startswith("the readings of 'x3' stop at about")
        assert float(message.split("about ")[1].split(",")[0]) == pytest.approx(stop, rel=0.03)
        assert "--ignore" in found["clipped"].remedy
        assert not {"drifting-control", "heavy-tails", "outliers"} & found.keys()


@pytest.mark.parametrize(
    "departure",
    ["lognormal-noise=1", "nonlinear-sensors=0.25", "nonlinear-system=0.5", "t-noise=3"],
)
def test_skewed_or_saturated_sensors_are_not_called_clipped(departure):
    for seed in range(3):
        world = jc.simulate.random_world(8, 1, 0.7, seed)
        assert "clipped" not in checks(
            world.sample(0, 5_000, seed=seed, departures=[departure]).to_client()
        )


def test_noise_above_the_signal_that_is_not_known_either_leaves_nothing_to_state():
    # Fewer directions stand out of the noise than there are labels, as in a screen of few cells.
    rng = np.random.default_rng(1)
    G, sizes = 0.3 * rng.normal(size=(14, 6)), np.geomspace(0.7, 2.0, 14)

    def rows(n, gain):
        return (rng.normal(size=(n, 6)) * gain) @ G.T + sizes * rng.normal(size=(n, 14))

    screen = client(rows(600, 1), {f"g{j}": rows(150, 1 + 2 * np.eye(6)[j]) for j in range(6)})
    with pytest.raises(jc.InputError, match="what is read could be noise"):
        jc.recover([screen])


@pytest.mark.parametrize("spare", [0, 2])
@pytest.mark.parametrize("kinds", [None, "hard"])
def test_the_light_tunnel_gets_the_same_sentences_at_twice_the_shift_and_no_false_one(spare, kinds):
    tables = jc.datasets.light_tunnel()
    rows = {name: table.to_numpy(dtype=float) for name, table in tables.items()}
    control, truth = rows.pop("control"), jc.datasets.light_tunnel_order()
    G = np.random.default_rng(0).normal(size=(5, 5 + spare))
    told = []
    for times in (1.0, 2.0):
        moved = {
            x: (v + (times - 1) * (v.mean(axis=0) - control.mean(axis=0))) @ G
            for x, v in rows.items()
        }
        result = jc.recover([client(control @ G, moved)], interventions=kinds)
        told.append({f.check for f in result.diagnostics})
        counts = jc.metrics.verdict_counts(truth, result.order)
        assert counts.wrong_yes == counts.wrong_no == 0
    # Single targets, linear responses, no hidden cause: only the missing spare sensors are named.
    assert told == [set() if spare else {"unseen-latents"}] * 2


def test_sensor_offsets_in_one_regime_are_called_a_shift_of_the_mean_alone():
    """A regime that moves sensors and no latent says nothing about hidden causes."""
    names = ("a", "b", "c", "d")
    chain = np.diag([0.9, -1.1, 0.8], k=-1)
    world = jc.simulate.world_from_graph(chain, [names], (8,), seed=9, names=names)
    control, regimes = world.rows(0, 10_000, seed=0)
    offset = world.rows(0, 10_000, seed=5)[0]
    offset[:, :6] += 3 * offset[:, :6].std(axis=0) * np.array([1, -1, 2, 1, -2, 1])
    found = {f.check for f in jc.recover([client(control, {**regimes, "c": offset})]).diagnostics}
    assert "mean-only" in found
