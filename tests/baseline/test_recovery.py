"""Fragments by the paper's method: right from exact moments, and honest about limits."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.truth import metrics

from .clients import (
    assert_blocks_are_true,
    assert_same_row_spaces,
    literally,
    recovered,
    sampled_client,
    with_regimes,
)

# -- exact moments --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["A", "B", "C"])
@pytest.mark.parametrize("recover", [baseline.recover_fragment, literally])
def test_the_settings_of_the_paper_are_recovered_exactly(name, recover):
    world = jc.simulate.setting(name, 0)
    fragments, truths = recovered(world, recover)
    for fragment, truth in zip(fragments, truths, strict=True):
        assert_blocks_are_true(fragment, truth)
        assert_same_row_spaces(fragment, [b for b in truth.blocks if len(b) == 1], truth.Q)
    order = baseline.assemble_pairs(fragments)
    assert not order.cyclic
    assert metrics.global_f1(world.order, order.pairs) == 1.0
    assert metrics.subspace_error(truths, fragments) < 1e-10
    assert metrics.support_leakage(truths, fragments) < 1e-10


@pytest.mark.slow
def test_random_worlds_are_recovered_exactly_with_blocks_of_more_than_ten_labels():
    worlds = [jc.simulate.random_world(4 + seed % 9, 4, 0.6, seed) for seed in range(25)]
    largest = 0
    for world in (*worlds, jc.simulate.random_world(40, 6, 0.6, 1)):
        fragments, truths = recovered(world, baseline.recover_fragment)
        for fragment, truth in zip(fragments, truths, strict=True):
            assert_blocks_are_true(fragment, truth)
            largest = max(largest, *map(len, truth.blocks))
        assert metrics.subspace_error(truths, fragments) < 1e-10
        assert metrics.support_leakage(truths, fragments) < 1e-10
        # Some pairs are seen by no client, but no pair is wrong.
        assert baseline.assemble_pairs(fragments).pairs <= world.order.pairs()
    assert largest > 10


# -- samples --------------------------------------------------------------------------------------
def test_a_million_rows_recover_most_of_setting_a():
    scores = []
    for seed in range(5):
        world = jc.simulate.setting("A", seed)
        fragments, truths = recovered(
            world, lambda c: baseline.recover_fragment(c, tau=0.03), 10**6
        )
        order = baseline.assemble_pairs(fragments)
        both = metrics.subspace_error(truths, fragments), metrics.support_leakage(truths, fragments)
        scores.append((metrics.global_f1(world.order, order.pairs), *both))
    e1, e2, e3 = np.mean(scores, axis=0)
    assert e1 > 0.8
    assert e2 < 0.1
    assert e3 < 0.2


# -- clients that violate the assumptions ---------------------------------------------------------
def test_an_intervention_without_effect_and_two_labels_with_one_target_are_reported():
    client = jc.simulate.world_from_graph(np.zeros((3, 3)), [range(3)], None, 0).client(0)
    a, b, _ = client.labels
    for moments, message in (
        (client.control.covariance, f"{b} changed nothing"),
        (client.second_moments(a)[0], "share a target"),
    ):
        fragment = baseline.recover_fragment(with_regimes(client, {b: moments}))
        assert fragment.outcome.code == "not-identified"
        assert message in fragment.outcome.message
        assert fragment.outcome.remedy
        assert np.isfinite(fragment.basis).all()


@pytest.mark.parametrize("n", [None, 5000])
def test_latents_without_an_intervention_are_reported(n):
    world = jc.simulate.setting("C", 0)
    labels = sorted(world.truth(0).labels)[:4]
    client = world.client(0, n_samples=n, labels=labels)
    fragment = baseline.recover_fragment(client)
    assert fragment.outcome.code == "not-identified"
    assert "every latent" in fragment.outcome.message
    assert set(fragment.labels) == set(labels)
    assert fragment.basis.shape == (4, client.n_features)


# -- the budget -----------------------------------------------------------------------------------
def test_when_the_budget_runs_out_the_fragment_says_so_and_keeps_what_was_found():
    client = jc.simulate.random_world(16, 1, 0.8, 2).client(0, n_samples=10**6)
    whole = baseline.recover_fragment(client)
    assert whole.outcome.ok
    short = baseline.recover_fragment(client, budget=120)
    assert short.outcome.code == "budget"
    assert "120 label sets" in short.outcome.message
    assert "null-cone" in short.outcome.remedy
    assert "raise the budget" in short.outcome.remedy
    *placed, last = short.blocks
    assert len(placed) > 3
    assert tuple(placed) == whole.blocks[: len(placed)]
    assert last == set(client.labels).difference(*placed)
    assert short.basis.shape == whole.basis.shape
    np.testing.assert_allclose(np.linalg.norm(short.basis, axis=1), 1.0)
    assert baseline.recover_fragment(client, budget=120).to_json() == short.to_json()
    least = baseline.recover_fragment(client, budget=1)
    assert least.outcome.code == "budget"
    assert least.blocks == (frozenset(client.labels),)


# -- options --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("option", "values", "says"),
    [
        ("tau", [0.0, 1.0, -0.1, float("nan"), float("inf"), "0.05", True], "between 0 and 1"),
        ("budget", [0, -5, 1.5, True, None, "many"], "at least 1"),
    ],
)
@pytest.mark.parametrize("n", [None, 1000])
def test_a_threshold_or_a_budget_that_is_none_is_refused(option, values, says, n):
    for value in values:
        with pytest.raises(jc.InputError, match=f"client 'client-1': {option} is .* {says}"):
            baseline.recover_fragment(sampled_client(5, n), **{option: value})
