"""Departures of the rows from the model: each does what its name says, and nothing else."""

import re

import numpy as np
import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.client.client import CONTROL
from jigsaw_crl.truth.simulate import DEPARTURES, random_world, setting
from jigsaw_crl.truth.simulate.departures import site

N = 20_000


@pytest.fixture(scope="module")
def world():
    return setting("A", seed=4)


def control(world, *departures, n=N, seed=1):
    return world.sample(0, n, seed=seed, departures=departures).regimes[CONTROL]


def kurtosis(x):
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    return (z**4).mean(axis=0)


def lag_one(x):
    return np.array([np.corrcoef(c[1:], c[:-1])[0, 1] for c in x.T])


# -- what each does -------------------------------------------------------------------------------
def test_autocorrelated_rows_have_the_correlation_and_the_covariance_asked_for(world):
    x = control(world, "autocorrelation=0.8")
    assert np.allclose(lag_one(x), 0.8, atol=0.03)
    # 20,000 rows count as 20,000 (1 − r²)/(1 + r²) = 4,400 for second moments: an error of 2 %.
    exact = world.client(0).control_second_moment
    scale = np.sqrt(np.diag(exact))
    assert np.abs((np.cov(x.T) - exact) / np.outer(scale, scale)).max() < 0.1


def test_rows_of_a_subject_are_alike_and_scattered(world):
    sample = world.sample(0, N, seed=1, departures=["subjects=0.5x20"])
    x, subject = sample.regimes[CONTROL], sample.subject[0]
    names, codes, sizes = np.unique(subject, return_inverse=True, return_counts=True)
    assert len(names) == N / 20
    assert set(sizes) == {20}
    means = np.array([x[codes == i].mean(axis=0) for i in range(len(names))])
    # The variance of a mean of m rows with correlation r is r + (1 − r)/m of that of one row.
    assert np.allclose(means.var(axis=0) / x.var(axis=0), 0.5 + 0.5 / 20, atol=0.1)
    assert np.abs(lag_one(x)).max() < 0.04


def test_tails_are_as_heavy_as_asked_for_and_the_variance_stays():
    world = random_world(3, 1, 1.0, 1)
    A, H = world.truth(0).marginal.A, np.linalg.pinv(world.truth(0).mixing)

    def noise(*departures):
        """The noises: (I − A) G⁺ X."""
        return control(world, *departures, n=200_000) @ H.T @ (np.eye(3) - A).T

    gaussian, t, lognormal = noise(), noise("t-noise=9"), noise("lognormal-noise=0.5")
    for x in (gaussian, t, lognormal):
        assert np.allclose(np.cov(x.T), np.eye(3), atol=0.05)
    assert np.allclose(kurtosis(gaussian), 3, atol=0.1)
    # t with 9 degrees of freedom: 3 + 6/5. Lognormal with s = 0.5: 3 + 5.9.
    assert np.allclose(kurtosis(t), 4.2, atol=0.5)
    assert np.allclose(kurtosis(lognormal), 8.9, atol=1.5)


def test_a_share_of_the_rows_is_multiplied(world):
    plain, hit = control(world), control(world, "outliers=0.01x7")
    changed = (plain != hit).any(axis=1)
    assert 0.007 < changed.mean() < 0.013
    assert np.allclose(hit[changed], 7 * plain[changed])


def test_each_regime_has_its_own_offset(world):
    plain = world.sample(0, N, seed=1).regimes
    moved = world.sample(0, N, seed=1, departures=["batch-offsets=0.3"]).regimes
    offsets = np.array([(moved[r] - plain[r])[0] for r in plain])
    for r in plain:
        assert np.allclose(np.ptp(moved[r] - plain[r], axis=0), 0, atol=1e-12)
    assert len(np.unique(offsets.round(9), axis=0)) == len(plain)
    relative = offsets / plain[CONTROL].std(axis=0)
    assert 0.2 < relative.std() < 0.4


def test_gains_differ_by_sensor_and_regime_and_not_by_row(world):
    plain = world.sample(0, 500, seed=1).regimes
    moved = world.sample(0, 500, seed=1, departures=["gain-drift=0.05"]).regimes
    gains = np.array([(moved[r] / plain[r])[0] for r in plain])
    for r, gain in zip(plain, gains, strict=True):
        assert np.allclose(moved[r], gain * plain[r])
    assert 0.03 < gains.std() < 0.07


def test_sensor_noise_is_as_large_and_as_uneven_as_asked_for():
    world = random_world(4, 1, 1.0, 3, features=10)
    plain = control(world)
    even = control(world, "sensor-noise=0.05") - plain
    uneven = control(world, "uneven-sensors=100x0.02") - plain
    scale = plain.var(axis=0).mean()
    assert np.allclose(even.var(axis=0), 0.05 * scale, rtol=0.06)
    assert uneven.var(axis=0).mean() == pytest.approx(0.02 * scale, rel=0.06)
    assert uneven.var(axis=0).max() / uneven.var(axis=0).min() == pytest.approx(100, rel=0.1)


