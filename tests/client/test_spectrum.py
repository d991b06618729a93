"""The leading space of a client's features and its noise floor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.client.client import Client
from jigsaw_crl.client.noise import noise_model


def population(p: int, d: int, noise: float, seed: int) -> tuple[Client, np.ndarray]:
    """A client with p latents in d features, and its mixing matrix."""
    rng = np.random.default_rng(seed)
    G = np.linalg.qr(rng.normal(size=(d, p)))[0]

    def covariance() -> np.ndarray:
        factor = rng.normal(size=(p, 2 * p)) + np.eye(p, 2 * p)
        latent = factor @ factor.T + np.eye(p)
        return G @ latent @ G.T + noise * np.eye(d)

    labels = {f"z{j}": covariance() for j in range(p)}
    control = covariance()
    client = Client.from_covariances(
        "lab", observational=control, interventions=labels, n_samples=None
    )
    return client, G


@given(st.integers(1, 5), st.integers(1, 4), st.floats(1e-3, 0.5), st.integers(0, 2**32 - 1))
def test_exact_moments_give_the_space_of_the_latents_and_the_noise_floor(p, extra, noise, seed):
    client, G = population(p, p + extra, noise, seed)
    spectrum = noise_model(client)
    np.testing.assert_allclose(spectrum.basis @ spectrum.basis.T, G @ G.T, atol=1e-8)
    assert spectrum.visible
    assert spectrum.noise_floor == pytest.approx(noise, rel=1e-8)
    control = client.control_second_moment()
    clean = spectrum.basis.T @ (control - noise * np.eye(p + extra)) @ spectrum.basis
    np.testing.assert_allclose(spectrum.project(control), clean, atol=1e-8 * np.abs(clean).max())


@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_without_spare_features_the_noise_floor_is_invisible(p, seed):
    client, _ = population(p, p, 0.1, seed)
    spectrum = noise_model(client)
    assert not spectrum.visible
    assert spectrum.noise_floor == spectrum.subtracted == 0
    assert spectrum.gap == np.inf


def test_the_subtracted_floor_leaves_the_control_positive():
    # The control has a latent far below the noise of the other regimes.
    rng = np.random.default_rng(0)
    control = np.diag([1.0, 1e-3, 1e-4])
    moved = np.diag([2.0, 1.0, 1.0])
    client = Client.from_covariances(
        "lab",
        observational=control,
        interventions={"a": moved, "b": moved + 0.1 * np.diag(rng.uniform(size=3))},
        n_samples=500,
    )
    spectrum = noise_model(client)
    assert spectrum.noise_floor > spectrum.weakest
    assert np.linalg.eigvalsh(spectrum.project(client.control_second_moment()))[0] > 0
