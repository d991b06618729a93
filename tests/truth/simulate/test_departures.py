"""Departures of the rows from the model: each does what its name says, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.client.client import CONTROL
from jigsaw_crl.truth.simulate import DEPARTURES, Batches, Departure, random_world, setting
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


def test_without_departures_the_rows_are_those_of_the_world(world):
    plain, regimes = world.rows(0, 200, seed=3)
    sample = world.sample(0, 200, seed=3)
    assert (sample.batch, sample.subject) == (None, None)
    for regime, rows in {CONTROL: plain, **regimes}.items():
        assert np.array_equal(sample.regimes[regime], rows)


def test_autocorrelated_rows_have_the_correlation_and_the_covariance_asked_for(world):
    x = control(world, "autocorrelation=0.8")
    assert np.allclose(lag_one(x), 0.8, atol=0.03)
    # 20,000 rows count as 20,000 (1 − r²)/(1 + r²) = 4,400 for second moments: an error of 2 %.
    exact = world.client(0).control_second_moment()
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
    A, H = world.truth(0).marginal.A, world.truth(0).H

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
    latents = control(chain, "nonlinear-system=20") @ truth.H.T
    assert np.allclose(np.cov(latents.T), np.eye(3), atol=0.1)


def test_sensors_that_saturate_stay_within_their_range(world):
    plain, bent = control(world), control(world, "nonlinear-sensors=0.5")
    spread = plain.std(axis=0)
    assert np.allclose(bent, spread * np.tanh(0.5 * plain / spread) / 0.5)


def test_off_target_and_penetrance_are_those_of_the_intervention():
    usual = random_world(6, 2, 0.8, 5)
    for name, protocol in (
        ("off-target=1", {"off_target": 1.0}),
        ("off-target=1x0.3", {"off_target": 1.0, "off_target_strength": 0.3}),
        ("penetrance=0.6", {"penetrance": 0.6}),
    ):
        asked = random_world(
            6, 2, 0.8, 5, intervention=usual.intervention.named("paper", **protocol)
        )
        a = usual.sample(1, 300, seed=2, departures=[name]).regimes
        b = asked.sample(1, 300, seed=2).regimes
        assert all(np.array_equal(a[r], b[r]) for r in a)


def test_exchanged_labels_have_each_others_rows(world):
    departure = Departure("other-label", 2, clients=("client-1",))
    means = site(world, 0, [departure]).means
    assert len(means) == 2
    assert all(means[means[label]] == label != means[label] for label in means)
    n = 100_000
    plain = world.sample(0, n, seed=1).regimes
    other = world.sample(0, n, seed=1, departures=[departure]).regimes
    for label in world.truth(0).labels:
        meant = plain[means.get(label, label)].var(axis=0)
        assert np.allclose(other[label].var(axis=0), meant, rtol=0.06)


def test_a_site_that_lacks_an_edge_has_the_rows_of_a_world_without_it(world):
    here = site(world, 0, ["lacks-edge=1@client-1"])
    ((cause, effect),) = here.lacks
    local = here.world(world)
    changed = world.sem.A != local.sem.A
    assert np.argwhere(changed).tolist() == [[world.node(effect), world.node(cause)]]
    lacking = world.sample(0, 400, seed=1, departures=["lacks-edge=1@client-1"]).regimes
    expected = local.sample(0, 400, seed=1).regimes
    assert all(np.array_equal(lacking[r], expected[r]) for r in expected)


# -- where, together, and again -------------------------------------------------------------------


def test_departures_act_at_the_named_clients_only(world):
    departures = ["outliers=0.5@client-2,client-4", "t-noise=3@client-4"]
    names = [sorted(site(world, k, departures).departures) for k in range(5)]
    assert names == [[], ["outliers"], [], ["outliers", "t-noise"], []]
    plain, same = (world.sample(0, 50, departures=d).regimes for d in ([], departures))
    assert all(np.array_equal(plain[r], same[r]) for r in plain)


@pytest.mark.parametrize("name", ["other-label=2", "lacks-edge=1"])
def test_what_concerns_one_site_concerns_one_site(world, name):
    assert sum(bool(site(world, k, [name]).departures) for k in range(5)) == 1


def test_one_departure_does_not_change_what_another_draws(world):
    both = control(world, "gain-drift=0.1", "outliers=0.1x3", "missing=0.1")
    one = control(world, "gain-drift=0.1")
    factor = both / one
    seen = ~np.isnan(both)
    assert set(np.unique(factor[seen].round(9))) == {1.0, 3.0}
    assert np.array_equal(seen, ~np.isnan(control(world, "missing=0.1")))


@pytest.mark.parametrize("name", DEPARTURES)
def test_every_departure_is_the_same_again_and_differs_by_seed(world, name):
    size = {"t-noise": 4, "uneven-sensors": 10, "other-label": 2, "lacks-edge": 1}.get(name, 0.3)
    first, again, other = (
        world.sample(0, 60, seed=seed, departures=[Departure(name, size)]).tables
        for seed in (1, 1, 2)
    )
    for a, b, c in zip(first, again, other, strict=True):
        assert np.array_equal(a, b, equal_nan=True)
        assert not np.array_equal(a, c, equal_nan=True)


def test_a_client_has_the_moments_of_its_rows_and_its_batches(world):
    batches = Batches(0.5, "crossed", count=3)
    options = {"batches": batches, "departures": ["autocorrelation=0.5"]}
    rows, client = world.sample(0, 900, seed=2, **options), world.client(0, 900, seed=2, **options)
    assert client.batches == ("b1", "b2", "b3")
    assert {str(b) for b in rows.batch[0]} == {"b1", "b2", "b3"}
    assert client.n_latent == len(world.truth(0).labels)
    assert np.allclose(client.control.mean, rows.regimes[CONTROL].mean(axis=0))
    doses = world.client(0, 300, doses=2, departures=["autocorrelation=0.5"])
    assert all(len(doses.interventions[label]) == 2 for label in doses.labels)


# -- text and errors ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["autocorrelation=0.8", "outliers=0.01x10", "subjects=0.3x8@client-1,client-2"]
)
def test_a_departure_is_read_as_it_is_written(text):
    assert str(Departure.parse(text)) == text
    assert Departure.parse(Departure.parse(text)) == Departure.parse(text)


@pytest.mark.parametrize(
    ("departures", "says"),
    [
        (["ar=0.8"], "no departure 'ar'"),
        (["autocorrelation"], "cannot be read"),
        (["autocorrelation=much"], "cannot be read"),
        (["outliers=0.1x2x3"], "cannot be read"),
        (["outliers=0.1@"], "cannot be read"),
        (["autocorrelation=1"], "Pass a number from 0, below 1"),
        (["t-noise=2"], "above 2"),
        (["t-noise=3x2"], "Pass its size alone"),
        (["outliers=0.1x-1"], "Pass a number above 0"),
        (["other-label=2.5"], "a whole number"),
        (["missing=0.1@nobody"], "no client 'nobody'"),
        (["missing=0.1", "missing=0.2"], "missing is given twice"),
        (["t-noise=3", "lognormal-noise=1"], "both t and lognormal"),
        (["other-label=9"], "possible at no client"),
        (["lacks-edge=40@client-1"], "40 edges are asked for"),
    ],
)
def test_departures_that_mean_nothing_are_refused_in_one_line(world, departures, says):
    with pytest.raises(InputError) as error:
        world.sample(0, 100, departures=departures)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_exact_moments_have_no_departures(world):
    with pytest.raises(InputError, match="exact moments have no rows"):
        world.clients(departures=["t-noise=3"])
