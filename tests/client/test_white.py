"""One whitened view of a client: its formula, its noise, and its eigenpairs."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.client.white import whiten


@pytest.mark.parametrize("latents", [6, 100])
def test_the_eigenpairs_are_those_of_each_regime_also_inside_the_noise(latents):
    white = whiten(jc.simulate.random_world(latents, 1, 1.0, seed=5).client(0, 500, seed=1))
    assert white.dimension == latents
    values = np.linalg.eigvalsh(white.M)
    np.testing.assert_allclose(white.eigen.values, values, atol=1e-12)
    V = white.eigen.vectors
    np.testing.assert_allclose(white.M @ V, V * values[:, None], atol=1e-12)


def test_the_control_is_white_and_regimes_are_about_their_own_means():
    world = jc.simulate.random_world(6, 1, 1.0, seed=5, intervention="hard")
    client = world.client(0, 2_000, seed=1)
    white = whiten(client)
    identity = np.eye(white.dimension)
    np.testing.assert_allclose(
        white.W @ client.control_second_moment @ white.W.T, identity, atol=1e-9
    )
    (m,) = client.interventions[client.labels[2]]
    np.testing.assert_allclose(white.M[2], white.W @ m.covariance @ white.W.T, atol=1e-9)
    np.testing.assert_allclose(white.d[2], white.W @ (m.mean - client.control.mean), atol=1e-9)


def test_the_rows_have_the_noise_of_the_sensors():
    world = jc.simulate.random_world(5, 1, 1.0, seed=6, features=3.0)
    client = world.client(0, 5_000, seed=1, departures=["sensor-noise=0.3"])
    white = whiten(client)
    assert white.noise is not None
    rows = white.rows
    np.testing.assert_allclose(
        rows.W @ client.control_second_moment @ rows.W.T, np.eye(5), atol=1e-9
    )
    (m,) = client.interventions[client.labels[1]]
    np.testing.assert_allclose(rows.M[1], rows.W @ m.covariance @ rows.W.T, atol=1e-9)
