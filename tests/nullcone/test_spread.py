"""Rows that are alike in ways that nobody named are seen by how far all directions spread."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc

from .readings import read


def reading(seed, n, *, noise="gaussian", departures=()):
    world = jc.simulate.random_world(12, 1, 1.0, 95_000 + seed)
    return read(world.client(0, n, noise, seed=seed, departures=departures))


@pytest.mark.parametrize("n", [300, 10_000])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_independent_rows_show_no_excess(n, noise):
    assert all(reading(seed, n, noise=noise).sight.spread == 1 for seed in range(4))


@pytest.mark.parametrize("r", [0.5])
def test_rows_of_unnamed_subjects_count_for_about_as_few_as_they_are_worth(r):
    worth = 1 + 19 * r**2
    found = [reading(s, 10_000, departures=(f"subjects={r}x20",)).sight.spread for s in range(5)]
    assert 0.6 * worth < np.median(found) < 1.5 * worth


@pytest.mark.parametrize(("departures", "seen"), [((), False), (("subjects=0.5x20",), True)])
def test_many_latents_show_it_too(departures, seen):
    # In many dimensions the outermost eigenvalues are known approximately.
    client = jc.simulate.random_world(45, 1, 1.0, 95_100).client(0, 2_000, departures=departures)
    assert (read(client).sight.spread > 2) == seen


def test_the_finding_names_the_reasons_and_regimes_are_not_said_to_have_several_targets():
    world = jc.simulate.random_world(12, 1, 1.0, 95_000)
    client = world.client(0, 10_000, seed=0, departures=("subjects=0.5x20",))
    fragment = jc.recover_fragment(client)
    (found,) = [f for f in fragment.findings if f.check == "excess-spread"]
    assert "subject" in found.message
    assert found.value > found.threshold
    assert "several-targets" not in {f.check for f in fragment.findings}
