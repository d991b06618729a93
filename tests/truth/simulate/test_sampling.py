"""Sample moments drawn without rows have the law of those computed from rows."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.truth.simulate import Intervention, setting
from jigsaw_crl.truth.simulate.sampling import (
    CHUNK,
    Regime,
    population,
    sample_moments,
    sample_rows,
)


@pytest.fixture(scope="module")
def regime():
    world = setting("A", seed=1, intervention="mean-noise")
    return world.regime(2, world.truth(2).labels[0])


@pytest.fixture(scope="module")
def partial():
    """An intervention that shifts the mean and acts in 7 of 10 rows."""
    protocol = Intervention("hard", shift=2.0, penetrance=0.7)
    world = setting("A", seed=1, intervention=protocol)
    return world.regime(2, world.truth(2).labels[0])


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_mean_and_covariance_are_right_on_average(regime, noise):
    n, replicates = 30, 3000
    rng, exact = np.random.default_rng(0), population(regime)
    drawn = [sample_moments(regime, n, noise, rng) for _ in range(replicates)]
    scale = np.sqrt(np.diag(exact.covariance))
    mean = np.mean([m.mean for m in drawn], axis=0)
    assert (np.abs(mean - exact.mean) < 5 * scale / np.sqrt(n * replicates)).all()
    # Divisor n: the expectation is (n − 1)/n of the population's.
    covariance = np.mean([m.covariance for m in drawn], axis=0) * n / (n - 1)
    error = (covariance - exact.covariance) / np.outer(scale, scale)
    assert np.abs(error).max() < 5 * np.sqrt(5 / (n * replicates))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("n", [4, 30])
def test_moments_of_a_mixture_have_the_law_of_those_of_its_rows(partial, noise, n):
    replicates, rng, exact = 2500, np.random.default_rng(6), population(partial)
    drawn = [sample_moments(partial, n, noise, rng) for _ in range(replicates)]
    rows = [sample_rows(partial, n, noise, rng) for _ in range(replicates)]
    fast = np.array([m.covariance for m in drawn])
    slow = np.array([Moments.from_rows(x).covariance for x in rows])
    for power in (1, 2):
        a, b = (fast**power).mean(axis=0), (slow**power).mean(axis=0)
        error = np.sqrt(((fast**power).var(axis=0) + (slow**power).var(axis=0)) / replicates)
        assert (np.abs(a - b) < 5 * error).all()
    scale = np.sqrt(np.diag(exact.covariance))
    for means in ([m.mean for m in drawn], [x.mean(axis=0) for x in rows]):
        off = np.mean(means, axis=0) - exact.mean
        assert (np.abs(off) < 5 * scale / np.sqrt(n * replicates)).all()
    assert all(m.n == n for m in drawn)


def test_the_wishart_draw_varies_like_the_covariance_of_rows(regime):
    n, replicates = 12, 4000
    rng = np.random.default_rng(1)
    fast = np.array(
        [sample_moments(regime, n, "gaussian", rng).covariance for _ in range(replicates)]
    )
    slow = np.array(
        [
            Moments.from_rows(sample_rows(regime, n, "gaussian", rng)).covariance
            for _ in range(replicates)
        ]
    )
    for power in (1, 2):
        a, b = (fast**power).mean(axis=0), (slow**power).mean(axis=0)
        error = np.sqrt(((fast**power).var(axis=0) + (slow**power).var(axis=0)) / replicates)
        assert (np.abs(a - b) < 5 * error).all()


def test_the_sample_mean_varies_by_one_over_n(regime):
    n, replicates = 20, 4000
    rng, exact = np.random.default_rng(2), population(regime)
    means = np.array([sample_moments(regime, n, "gaussian", rng).mean for _ in range(replicates)])
    scale = np.sqrt(np.diag(exact.covariance))
    ratio = np.cov(means.T) * n / np.outer(scale, scale)
    expected = exact.covariance / np.outer(scale, scale)
    assert np.abs(ratio - expected).max() < 0.15


def test_laplace_noise_has_its_fourth_moment_and_gaussian_another(regime):
    for noise, kurtosis, width in (("laplace", 6.0, 0.4), ("gaussian", 3.0, 0.15)):
        one = Regime(np.eye(1), np.eye(1), np.array([4.0]), np.zeros(1))
        x = sample_rows(one, 200_000, noise, np.random.default_rng(3))[:, 0]
        assert np.var(x) == pytest.approx(4, abs=0.12)
        assert np.mean(x**4) / np.var(x) ** 2 == pytest.approx(kurtosis, abs=width)


def test_chunks_are_joined_exactly(regime):
    n = CHUNK + 1000
    whole = sample_moments(regime, n, "laplace", np.random.default_rng(4))
    used = np.flatnonzero(np.any(regime.effects != 0, axis=0))
    rng = np.random.default_rng(4)
    parts = []
    for size in (CHUNK, 1000):
        e = rng.standard_exponential((size, len(used)))
        e -= rng.standard_exponential((size, len(used)))
        parts.append(e * np.sqrt(0.5))
    noise = np.vstack(parts) * np.sqrt(regime.variances[used]) + regime.means[used]
    rows = noise @ (regime.mixing @ regime.effects[:, used]).T
    expected = Moments.from_rows(rows)
    assert whole.n == n
    assert np.allclose(whole.mean, expected.mean)
    assert np.allclose(whole.covariance, expected.covariance)


def test_gaussian_moments_can_be_drawn_for_more_rows_than_fit_in_memory(regime):
    moments = sample_moments(regime, 10**15, "gaussian", np.random.default_rng(5))
    assert np.allclose(moments.covariance, population(regime).covariance, rtol=1e-5, atol=1e-5)
