"""Tails of rows, and regimes of few rows, which are sound data beside a large control."""

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.diagnostics.rows import check_light_tails
from jigsaw_crl.study import write_moments

from .reports import checks, client


def sampled(seed, n, *, noise="gaussian", departures=()):
    world = jc.simulate.random_world(20, 2, 0.6, 94_000 + seed)
    return world.sample(0, n, noise, seed, departures=departures).to_client()


# Some clients see hardly any effect that could saturate.
@pytest.mark.parametrize(
    ("departure", "least"), [("nonlinear-system=0.5", 5), ("nonlinear-sensors=0.25", 8)]
)
@pytest.mark.parametrize("n", [1_000, 10_000])
@pytest.mark.slow
def test_saturation_is_named(departure, least, n):
    found = [check_light_tails(sampled(seed, n, departures=(departure,))) for seed in range(8)]
    named = [each[0] for each in found if each]
    assert len(named) >= least
    assert all("saturate" in f.message and f.value < f.threshold for f in named)


def test_rows_that_were_trimmed_say_nothing_about_tails(tmp_path):
    rng = np.random.default_rng(3)
    rows = {name: rng.normal(size=(2_000, 4)) for name in ("control", "a", "b")}
    one = client(rows.pop("control"), rows, trim=0.05, n_latent=4)
    (found,) = check_light_tails(replace(one, control=replace(one.control, trimmed=False)))
    assert found.check == "light-tails"
    assert not check_light_tails(one)
    assert not check_light_tails(jc.read_client(write_moments(one, tmp_path / "lab.npz")))


def few_rows(seed, n, latents=12):
    rng = np.random.default_rng([seed, n])
    G = np.linalg.qr(rng.normal(size=(latents, latents)))[0]
    step = 3.0 * np.eye(latents)
    rows = {f"z{i}": (rng.normal(size=(n, latents)) + step[i]) @ G for i in range(latents)}
    control = rng.normal(size=(1500, latents)) @ G
    return client(control, rows)


@pytest.mark.parametrize("n", [8, 12, 20, 30, 45, 60])
def test_few_gaussian_rows_are_neither_outliers_nor_several_targets(n):
    found = {check for seed in range(5) for check in checks(few_rows(seed, n))}
    said = found - {"unseen-latents", "drifting-control"}
    assert said <= ({"weak-intervention"} if n <= 12 else set())


def test_a_regime_at_the_edge_of_chance_is_not_told_to_take_as_many_rows_as_it_has():
    at_the_edge = 0
    for size in np.linspace(1.0, 1.5, 40):
        rng = np.random.default_rng(0)
        x0, x1, x2 = (rng.normal(size=(300, 2)) for _ in range(3))
        x1[:, 0] *= size
        said = checks(client(x0, {"pump": x1, "valve": x2 * [1, 4]}))
        for f in said.get("weak-intervention", []):
            more = (1 / max(f.value, 0.1)) ** 2
            at_the_edge += more < 1.1
            assert (f"about {more:.1f} times" in f.message) == (more >= 1.1)
            assert ("times" in f.message) == (more >= 1.1)
    assert at_the_edge


def test_rows_that_cannot_be_trimmed_are_not_told_to_be():
    rng = np.random.default_rng(1)

    def rows(n):
        x = rng.normal(size=(n, 40))
        x[0, 3] = 1e4
        return x

    (found,) = checks(client(rng.normal(size=(400, 40)), {"a": rows(60)}))["outliers"]
    assert found.regime == "a"
    assert "--trim" not in found.remedy
    assert "--ignore" in found.remedy
