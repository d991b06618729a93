"""The noise of the sensors, the space of the latents, and their number where it is not given."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.client.noise import noise_model, sensor_noise
from jigsaw_crl.moments.regime import Moments

from ..study.tables import client_of


def exact(latents, labels, features, noise, seed):
    """A client with exact moments, and its mixing with orthonormal columns."""
    rng = np.random.default_rng(seed)
    G = np.linalg.qr(rng.normal(size=(features, latents)))[0]

    def covariance(target=None):
        variances = np.ones(latents)
        if target is not None:
            variances[target] = 4.0
        return (G * variances) @ G.T + noise * np.eye(features)

    named = {f"z{j}": covariance(j) for j in range(labels)}
    client = jc.Client.from_covariances(
        "lab", observational=covariance(), interventions=named, n_samples=None
    )
    return client, G


def without_noise(spectrum, client):
    """The control's second moment in the leading space, less the noise that is subtracted."""
    B, S = spectrum.basis, client.control_second_moment
    return B.T @ (S - np.diag(spectrum.sensors)) @ B


# -- the space of the latents and the noise floor -------------------------------------------------
@given(st.integers(1, 5), st.integers(1, 4), st.floats(1e-3, 0.5), st.integers(0, 2**32 - 1))
def test_exact_moments_give_the_space_of_the_latents_and_the_noise_floor(p, extra, noise, seed):
    client, G = exact(p, p, p + extra, noise, seed)
    spectrum = noise_model(client)
    np.testing.assert_allclose(spectrum.basis @ spectrum.basis.T, G @ G.T, atol=1e-8)
    assert spectrum.visible
    assert spectrum.noise_floor == pytest.approx(noise, rel=1e-8)
    inner = spectrum.basis.T @ G
    found = without_noise(spectrum, client)
    np.testing.assert_allclose(found, inner @ inner.T, atol=1e-8)


# -- the noise of each sensor ---------------------------------------------------------------------
def noisy(p, d, n, seed, factor=100.0):
    """Moments of a control and p regimes, the noise variance of each sensor, and the mixing.

    Noise variances differ by up to `factor`; on average they are 5 % of the signal's.
    """
    rng = np.random.default_rng(seed)
    G = rng.uniform(-1, 1, (d, p))
    psi = factor ** rng.uniform(-0.5, 0.5, d)
    psi *= 0.05 * np.mean((G**2).sum(axis=1)) / psi.mean()

    def moments(target):
        variance = np.ones(p)
        if target is not None:
            variance[target] = 5.0
        if n is None:
            return Moments(None, np.zeros(d), (G * variance) @ G.T + np.diag(psi))
        Z = np.sqrt(variance) * rng.normal(size=(n, p))
        return Moments.from_rows(Z @ G.T + np.sqrt(psi) * rng.normal(size=(n, d)))

    return moments(None), [moments(j) for j in range(p)], psi, G


@pytest.mark.parametrize(("p", "d"), [(3, 9), (4, 10), (6, 30)])
def test_exact_moments_give_the_noise_of_each_sensor(p, d):
    control, others, psi, _ = noisy(p, d, None, 3, factor=10.0)
    unevenness, variance = sensor_noise(control, others, p)
    assert unevenness > 1
    np.testing.assert_allclose(variance, psi, rtol=1e-8)


@pytest.mark.parametrize(("p", "d", "n"), [(5, 50, 300), (5, 50, 2000), (8, 16, 2000)])
def test_the_noise_of_each_sensor_is_found_within_its_error(p, d, n):
    off = []
    for seed in range(4):
        control, others, psi, _ = noisy(p, d, n, seed)
        unevenness, variance = sensor_noise(control, others, p)
        assert unevenness > 1
        off.append(np.std(np.log(variance / psi)))
    assert np.median(off) < (2.0 if d >= 5 * p else 15.0) * np.sqrt(2 / (n * (p + 1)))


def test_the_noise_of_each_sensor_does_not_depend_on_the_units_of_the_features():
    control, others, _, _ = noisy(4, 12, 2000, 5, factor=10.0)
    unit = 10.0 ** np.random.default_rng(5).permutation(np.linspace(-2, 2, 12))
    other = [
        Moments(m.n, m.mean * unit, m.covariance * np.outer(unit, unit)) for m in (control, *others)
    ]
    _, variance = sensor_noise(control, others, 4)
    _, in_units = sensor_noise(other[0], other[1:], 4)
    np.testing.assert_allclose(in_units, variance * unit**2, rtol=0.02)


@pytest.mark.parametrize(("n", "d"), [(300, 8), (1500, 12), (300, 60)])
def test_equal_noise_is_seldom_taken_for_unequal(n, d):
    fired = 0
    for seed in range(30):
        control, others, _, _ = noisy(5, d, n, 1000 + seed, factor=1.0)
        fired += sensor_noise(control, others, 5)[0] > 1
    assert fired <= 1


def test_the_leading_space_is_that_of_the_latents_whatever_the_noise():
    control, others, _, G = noisy(5, 20, 4000, 0)
    client = jc.Client.from_moments(
        "lab",
        control=control,
        interventions={f"z{j}": m for j, m in enumerate(others)},
        n_latent=5,
    )
    spectrum = noise_model(client)
    assert spectrum.scale is not None
    # Reduced to the leading space, the control is that of the latents, without noise.
    reduced = without_noise(spectrum, client)
    B = spectrum.basis.T @ G
    error = np.linalg.norm(reduced - B @ B.T) / np.linalg.norm(B @ B.T)
    assert error < 4 * np.sqrt(5 / 4000)


