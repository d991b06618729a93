"""Sample moments drawn without rows have the law of those computed from rows."""

import numpy as np
import pytest

from jigsaw_crl.moments.regime import Moments
from jigsaw_crl.truth.simulate import Intervention, setting
from jigsaw_crl.truth.simulate.sampling import (
    CHUNK,
    Regime,
    population,
    rows_from_noise,
    sample_moments,
    standard_noise,
)


def sample_rows(regime, n, noise, rng):
    return rows_from_noise(regime, standard_noise(n, len(regime.variances), noise, rng), rng)


PROTOCOLS = {
    "whole": Intervention("noise-only", shift=2.5),
    # Shifts the mean and acts in 7 of 10 rows.
    "partial": Intervention("hard", shift=2.0, penetrance=0.7),
}


def regime_of(protocol):
    world = setting("A", seed=1, intervention=PROTOCOLS[protocol])
    return world.regime(2, world.truth(2).labels[0])


@pytest.fixture(scope="module")
def regime():
    return regime_of("whole")


@pytest.mark.parametrize(
    ("protocol", "n", "noise"),
    [
        ("whole", 12, "gaussian"),
        ("whole", 12, "laplace"),
        ("partial", 4, "gaussian"),
        ("partial", 4, "laplace"),
        ("partial", 30, "gaussian"),
    ],
)
@pytest.mark.slow
def test_moments_have_the_law_of_those_of_rows(protocol, noise, n):
    one, replicates, rng = regime_of(protocol), 2500, np.random.default_rng(6)
    exact = population(one)
    drawn = [sample_moments(one, n, noise, rng) for _ in range(replicates)]
    rows = [sample_rows(one, n, noise, rng) for _ in range(replicates)]
    computed = [Moments.from_rows(x) for x in rows]
    for name in ("mean", "covariance"):
        fast, slow = (np.array([getattr(m, name) for m in ms]) for ms in (drawn, computed))
        for power in (1, 2):
            a, b = (fast**power).mean(axis=0), (slow**power).mean(axis=0)
            error = np.sqrt(((fast**power).var(axis=0) + (slow**power).var(axis=0)) / replicates)
            assert (np.abs(a - b) < 5 * error).all()
    scale = np.sqrt(np.diag(exact.covariance))
    for found in (drawn, computed):
        off = np.mean([m.mean for m in found], axis=0) - exact.mean
        assert (np.abs(off) < 5 * scale / np.sqrt(n * replicates)).all()
        # Divisor n: the expectation is (n − 1)/n of the population's.
        covariance = np.mean([m.covariance for m in found], axis=0) * n / (n - 1)
        error = (covariance - exact.covariance) / np.outer(scale, scale)
        assert np.abs(error).max() < 5 * np.sqrt(5 / (n * replicates))
    assert all(m.n == n for m in drawn)


def test_laplace_noise_has_its_fourth_moment_and_gaussian_another(regime):
    for noise, kurtosis, width in (("laplace", 6.0, 0.4), ("gaussian", 3.0, 0.15)):
        one = Regime(np.eye(1), np.eye(1), np.array([4.0]), np.zeros(1))
        x = sample_rows(one, 200_000, noise, np.random.default_rng(3))[:, 0]
        assert np.var(x) == pytest.approx(4, abs=0.12)
        assert np.mean(x**4) / np.var(x) ** 2 == pytest.approx(kurtosis, abs=width)


def test_a_sample_of_several_chunks_has_the_moments_of_the_law(regime):
    n = 2 * CHUNK + 1000
    found, exact = (
        sample_moments(regime, n, "laplace", np.random.default_rng(4)),
        population(regime),
    )
    scale = np.sqrt(np.diag(exact.covariance))
    assert found.n == n
    assert (np.abs(found.mean - exact.mean) < 5 * scale / np.sqrt(n)).all()
    error = (found.covariance - exact.covariance) / np.outer(scale, scale)
    assert np.abs(error).max() < 5 * np.sqrt(5 / n)
