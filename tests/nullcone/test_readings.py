"""Means and covariances in one model: exact in the population, calibrated from samples."""

import numpy as np
import pytest

from jigsaw_crl.client.white import whiten
from jigsaw_crl.nullcone.delta import statistics_of
from jigsaw_crl.nullcone.reading import see
from jigsaw_crl.nullcone.readings import READINGS, ZERO, estimate
from jigsaw_crl.truth.simulate import Batches, Intervention, random_world

from .readings import relations, true_lines


def hard(shift):
    return Intervention("hard-replace", shift=shift)


@pytest.mark.parametrize("kind", [hard(1.0), Intervention("additive", shift=0.5)])
def test_in_the_population_a_mean_shift_is_parallel_to_the_line_of_its_target(kind):
    for seed in range(4):
        world = random_world(12, 2, 0.6, seed=70_000 + seed, intervention=kind)
        client = world.client(0)
        white = whiten(client)
        d = white.d / np.linalg.norm(white.d, axis=1, keepdims=True)
        Q = true_lines(world.truth(0), client.labels, white.W)
        np.testing.assert_allclose(np.abs(np.einsum("rp,rp->r", d, Q)), 1.0, atol=1e-9)


def null_scores(intervention, n, noise, batches=None):
    """T in standard errors where it should vanish, for targets whose c is seen."""
    scores = []
    for seed in range(12):
        world = random_world(16, 4, 0.6, seed=72_000 + seed, intervention=intervention)
        for k in range(world.n_clients):
            client = world.client(k, n, noise, seed=seed, batches=batches)
            arrows = see(whiten(client)).targets
            truth = world.truth(k)
            same, ancestor = relations(truth, client.labels)
            Q = true_lines(truth, client.labels, arrows.white.W)
            near = np.abs(np.einsum("rsp,rp->rs", arrows.u[:, :ZERO], Q))
            line = np.where(arrows.has[:, :ZERO], near, -1.0).argmax(axis=1)
            clear = arrows.odds > 2
            i, j = np.nonzero(np.triu(clear[:, None] & clear & ~same))
            found = statistics_of(arrows, i, j)
            pick = np.arange(len(i)), READINGS * line[i] + line[j]
            T, C = found.values[pick], found.covariance[pick]
            z = T / np.sqrt(np.einsum("kaa->ka", C))
            scores += [z[:, 0], z[~ancestor[i, j], 1], z[~ancestor[j, i], 2]]
    return np.concatenate(scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("intervention", "n", "noise", "batches"),
    [
        (Intervention(), 30_000, "gaussian", None),
        (hard(2.0), 1_000, "laplace", None),
        (hard(1.0), 10_000, "gaussian", Batches(1.0, "own")),
        (hard(1.0), 10_000, "gaussian", Batches(0.3, "crossed")),
    ],
)
def test_standard_scores_of_what_should_vanish_have_unit_spread(intervention, n, noise, batches):
    z = null_scores(intervention, n, noise, batches)
    assert len(z) > 300
    assert 0.88 < z.std() < 1.12
    assert np.mean(np.abs(z) > 4) < 0.01


def test_lines_are_maxima_of_their_likelihood():
    client = random_world(25, 1, 1.0, seed=74_000, intervention=hard(0.3)).client(0, 3_000)
    found = estimate(white := whiten(client))
    for r, u in enumerate(found.u[:, 0]):
        D, d = white.M[r] - np.eye(25), white.d[r]
        lam = u @ D @ u
        gradient = found.w_mean[r] * (u @ d) * d + found.w_cov[r] * (D @ D @ u - lam * D @ u)
        # The ascent ends after a number of steps: some lines still turn by a thousandth.
        off = gradient - (gradient @ u) * u
        assert np.linalg.norm(off) < 5e-3 * np.linalg.norm(gradient)
