"""How many independent Gaussian rows the rows of a client count for."""

import numpy as np
import pytest
from scipy.signal import lfilter

import jigsaw_crl as jc
from jigsaw_crl.moments.regime import Moments

LATENTS, FEATURES = 5, 8


def client_of(draw, seed, n=6000):
    """A client whose latents are drawn by `draw(rng, n)`, with three interventions."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(FEATURES, LATENTS))
    noise = 0.01
    rows = [draw(rng, n) @ G.T + noise * rng.normal(size=(n, FEATURES)) for _ in range(4)]
    for j in range(3):
        rows[j + 1] = rows[j + 1] + np.outer(rng.normal(size=n), G[:, j])
    labels = {f"z{j}": rows[j + 1] for j in range(3)}
    return jc.Client.from_samples(
        "lab", observational=rows[0], interventions=labels, n_latent=LATENTS
    )


def gaussian(rng, n):
    return rng.normal(size=(n, LATENTS))


def autocorrelated(rng, n):
    steps = rng.normal(size=(n + 200, LATENTS)) * np.sqrt(1 - 0.8**2)
    return np.asarray(lfilter([1], [1, -0.8], steps, axis=0))[200:]


def counts(client):
    return [(m.counted.mean, m.counted.covariance) for _, m in client.named_regimes]


def shuffled(rng, n):
    """Rows that were autocorrelated, in an order that no longer shows it."""
    return rng.permutation(autocorrelated(rng, n))


@pytest.mark.parametrize(
    ("draw", "n"), [(gaussian, 300), (gaussian, 1000), (gaussian, 4000), (shuffled, 4000)]
)
def test_rows_in_an_order_that_shows_nothing_count_in_full(draw, n):
    clients = [client_of(draw, seed, n) for seed in range(8)]
    # Of 400 other clients one counts for less: two of eight have a chance of 2e-4.
    full = [client for client in clients if counts(client) == [(1.0, 1.0)] * 4]
    assert len(full) >= 7
    assert all(client.control.n == client.control.rows == n for client in full)


def test_autocorrelated_rows_count_as_many_as_theory_says():
    mean, covariance = (1 + 0.8) / (1 - 0.8), (1 + 0.8**2) / (1 - 0.8**2)
    found = np.mean([counts(client_of(autocorrelated, seed))[0] for seed in range(4)], axis=0)
    assert found == pytest.approx([mean, covariance], rel=0.2)
    client = client_of(autocorrelated, 0)
    assert client.control.rows == 6000
    assert client.control.n == pytest.approx(6000 / covariance, rel=0.3)
    assert client.control.mean_rows == pytest.approx(6000 / mean, rel=0.35)


def test_a_regime_that_differs_from_the_others_has_a_factor_of_its_own():
    def draw(rng, n):
        first = not hasattr(draw, "called")
        draw.called = True
        return autocorrelated(rng, n) if first else gaussian(rng, n)

    control, *others = counts(client_of(draw, 3))
    assert control[0] > 4
    assert control[1] > 2
    assert all(mean < 1.5 for mean, _ in others)


def test_merged_rows_count_as_the_average_of_both():
    a, b = (Moments(100 * k, np.zeros(2), np.eye(2)) for k in (1, 3))
    both = a.counting(5.0, 2.0).merge(b.counting(1.0, 4.0))
    assert (both.counted.n, both.counted.mean, both.counted.covariance) == (400, 2.0, 3.5)
    assert both.rows == 400
    assert both.n == round(399 / 3.5) + 1
    assert a.counting(5.0, 2.0).uncounted().n == 100
