"""Fragments by the paper's method: right from exact moments, invariant, and honest about limits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.truth import metrics

from .clients import (
    SEEDS,
    assert_blocks_are_true,
    assert_same_row_spaces,
    changed_client,
    clear_client,
    literally,
    mixed_by,
    recovered,
    sampled_client,
    with_regimes,
)

CLIENTS = st.one_of(
    SEEDS.map(lambda seed: clear_client(seed)[0]),
    SEEDS.map(lambda seed: sampled_client(seed, 50_000)),
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


def test_several_strengths_of_a_label_are_used_together():
    for seed in range(10):
        world = jc.simulate.random_world(8, 1, 0.7, seed)
        fragment = baseline.recover_fragment(world.client(0, doses=2))
        assert_blocks_are_true(fragment, world.truth(0))


def test_ill_conditioned_data_are_recovered_exactly():
    worst = 0.0
    for seed in range(9):
        world = jc.simulate.random_world(4 + seed % 9, 1, 0.7, seed)
        client, truth = world.client(0), world.truth(0)
        rng = np.random.default_rng(seed)
        d, p = truth.mixing.shape
        left, right = (np.linalg.qr(rng.normal(size=(n, p)))[0] for n in (d, p))
        bad = mixed_by(client, truth, left * np.geomspace(1, 1e-4, p) @ right.T)
        values = np.linalg.eigvalsh(bad.control.covariance)[-p:]
        worst = max(worst, values[-1] / values[0])
        assert_blocks_are_true(baseline.recover_fragment(bad), truth)
    assert worst > 1e8


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


# -- invariance -----------------------------------------------------------------------------------


@given(CLIENTS, SEEDS, st.floats(-6, 6))
def test_other_names_orders_and_coordinates_rename_and_rotate_the_result(client, seed, exponent):
    rng = np.random.default_rng(seed)
    d = client.n_features
    shuffled = [client.labels[i] for i in rng.permutation(len(client.labels))]
    new = dict(zip(client.labels, rng.permutation(client.labels).tolist(), strict=True))
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0][rng.permutation(d)]
    before = baseline.recover_fragment(changed_client(client))
    after = baseline.recover_fragment(
        changed_client(
            client, lambda c: 10.0**exponent * turn @ c @ turn.T, new.__getitem__, shuffled
        )
    )

    def renamed(block: frozenset[str]) -> frozenset[str]:
        return frozenset(new[x] for x in block)

    expected = {(renamed(a), renamed(d)) for a, d in before.block_order.pairs()}
    assert after.block_order.pairs() == expected
    assert set(after.block_order.elements) == set(map(renamed, before.block_order.elements))
    for block in before.blocks:
        (one, other) = (
            f.basis[[f.index(x) for x in names]]
            for f, names in ((before, block), (after, renamed(block)))
        )
        np.testing.assert_allclose(other.T @ other, turn @ one.T @ one @ turn.T, atol=1e-6)


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


@pytest.mark.parametrize("recover", [baseline.recover_fragment, literally])
@pytest.mark.parametrize("n", [None, 100])
def test_a_client_with_a_single_label_is_one_block(n, recover):
    client = jc.Client.from_covariances(
        "lab-1",
        observational=[[1.0, 0.5], [0.5, 0.25 + 1e-6]],
        interventions={"pump": [[2.0, 1.0], [1.0, 0.5 + 1e-6]]},
        n_samples=n,
    )
    fragment = recover(client)
    assert fragment.outcome.ok
    assert fragment.blocks == (frozenset({"pump"}),)
    # The one latent is read along the direction (2, 1) of the features.
    np.testing.assert_allclose(np.abs(fragment.basis), [[2 / 5**0.5, 1 / 5**0.5]], atol=1e-5)


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


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, float("nan"), float("inf"), "0.05", True])
@pytest.mark.parametrize("n", [None, 1000])
def test_a_threshold_outside_zero_to_one_is_refused(tau, n):
    client = sampled_client(5, n)
    with pytest.raises(jc.InputError, match=r"client 'client-1': tau is .* between 0 and 1"):
        baseline.recover_fragment(client, tau=tau)
