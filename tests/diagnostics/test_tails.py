"""Light tails are named; Gaussian, heavy-tailed and skewed noise in a linear system is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics.rows import check_light_tails
from jigsaw_crl.study import write_moments


def client(seed, n, *, noise="gaussian", departures=()):
    world = jc.simulate.random_world(20, 2, 0.6, 94_000 + seed)
    return world.sample(0, n, noise, seed, departures=departures).to_client()


@pytest.mark.parametrize("n", [300, 1_000, 10_000])
@pytest.mark.parametrize("noise", ["gaussian", "laplace", "lognormal"])
@pytest.mark.slow
def test_linear_systems_do_not_have_light_tails(n, noise):
    lognormal = noise == "lognormal"
    family = "gaussian" if lognormal else noise
    departures = ("lognormal-noise=0.5",) if lognormal else ()
    for seed in range(10):
        assert not check_light_tails(client(seed, n, noise=family, departures=departures))


# Some clients see hardly any effect that could saturate.
@pytest.mark.parametrize(
    ("departure", "least"), [("nonlinear-system=0.5", 5), ("nonlinear-sensors=0.25", 8)]
)
@pytest.mark.parametrize("n", [1_000, 10_000])
@pytest.mark.slow
def test_saturation_is_named(departure, least, n):
    found = [check_light_tails(client(seed, n, departures=(departure,))) for seed in range(8)]
    named = [each[0] for each in found if each]
    assert len(named) >= least
    assert all("saturate" in f.message and f.value < f.threshold for f in named)


@pytest.mark.slow
def test_the_score_of_gaussian_rows_is_standard_normal(monkeypatch):
    monkeypatch.setattr("jigsaw_crl.diagnostics.rows.LIGHT", np.inf)
    scores = [check_light_tails(client(seed, 1_000))[0].value for seed in range(40)]
    assert abs(np.mean(scores)) < 0.6
    assert 0.7 < np.std(scores) < 1.4


def test_rows_that_were_trimmed_say_nothing_about_tails(tmp_path):
    rng = np.random.default_rng(3)
    rows = {name: rng.normal(size=(2_000, 4)) for name in ("control", "a", "b")}
    client = jc.Client.from_samples(
        "lab", observational=rows.pop("control"), interventions=rows, trim=0.05, n_latent=4
    )
    (found,) = check_light_tails(replace(client, control=replace(client.control, trimmed=False)))
    assert found.check == "light-tails"
    assert not check_light_tails(client)
    assert not check_light_tails(jc.read_client(write_moments(client, tmp_path / "lab.npz")))
