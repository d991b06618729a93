"""Every assumption that is broken on purpose is found, and nothing else is."""

from itertools import permutations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl import Verdict

from ..study.tables import client_of
from .reports import checks


@pytest.fixture(scope="module")
def world():
    return jc.simulate.setting("B", 1)


@pytest.fixture
def regimes(world):
    return world.sample(0, 6000, seed=4).regimes


def test_a_weak_intervention_is_named(regimes):
    label = next(k for k in regimes if k != "control")
    control = regimes["control"]
    # Rows of the same law as the control: an intervention that did nothing.
    regimes = {**regimes, "control": control[:3000], label: control[3000:]}
    found = checks(client_of(regimes))
    assert [f.regime for f in found["weak-intervention"]] == [label]
    assert found["weak-intervention"][0].value <= 1
    assert "no-signal" not in found


def test_one_intervention_under_two_labels_is_named_and_different_ones_are_not():
    named = other = 0
    for seed in range(6):
        world = jc.simulate.random_world(5, 1, 1.0, seed, features=1.5)
        regimes = world.sample(0, 2_000, seed=seed).regimes
        again = world.sample(0, 2_000, seed=seed + 100).regimes
        assert "like-regimes" not in checks(client_of(regimes))
        _, one, two = list(regimes)[:3]
        found = checks(client_of({**regimes, two: again[one]}))
        alike = found.get("like-regimes", [])
        assert all({f.regime} == {two} and f"{one!r}" in f.message for f in alike)
        named, other = named + len(alike), other + 1
    assert named >= other - 1


def _noisy(regimes, share, seed=0):
    rng = np.random.default_rng(seed)
    scale = np.sqrt(share * np.mean(np.var(regimes["control"], axis=0)))
    return {k: v + scale * rng.normal(size=v.shape) for k, v in regimes.items()}


@pytest.fixture
def two(regimes):
    """Rows of the control and of two of the labels."""
    return _noisy({k: regimes[k] for k in list(regimes)[:3]}, 0.001)


def test_latents_without_label_are_seen_in_the_spectrum(world, two):
    p = len(world.truth(0).labels)
    client = client_of(two)
    assert client.n_latent == p
    (said,) = checks(client)["more-latents"]
    assert (said.severity, said.value, said.threshold) == ("info", p, 2)
    assert said.message == f"2 labels, but the features carry {p} latent directions: {p} are used"
    assert "more-latents" not in checks(client_of(two, n_latent=p))
    (told,) = checks(client_of(two, n_latent=2))["more-latents"]
    assert (told.severity, told.value) == ("warning", p)


def test_drowned_latents_are_seen_in_the_spectrum(regimes):
    found = checks(client_of(_noisy(regimes, 100.0)))
    assert found["fewer-latents"][0].value < found["fewer-latents"][0].threshold


def test_wildly_different_units_of_features_turn_no_verdict():
    for seed, spare in enumerate((1.5, 2.0)):
        world = jc.simulate.random_world(6, 1, 1.0, 770 + seed, features=spare)
        rows = world.sample(0, 3_000, seed=seed, departures=["sensor-noise=0.05"]).arguments()
        units = np.ones(rows["observational"].shape[1])
        found = []
        for units[0] in (1.0, 3e3):
            moved = {x: v * units for x, v in rows["interventions"].items()}
            control = rows["observational"] * units
            client = jc.Client.from_samples("a", observational=control, interventions=moved)
            found.append(jc.recover([client]).order)
        told = [{order.verdict(*pair) for order in found} for pair in permutations(world.labels, 2)]
        assert not any({Verdict.ANCESTOR, Verdict.NOT_ANCESTOR} <= own for own in told)
        one, other = (jc.metrics.global_f1(world.order, order) for order in found)
        assert other > one - 0.1


def test_heavy_tails_are_named(regimes):
    rng = np.random.default_rng(2)
    label = next(k for k in regimes if k != "control")
    tails = rng.standard_t(3, size=regimes[label].shape)
    found = checks(client_of({**regimes, label: regimes[label] * tails}))
    names = {f.regime for f in [*found.get("heavy-tails", []), *found.get("outliers", [])]}
    assert names == {label}


def test_a_single_outlier_that_carries_the_variance_is_named(regimes):
    label = next(k for k in regimes if k != "control")
    rows = regimes[label].copy()
    rows[17] *= 1e5
    found = checks(client_of({**regimes, label: rows}))
    assert [f.regime for f in found["outliers"]] == [label]
    assert found["outliers"][0].value < 2


def test_a_drifting_control_is_named_and_shuffled_rows_do_not_drift(regimes):
    rows = regimes["control"]
    rows = rows + np.linspace(0, 1.5, len(rows))[:, None] * rows.std(axis=0)
    found = checks(client_of({**regimes, "control": rows}))
    assert "mean of the control rows moves" in found["drifting-control"][0].message
    shuffled = np.random.default_rng(5).permutation(rows)
    assert "drifting-control" not in checks(client_of({**regimes, "control": shuffled}))