# -- the number of latents ------------------------------------------------------------------------
def rows_of(latents, labels, features, n, seed, *, noise=0.3, uneven=0.0, shift=0.0):
    """Rows of `latents` latents, of which `labels` are intervened on, and noisy sensors."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(features, latents))
    size = noise * np.sqrt(1 + uneven * rng.uniform(-1, 1, features))

    def rows(target=None):
        Z = rng.normal(size=(n, latents))
        if target is not None:
            Z[:, target] = 2 * Z[:, target] + shift
        return Z @ G.T + size * rng.normal(size=(n, features))

    return {"control": rows(), **{f"z{j}": rows(j) for j in range(labels)}}


def sampled(*sizes, **options):
    return client_of(rows_of(*sizes, **options))


ORDER = np.random.default_rng(0).permutation(12)
VARIANTS = {
    "smaller units": lambda x: 1e-5 * x,
    "larger units": lambda x: 1e5 * x,
    "columns in another order": lambda x: x[:, ORDER],
    "rows in another order": lambda x: np.random.default_rng(1).permutation(x),
}


@pytest.mark.parametrize("labels_first", [False, True])
@pytest.mark.parametrize("how", VARIANTS)
def test_the_number_does_not_depend_on_units_or_on_any_order(how, labels_first):
    rows = rows_of(6, 4, 12, 1000, 1)
    names = sorted(rows, reverse=labels_first)
    again = client_of({name: VARIANTS[how](rows[name]) for name in names})
    assert again.counted == client_of(rows).counted
    assert again.n_latent == 6


@given(st.integers(1, 5), st.integers(0, 3), st.integers(2, 5), st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_exact_moments_give_the_true_number(noise, labels, unlabelled, spare, seed):
    latents = labels + unlabelled
    client, _ = exact(latents, labels, latents + spare, noise, seed)
    assert client.n_latent == latents
    assert client.counted.reason == ("noise" if noise else "rank")


@pytest.mark.slow
@pytest.mark.parametrize("shift", [0.0, 3.0])
@pytest.mark.parametrize(("labels", "features"), [(7, 12), (4, 14), (4, 80)])
def test_latents_without_a_label_are_counted(labels, features, shift):
    counts = [sampled(8, labels, features, 1000, s, shift=shift).n_latent for s in range(8)]
    assert counts == [8] * 8


def test_sensors_of_unequal_noise_do_not_hide_the_number_of_latents():
    clients = [sampled(6, labels, 18, 5000, 7, uneven=0.8) for labels in (4, 5, 6)]
    assert [c.n_latent for c in clients] == [6] * 3
    assert {c.counted.reason for c in clients} == {"sensors"}


@pytest.mark.parametrize(("features", "reason"), [(9, "uneven"), (12, "sensors")])
def test_loud_sensors_of_unequal_noise_leave_the_number_of_labels(features, reason):
    """With few features unequal noise looks like latents; with more it is told from them."""
    clients = [sampled(6, 6, features, 5000, seed, noise=2.5, uneven=0.5) for seed in range(8)]
    assert [c.n_latent for c in clients] == [6] * 8
    told = [c for c in clients if c.counted.reason == reason]
    assert len(told) >= 4
    assert all((c.counted.visible > 6) == (reason == "uneven") for c in told)


@pytest.mark.parametrize("spare", [0, 1])
def test_too_few_features_for_a_test_leave_the_number_of_labels(spare):
    client = sampled(5, 3, 3 + spare, 1000, 0)
    assert client.n_latent == 3
    assert client.counted.reason == "features"


def test_precisions_of_low_rank_give_their_rank():
    client, _ = exact(5, 3, 8, 0.0, 0)
    inverse = [np.linalg.pinv(client.control.covariance, rcond=1e-10)]
    inverse += [np.linalg.pinv(m.covariance, rcond=1e-10) for (m,) in client.interventions.values()]
    again = jc.Client.from_precisions(
        "lab",
        observational=inverse[0],
        interventions=dict(zip(client.labels, inverse[1:], strict=True)),
        n_samples=None,
    )
    assert again.n_latent == 5
    np.testing.assert_allclose(again.control.covariance, client.control.covariance, atol=1e-8)


def test_one_quiet_sensor_is_not_most_of_the_signal():
    rng = np.random.default_rng(0)
    G = np.linalg.qr(rng.normal(size=(12, 3)))[0]
    own = np.diagonal(G @ G.T).copy()
    own[0] *= 1e-4

    def drawn(target=None):
        z = rng.normal(size=(20_000, 3))
        if target is not None:
            z[:, target] *= 2.0
        return z @ G.T + np.sqrt(own) * rng.normal(size=(len(z), 12))

    client = jc.Client.from_samples(
        "lab", observational=drawn(), interventions={f"z{j}": drawn(j) for j in range(3)}
    )
    # Half of the variance of all sensors but one is noise.
    assert noise_model(client).scale is not None
    assert noise_model(client).noise_share == pytest.approx(5.5 / 6.5, rel=0.1)
