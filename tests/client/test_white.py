"""One whitened view of a client: its formula, its noise, and its outermost eigenpairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.client.white import outermost, whiten


def spiked(p, r, rng, n):
    """Covariances of n rows with one high and one low eigenvalue each."""
    matrices = []
    for _ in range(r):
        u, v = np.linalg.qr(rng.normal(size=(p, 2)))[0].T
        exact = np.eye(p) + 3.0 * np.outer(u, u) - 0.8 * np.outer(v, v)
        rows = rng.normal(size=(n, p)) @ np.linalg.cholesky(exact).T
        matrices.append(rows.T @ rows / n)
    return np.array(matrices)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_outermost_pairs_are_those_of_a_full_diagonalisation(p, seed):
    M = spiked(max(p, 2), 3, np.random.default_rng(seed), 200)[:, :p, :p]
    values = np.linalg.eigvalsh(M)
    for exact in (False, True):
        found = outermost(M, exact=exact)
        pick = [0, min(1, p - 1), max(p - 2, 0), p - 1]
        np.testing.assert_allclose(found.values, values[:, pick], atol=1e-12)
        for own, at in ((found.low, 0), (found.high, -1)):
            image = np.einsum("rpq,rq->rp", M, own)
            # One step of inverse iteration leaves the distance of the shift over the gap.
            np.testing.assert_allclose(image, values[:, at, None] * own, atol=1e-7)


@pytest.mark.parametrize("rows", [500, 20_000])
def test_directions_inside_the_noise_are_resolved_in_many_dimensions(rows):
    M = spiked(100, 6, np.random.default_rng(0), rows)
    found, vectors = outermost(M), np.linalg.eigh(M)[1]
    for own, at in ((found.low, 0), (found.high, -1)):
        cosine = np.abs(np.einsum("rp,rp->r", own, vectors[:, :, at]))
        np.testing.assert_allclose(cosine, 1.0, atol=1e-9)


def test_the_control_is_white_and_regimes_are_about_their_own_means():
    world = jc.simulate.random_world(6, 1, 1.0, seed=5, intervention="hard")
    client = world.client(0, 2_000, seed=1)
    white = whiten(client)
    identity = np.eye(white.dimension)
    np.testing.assert_allclose(
        white.W @ client.control_second_moment() @ white.W.T, identity, atol=1e-9
    )
    (m,) = client.interventions[client.labels[2]]
    np.testing.assert_allclose(white.M[2], white.W @ m.covariance @ white.W.T, atol=1e-9)
    np.testing.assert_allclose(white.d[2], white.W @ (m.mean - client.control.mean), atol=1e-9)


def test_exact_moments_are_about_the_mean_of_the_control():
    client = jc.simulate.random_world(6, 1, 1.0, seed=5, intervention="mean-only").client(0)
    white = whiten(client)
    (S,) = client.second_moments(client.labels[0])
    np.testing.assert_allclose(white.M[0], white.W @ S @ white.W.T, atol=1e-9)


def test_the_rows_have_the_noise_of_the_sensors():
    world = jc.simulate.random_world(5, 1, 1.0, seed=6, features=3.0)
    client = world.client(0, 5_000, seed=1, departures=["sensor-noise=0.3"])
    white = whiten(client)
    assert white.noise is not None
    rows = white.rows
    np.testing.assert_allclose(
        rows.W @ client.control_second_moment() @ rows.W.T, np.eye(5), atol=1e-9
    )
    (m,) = client.interventions[client.labels[1]]
    np.testing.assert_allclose(rows.M[1], rows.W @ m.covariance @ rows.W.T, atol=1e-9)
