"""Algorithms 1 and 2 on exact moments: the truth is recovered, and nothing that should not matter
matters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.baseline.budget import Budget, BudgetSpent
from jigsaw_crl.baseline.exact_search import smallest_tight_set, smallest_tight_set_by_trial
from jigsaw_crl.baseline.planes import Space, planes_of, project
from jigsaw_crl.truth import metrics

from . import plain_paper

SEEDS = st.integers(0, 2**16)


def recovered(world):
    clients = [world.client(k) for k in range(world.n_clients)]
    return [baseline.recover_fragment(c) for c in clients], [
        world.truth(k) for k in range(world.n_clients)
    ]


def assert_blocks_are_true(fragment, truth):
    assert fragment.outcome.ok, fragment.outcome
    assert set(fragment.blocks) == set(truth.blocks)
    assert fragment.block_order == truth.block_order


def assert_same_row_spaces(fragment, blocks, Q):
    """Rows are orthonormal within a block, and arbitrary up to a turn of the block."""
    for block in blocks:
        rows = [fragment.index(x) for x in block]
        ours, other = fragment.basis[rows], Q[rows]
        np.testing.assert_allclose(ours.T @ ours, other.T @ other, atol=1e-6)


def rebuilt(client, change=lambda c: c, rename=lambda x: x, labels=None):
    """The same client with every covariance changed and its labels renamed and reordered."""
    return jc.Client.from_covariances(
        client.name,
        observational=change(client.control.covariance),
        interventions={
            rename(x): [change(c) for c in client.second_moments(x)]
            for x in (labels or client.labels)
        },
        n_samples=None,
    )


def small_client(seed, most=9):
    world = jc.simulate.random_world(3 + seed % (most - 2), 1, 0.7, seed)
    return world.client(0), world.truth(0)


@pytest.mark.parametrize("name", ["A", "B", "C"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_paper_s_settings_are_recovered_exactly(name, seed):
    world = jc.simulate.setting(name, seed)
    fragments, truths = recovered(world)
    for fragment, truth in zip(fragments, truths, strict=True):
        assert_blocks_are_true(fragment, truth)
    order = baseline.assemble_pairs(fragments)
    assert order.is_order
    assert metrics.global_f1(world.order, order.pairs) == 1.0
    assert metrics.subspace_error(truths, fragments) < 1e-10
    assert metrics.support_leakage(truths, fragments) < 1e-10


def test_fifty_random_worlds_are_recovered_exactly():
    for seed in range(50):
        world = jc.simulate.random_world(4 + seed % 9, 4, 0.6, seed)
        fragments, truths = recovered(world)
        for fragment, truth in zip(fragments, truths, strict=True):
            assert_blocks_are_true(fragment, truth)
        assert metrics.subspace_error(truths, fragments) < 1e-10
        assert metrics.support_leakage(truths, fragments) < 1e-10
        # Not every pair need be seen by some client, but none may be wrong.
        assert baseline.assemble_pairs(fragments).pairs <= world.order.pairs()


def test_clients_of_the_largest_worlds_are_recovered_in_little_time():
    # The largest block here has more than ten labels: trying all sets would not end.
    world = jc.simulate.random_world(40, 6, 0.6, 1)
    fragments, truths = recovered(world)
    assert max(len(b) for t in truths for b in t.blocks) > 10
    for fragment, truth in zip(fragments, truths, strict=True):
        assert_blocks_are_true(fragment, truth)


def test_several_strengths_of_a_label_are_used_together():
    for seed in range(10):
        world = jc.simulate.random_world(8, 1, 0.7, seed)
        fragment = baseline.recover_fragment(world.client(0, doses=2))
        assert_blocks_are_true(fragment, world.truth(0))


def test_a_mixing_that_makes_the_data_ill_conditioned_is_survived():
    worst = 0.0
    for seed in range(20):
        world = jc.simulate.random_world(4 + seed % 9, 1, 0.7, seed)
        client, truth = world.client(0), world.truth(0)
        rng = np.random.default_rng(seed)
        d, p = truth.mixing.shape
        left, right = (np.linalg.qr(rng.normal(size=(n, p)))[0] for n in (d, p))
        G = left * np.geomspace(1, 1e-4, p) @ right.T
        T = G @ np.linalg.pinv(truth.mixing)
        bad = rebuilt(client, lambda c, T=T: T @ c @ T.T)
        values = np.linalg.eigvalsh(bad.control.covariance)[-p:]
        worst = max(worst, values[-1] / values[0])
        assert_blocks_are_true(baseline.recover_fragment(bad), truth)
    assert worst > 1e8


# -- against the plain reading of the paper -------------------------------------------------------


def test_blocks_order_and_row_spaces_equal_those_of_the_plain_algorithms():
    for seed in range(40):
        client, _ = small_client(seed, most=8)
        fragment = baseline.recover_fragment(client)
        blocks, pairs, Q = plain_paper.recover(client)
        assert set(fragment.blocks) == blocks
        assert fragment.block_order.pairs() == pairs
        assert_same_row_spaces(fragment, blocks, Q)


def test_the_polynomial_search_finds_a_set_as_small_as_trying_all_of_them():
    for seed in range(40):
        client, _ = small_client(seed, most=10)
        planes = planes_of(client)
        everything = range(len(client.labels))
        space = project(planes, everything, np.eye(client.n_latent))
        quick = smallest_tight_set(space, Budget(10**6))
        plain = smallest_tight_set_by_trial(space, Budget(10**6))
        assert len(quick) == len(plain)


def test_the_published_enumeration_gives_the_same_fragments():
    largest = 0
    for seed in range(40):
        client, truth = small_client(seed, most=12)
        fast = baseline.recover_fragment(client)
        published = baseline.recover_fragment(client, search="published")
        assert_blocks_are_true(published, truth)
        assert published.to_json() == fast.to_json()
        np.testing.assert_array_equal(published.basis, fast.basis)
        largest = max(largest, *(len(b) for b in published.blocks))
    assert largest > 4  # several levels were gone through


def test_the_published_enumeration_looks_at_every_smaller_set():
    # A clique of confounded labels: all sets of up to four of the five are tried before the block.
    A = np.zeros((6, 6))
    A[:5, 5] = [0.5, -0.6, 0.7, 0.8, -0.9]
    client = jc.simulate.world_from_graph(A, [range(5)], None, 0).client(0)
    everything = frozenset(client.labels)
    needed = 5 + 10 + 10 + 5
    whole = baseline.recover_fragment(client, search="published", budget=needed)
    assert whole.outcome.ok
    assert whole.blocks == (everything,)
    short = baseline.recover_fragment(client, search="published", budget=needed - 1)
    assert short.outcome.code == "budget"
    assert f"{needed - 1} label sets" in short.outcome.message
    assert baseline.recover_fragment(client, budget=1).outcome.ok


@pytest.mark.parametrize("search", ["quick", None, ["fast"]])
def test_an_unknown_search_is_refused(search):
    client, _ = small_client(1)
    with pytest.raises(jc.InputError, match=r"client 'client-1': search is .* \"published\""):
        baseline.recover_fragment(client, search=search)


def test_the_basis_has_unit_rows_orthogonal_to_the_rows_of_ancestor_blocks():
    for seed in range(10):
        client, truth = small_client(seed)
        fragment = baseline.recover_fragment(client)
        gram = fragment.basis @ fragment.basis.T
        np.testing.assert_allclose(np.diag(gram), 1.0, atol=1e-12)
        for a in client.labels:
            for d in client.labels:
                if truth.block_order.is_ancestor(truth.block_of(a), truth.block_of(d)):
                    assert abs(gram[fragment.index(a), fragment.index(d)]) < 1e-12


def test_the_estimated_latents_are_the_basis_applied_to_the_rows():
    world = jc.simulate.setting("A", 0)
    fragment = baseline.recover_fragment(world.client(0))
    rows, _ = world.rows(0, 20)
    np.testing.assert_allclose(fragment.transform(rows), rows @ fragment.basis.T)


# -- what must not matter -------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_renaming_and_reordering_labels_renames_the_result(seed):
    client, _ = small_client(seed)
    rng = np.random.default_rng(seed)
    shuffled = [client.labels[i] for i in rng.permutation(len(client.labels))]
    new = {x: f"n{i}" for i, x in enumerate(rng.permutation(client.labels).tolist())}
    before = baseline.recover_fragment(client)
    after = baseline.recover_fragment(rebuilt(client, rename=new.__getitem__, labels=shuffled))
    renamed = before.block_order.relabel(lambda block: frozenset(new[x] for x in block))
    assert after.block_order == renamed


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_permuting_and_rotating_features_turns_the_basis_and_nothing_else(seed):
    client, _ = small_client(seed)
    rng = np.random.default_rng(seed)
    d = client.n_features
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0][rng.permutation(d)]
    before = baseline.recover_fragment(client)
    after = baseline.recover_fragment(rebuilt(client, lambda c: turn @ c @ turn.T))
    assert after.block_order == before.block_order
    assert_same_row_spaces(after, before.blocks, before.basis @ turn.T)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.integers(0, 4))
def test_another_mixing_gives_the_same_blocks(seed, more):
    client, truth = small_client(seed)
    p = truth.mixing.shape[1]
    G = np.random.default_rng(seed).normal(size=(p + more, p))
    T = G @ np.linalg.pinv(truth.mixing)
    after = baseline.recover_fragment(rebuilt(client, lambda c: T @ c @ T.T))
    assert after.block_order == truth.block_order


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.floats(-6, 6))
def test_the_scale_of_the_noise_does_not_matter(seed, exponent):
    client, truth = small_client(seed)
    before = baseline.recover_fragment(client)
    after = baseline.recover_fragment(rebuilt(client, lambda c: 10.0**exponent * c))
    assert after.block_order == truth.block_order
    assert_same_row_spaces(after, before.blocks, before.basis)


def test_noise_variances_of_very_different_size_are_survived():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        present = np.triu(rng.random((7, 7)) < 0.4, 1)
        A = np.where(present, rng.uniform(-1, 1, (7, 7)), 0.0)
        world = jc.simulate.world_from_graph(
            A, [range(7), [0, 2, 3, 5, 6]], None, seed, variances=10.0 ** rng.uniform(-2, 2, 7)
        )
        for k in range(2):
            assert_blocks_are_true(baseline.recover_fragment(world.client(k)), world.truth(k))


# -- clients that break the assumptions -----------------------------------------------------------


def test_an_intervention_without_effect_is_named():
    client, _ = small_client(4)
    idle = client.labels[0]
    broken = jc.Client.from_covariances(
        "lab-1",
        observational=client.control.covariance,
        interventions={
            x: client.control.covariance if x == idle else client.second_moments(x)[0]
            for x in client.labels
        },
        n_samples=None,
    )
    fragment = baseline.recover_fragment(broken)
    assert fragment.outcome.code == "not-identified"
    assert idle in fragment.outcome.message
    assert [(f.check, f.regime) for f in fragment.findings] == [("no-effect", idle)]
    assert np.isfinite(fragment.basis).all()


def test_two_labels_with_one_target_are_not_passed_over_in_silence():
    world = jc.simulate.world_from_graph(np.zeros((3, 3)), [range(3)], None, 0)
    client = world.client(0)
    a, b, c = client.labels
    second = {x: client.second_moments(x)[0] for x in client.labels}
    broken = jc.Client.from_covariances(
        "lab-1",
        observational=client.control.covariance,
        interventions={a: second[a], b: second[a], c: second[c]},
        n_samples=None,
    )
    fragment = baseline.recover_fragment(broken)
    assert fragment.outcome.code == "not-identified"
    assert fragment.outcome.remedy


def test_latents_without_an_intervention_are_reported():
    world = jc.simulate.setting("C", 0)
    labels = sorted(world.truth(0).labels)[:4]
    fragment = baseline.recover_fragment(world.client(0, labels=labels))
    assert fragment.outcome.code == "not-identified"
    assert "every latent" in fragment.outcome.message
    assert set(fragment.labels) == set(labels)
    assert fragment.basis.shape == (4, world.client(0).n_features)


def test_a_change_in_three_directions_is_no_single_intervention():
    client, _ = small_client(6, most=9)
    x = client.labels[0]
    wide = client.second_moments(x)[0] + 0.5 * client.control.covariance
    broken = jc.Client.from_covariances(
        "lab-1",
        observational=client.control.covariance,
        interventions={y: wide if y == x else client.second_moments(y)[0] for y in client.labels},
        n_samples=None,
    )
    fragment = baseline.recover_fragment(broken)
    assert ("rank-above-two", x) in {(f.check, f.regime) for f in fragment.findings}


@pytest.mark.parametrize("n", [None, 100])
def test_a_client_with_a_single_label_is_one_block(n):
    client = jc.Client.from_covariances(
        "lab-1",
        observational=[[1.0, 0.5], [0.5, 0.25 + 1e-6]],
        interventions={"pump": [[2.0, 1.0], [1.0, 0.5 + 1e-6]]},
        n_samples=n,
    )
    fragment = baseline.recover_fragment(client)
    assert fragment.outcome.ok
    assert fragment.blocks == (frozenset({"pump"}),)
    # The one latent is read along the features' own direction (2, 1).
    np.testing.assert_allclose(np.abs(fragment.basis), [[2 / 5**0.5, 1 / 5**0.5]], atol=1e-5)


def test_a_budget_binds_exact_moments_too():
    world = jc.simulate.setting("C", 0)
    fragment = baseline.recover_fragment(world.client(0), budget=3)
    assert fragment.outcome.code == "budget"
    *placed, last = fragment.blocks
    assert set(placed) <= set(world.truth(0).blocks)
    assert last == set(fragment.labels).difference(*placed)


def test_trying_all_sets_stops_at_its_budget():
    rng = np.random.default_rng(0)
    # Generic planes: only all labels together have as many directions as labels.
    vectors = np.stack([np.linalg.qr(rng.normal(size=(20, 2)))[0] for _ in range(20)])
    space = Space(vectors, np.full(20, 1e-14))
    budget = Budget(5_000)
    with pytest.raises(BudgetSpent):
        smallest_tight_set_by_trial(space, budget)
    assert budget.spent == 5_000
    assert smallest_tight_set(space, Budget(5_000)) == tuple(range(20))


def test_labels_whose_relations_drown_in_rounding_are_named():
    world = jc.simulate.random_world(20, 1, 0.6, 2)
    client, truth = world.client(0), world.truth(0)
    # A change of 1e-12 in numbers of sixteen digits leaves few for its relations.
    faint = jc.Client.from_covariances(
        "lab-1",
        observational=client.control.covariance,
        interventions={
            x: client.control.covariance
            + 1e-12 * (client.second_moments(x)[0] - client.control.covariance)
            for x in client.labels
        },
        n_samples=None,
    )
    fragment = baseline.recover_fragment(faint)
    assert {f.check for f in fragment.findings} <= {"ill-conditioned", "no-effect"}
    assert fragment.findings
    assert not baseline.recover_fragment(client).findings
    assert_blocks_are_true(baseline.recover_fragment(client), truth)
