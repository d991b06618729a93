"""The checks look at means as well as covariances, and take neither for more than it is."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics import check_study

from .reports import checks, client

KINDS = [("paper", 0), ("paper", 1), ("hard", 2), ("mild", 2), ("mean-only", 0), ("knock-down", 0)]


def rows_of(kind, shift, n, seed, **more):
    protocol = jc.simulate.Intervention.named(kind, shift=shift, **more)
    return jc.simulate.random_world(6, 1, 1.0, seed, intervention=protocol).rows(0, n, seed=seed)


@pytest.mark.parametrize(("kind", "shift"), KINDS)
def test_sound_studies_give_no_finding_however_the_interventions_act(kind, shift):
    protocol = jc.simulate.Intervention.named(kind, shift=shift)
    for seed in range(4):
        world = jc.simulate.random_world(8, 2, 0.7, seed, intervention=protocol)
        study = world.clients(1000, seed=seed)
        assert [f for r in check_study(study).clients for f in r.findings] == []


def test_a_shift_of_the_mean_alone_is_a_signal():
    rng = np.random.default_rng(0)
    control = rng.normal(size=(500, 4))
    shifted = {k: rng.normal(size=(300, 4)) + 0.5 * np.eye(4)[i] for i, k in enumerate("abcd")}
    same = {k: rng.normal(size=(300, 4)) for k in "abcd"}
    assert "weak-intervention" not in checks(client(control, shifted))
    assert len(checks(client(control, same))["weak-intervention"]) == 4
    assert "no-signal" in checks(client(control, same))


def test_an_intervention_on_two_nodes_with_shifts_is_named():
    named = 0
    for seed in range(20):
        control, regimes = rows_of("hard", 2, 10_000, seed)
        _, both = rows_of("hard", 2, 10_000, seed, off_target=1.0)
        label = next(iter(regimes))
        said = checks(client(control, {**regimes, label: both[label]})).get("several-targets", [])
        assert {f.regime for f in said} <= {label}
        named += bool(said)
    # A node and one of its parents may move two directions together, as one node does. Of 30 other
    # worlds 24 are named; fewer than 10 of 20 then have a chance of 6e-4.
    assert named >= 10


def test_autocorrelated_rows_are_not_called_several_targets():
    def wandering(rng, n):
        z, steps = np.zeros((n, 4)), rng.normal(size=(n, 4))
        for t in range(1, n):
            z[t] = 0.95 * z[t - 1] + np.sqrt(1 - 0.95**2) * steps[t]
        return z

    drifting = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        G = rng.normal(size=(6, 4))
        twice = 1 + np.eye(4)
        regimes = {f"z{j}": (wandering(rng, 4000) * twice[j]) @ G.T for j in range(4)}
        said = checks(client(wandering(rng, 4000) @ G.T, regimes))
        assert "several-targets" not in said
        assert said["dependent-rows"][0].severity == "warning"
        drifting += "drifting-control" in said
    # Of 150 such clients, 3 are said to drift.
    assert drifting <= 1


@pytest.mark.parametrize(("kind", "shift"), [("paper", 0), ("hard", 2)])
def test_a_control_swapped_with_a_regime_is_named_with_and_without_shifts(kind, shift):
    named = 0
    for seed in range(20):
        control, regimes = rows_of(kind, shift, 6000, seed)
        label = next(iter(regimes))
        said = checks(client(regimes[label], {**regimes, label: control}))
        named += any(repr(label) in f.message for f in said.get("swapped-control", []))
    # Of 60 other worlds 48; fewer than 10 of 20 then have a chance of 6e-4.
    assert named >= 10
