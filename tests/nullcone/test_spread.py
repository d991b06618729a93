"""Rows that are alike in ways that nobody named are seen by how far all directions spread."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.client.white import whiten
from jigsaw_crl.nullcone.judge import pool
from jigsaw_crl.truth.simulate import Intervention

from .readings import read


@pytest.mark.parametrize("labels", [5, 12, 45])
def test_rows_of_unnamed_subjects_count_for_about_as_few_as_they_are_worth(labels):
    worth = 1 + 19 * 0.5**2
    found = []
    for seed in range(5 if labels < 45 else 1):
        world = jc.simulate.random_world(labels, 1, 1.0, 95_000 + seed)
        rows = 10_000 if labels < 45 else 2_000
        clean, alike = (
            read(world.client(0, rows, seed=seed, departures=departures)).sight.spread
            for departures in ((), ("subjects=0.5x20",))
        )
        assert clean == 1
        found.append(alike)
    if labels > 5:  # few directions say little about the rows
        assert 0.6 * worth < np.median(found) < 1.5 * worth


def test_the_finding_names_the_reasons_and_regimes_are_not_said_to_have_several_targets():
    world = jc.simulate.random_world(12, 1, 1.0, 95_000)
    client = world.client(0, 10_000, seed=0, departures=("subjects=0.5x20",))
    fragment = jc.recover_fragment(client)
    (found,) = [f for f in fragment.findings if f.check == "excess-spread"]
    assert "subject" in found.message
    assert found.value > found.threshold
    assert "several-targets" not in {f.check for f in fragment.findings}


def test_changes_that_are_too_small_to_see_hardly_move_the_control():
    # All targets have one cause, along whose direction most regimes change too little to be seen.
    scores = []
    for seed in range(12):
        world = jc.simulate.random_world(
            20, 4, 0.6, 17_600_000 + seed, graph="star", intervention=Intervention("hard")
        )
        for k in range(world.n_clients):
            white, _ = pool(whiten(world.client(k, 1_000, seed=seed)))
            relative = white.W @ world.client(k).control.covariance @ white.W.T
            size, directions = np.linalg.eigh(white.whitening)
            error = directions[:, -1] @ relative @ directions[:, -1] - 1.0
            scores.append(error / np.sqrt(2.0 * size[-1]))
    # Pooled as soon as chance may explain them, they move it by four times the stated error.
    assert np.mean(np.square(scores)) < 12
