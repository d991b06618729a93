"""The noise of each sensor."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl.client.client import Client
from jigsaw_crl.client.noise import noise_model, sensor_noise
from jigsaw_crl.moments.regime import Moments


def noisy(p: int, d: int, n: int | None, seed: int, factor: float = 100.0):
    """Moments of a control and p regimes, the noise variance of each sensor, and the mixing.

    Noise variances differ by up to `factor`; on average they are 5 % of the signal's.
    """
    rng = np.random.default_rng(seed)
    G = rng.uniform(-1, 1, (d, p))
    psi = factor ** rng.uniform(-0.5, 0.5, d)
    psi *= 0.05 * np.mean((G**2).sum(axis=1)) / psi.mean()

    def moments(target: int | None) -> Moments:
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
    found = sensor_noise(control, others, p)
    assert found.unevenness > 1
    np.testing.assert_allclose(found.variance, psi, rtol=1e-8)


@pytest.mark.parametrize(("p", "d", "n"), [(5, 50, 300), (5, 50, 2000), (8, 16, 2000)])
def test_the_noise_of_each_sensor_is_found_within_its_error(p, d, n):
    off = []
    for seed in range(4):
        control, others, psi, _ = noisy(p, d, n, seed)
        found = sensor_noise(control, others, p)
        assert found.unevenness > 1
        off.append(np.std(np.log(found.variance / psi)))
    assert np.median(off) < (2.0 if d >= 5 * p else 15.0) * np.sqrt(2 / (n * (p + 1)))


@pytest.mark.parametrize(("n", "d"), [(300, 8), (1500, 12), (300, 60)])
def test_equal_noise_is_seldom_taken_for_unequal(n, d):
    fired = 0
    for seed in range(30):
        control, others, _, _ = noisy(5, d, n, 1000 + seed, factor=1.0)
        fired += sensor_noise(control, others, 5).unevenness > 1
    assert fired <= 1


def test_the_leading_space_is_that_of_the_latents_whatever_the_noise():
    control, others, _, G = noisy(5, 20, 4000, 0)
    client = Client.from_moments(
        "lab",
        control=control,
        interventions={f"z{j}": m for j, m in enumerate(others)},
        n_latent=5,
    )
    spectrum = noise_model(client)
    assert spectrum.scale is not None
    # Reduced to the leading space, the control is that of the latents, without noise.
    reduced = spectrum.project(client.control_second_moment())
    B = spectrum.basis.T @ G
    error = np.linalg.norm(reduced - B @ B.T) / np.linalg.norm(B @ B.T)
    assert error < 4 * np.sqrt(5 / 4000)