def test_cells_are_missing_at_random_and_nothing_else_changes(world):
    plain, holes = control(world), control(world, "missing=0.03")
    lost = np.isnan(holes)
    assert np.array_equal(holes[~lost], plain[~lost])
    assert np.allclose(lost.mean(axis=0), 0.03, atol=0.006)


def test_a_system_that_saturates_is_linear_for_a_small_bend_and_bounded_for_a_large_one():
    chain = random_world(3, 1, 1.0, 2, graph="chain", strength=3.0)
    plain = control(chain)
    assert np.allclose(control(chain, "nonlinear-system=1e-5"), plain, rtol=1e-6, atol=1e-6)
    # tanh(20 z)/20 is at most 1/20: the latents are hardly related then.
    truth = chain.truth(0)
    latents = control(chain, "nonlinear-system=20") @ np.linalg.pinv(truth.mixing).T
    assert np.allclose(np.cov(latents.T), np.eye(3), atol=0.1)


def test_sensors_that_saturate_stay_within_their_range(world):
    plain, bent = control(world), control(world, "nonlinear-sensors=0.5")
    spread = plain.std(axis=0)
    assert np.allclose(bent, spread * np.tanh(0.5 * plain / spread) / 0.5)


def test_exchanged_labels_have_each_others_rows(world):
    departure = "other-label=2"
    k = next(k for k in range(5) if site(world, k, [departure]).means)
    means = site(world, k, [departure]).means
    assert len(means) == 2
    assert all(means[means[label]] == label != means[label] for label in means)
    n = 100_000
    plain = world.sample(k, n, seed=1).regimes
    other = world.sample(k, n, seed=1, departures=[departure]).regimes
    for label in world.truth(k).labels:
        meant = plain[means.get(label, label)].var(axis=0)
        assert np.allclose(other[label].var(axis=0), meant, rtol=0.06)


def test_a_site_that_lacks_an_edge_has_the_rows_of_a_world_without_it(world):
    k = next(k for k in range(5) if site(world, k, ["lacks-edge=1"]).lacks)
    here = site(world, k, ["lacks-edge=1"])
    ((cause, effect),) = here.lacks
    local = here.world(world)
    changed = world.sem.A != local.sem.A
    assert np.argwhere(changed).tolist() == [[world.node(effect), world.node(cause)]]
    lacking = world.sample(k, 400, seed=1, departures=["lacks-edge=1"]).regimes
    expected = local.sample(k, 400, seed=1).regimes
    assert all(np.array_equal(lacking[r], expected[r]) for r in expected)


# -- where, together, and again -------------------------------------------------------------------
@pytest.mark.parametrize("name", DEPARTURES)
def test_every_departure_is_the_same_again_and_differs_by_seed(world, name):
    size = {"t-noise": 4, "uneven-sensors": 10, "other-label": 2, "lacks-edge": 1}.get(name, 0.3)
    first, again, other = (
        world.sample(0, 60, seed=seed, departures=[f"{name}={size}"]).tables for seed in (1, 1, 2)
    )
    for a, b, c in zip(first, again, other, strict=True):
        assert np.array_equal(a, b, equal_nan=True)
        assert not np.array_equal(a, c, equal_nan=True)


# -- text and errors ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("departures", "says"),
    [
        (["ar=0.8"], "no departure 'ar'"),
        (["autocorrelation"], "cannot be read"),
        (["autocorrelation=much"], "cannot be read"),
        (["outliers=0.1@"], "which is no client"),
        (["outliers=0.1x2x3"], "one second number above 0"),
        (["autocorrelation=1"], "a number from 0, below 1"),
        (["t-noise=2"], "above 2"),
        (["t-noise=3x2"], "Pass its size alone"),
        (["outliers=0.1x-1"], "one second number above 0"),
        (["other-label=2.5"], "a whole number"),
        (["missing=0.1", "missing=0.2"], "missing is given twice"),
        (["t-noise=3", "lognormal-noise=1"], "both t and lognormal"),
        (["other-label=9"], "possible at no client"),
        (["lacks-edge=40"], "possible at no client"),
    ],
)
def test_departures_that_mean_nothing_are_refused(world, departures, says):
    with pytest.raises(InputError, match=re.escape(says)):
        world.sample(0, 100, departures=departures)


def test_a_departure_of_named_clients_concerns_these_alone(world):
    departures = ["lacks-edge=1@client-2", "t-noise=3@client-2,client-4"]
    here = [site(world, k, departures) for k in range(5)]
    assert [bool(one.lacks) for one in here] == [False, True, False, False, False]
    assert ["t-noise" in one.departures for one in here] == [False, True, False, True, False]
    with pytest.raises(InputError, match="names 'nobody', which is no client"):
        site(world, 0, ["missing=0.1@nobody"])
