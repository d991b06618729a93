"""Algorithms 1-FS and 2-FS on estimates: the printed rules, the search, its budget, its input."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.baseline.block_ancestor import block_ancestors_fs
from jigsaw_crl.baseline.budget import Budget, BudgetSpent
from jigsaw_crl.baseline.differences import Differences, differences_of, ratio
from jigsaw_crl.baseline.ratio_search import (
    largest_head,
    best_set_of_size,
    best_set_of_size_by_trial,
)
from jigsaw_crl.truth import metrics

from . import plain_paper

SEEDS = st.integers(0, 2**16)


def sampled(seed, n, most=8, coverage=0.7):
    world = jc.simulate.random_world(3 + seed % (most - 2), 1, coverage, seed)
    return world.client(0, n_samples=n, seed=seed)


def rebuilt(client, change=lambda c: c, rename=lambda x: x, labels=None):
    return jc.Client.from_covariances(
        client.name,
        observational=change(client.control_second_moment()),
        interventions={
            rename(x): change(client.second_moments(x)[0]) for x in (labels or client.labels)
        },
        n_samples=client.control.n,
    )


# -- against the plain reading of the paper -------------------------------------------------------


@pytest.mark.parametrize("tau", [0.01, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("n", [300, 10_000, 1_000_000])
def test_blocks_order_and_basis_equal_those_of_the_plain_algorithms(n, tau):
    for seed in range(12):
        client = sampled(seed, n)
        fragment = baseline.recover_fragment(client, tau=tau)
        blocks, pairs, Q = plain_paper.recover(client, tau)
        assert set(fragment.blocks) == blocks
        assert fragment.block_order.pairs() == pairs
        for block in blocks:
            rows = [fragment.index(x) for x in block]
            ours, plain = fragment.basis[rows], Q[rows]
            np.testing.assert_allclose(ours.T @ ours, plain.T @ plain, atol=1e-5)


@pytest.mark.parametrize("tau", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("n", [1000, 1_000_000])
def test_the_published_enumeration_gives_the_same_fragments(n, tau):
    for seed in range(12):
        client = sampled(seed, n, most=10)
        fast = baseline.recover_fragment(client, tau=tau)
        published = baseline.recover_fragment(client, tau=tau, search="published")
        assert published.outcome.ok
        assert published.to_json() == fast.to_json()
        np.testing.assert_array_equal(published.basis, fast.basis)


def test_the_published_enumeration_looks_at_every_set_of_a_level():
    rng = np.random.default_rng(0)
    grams = np.stack([M.T @ M for M in rng.normal(size=(6, 6, 6))])
    budget = Budget(1000)
    assert best_set_of_size_by_trial(grams, 3, 0.01, budget) is None
    assert budget.spent == 20
    with pytest.raises(BudgetSpent):
        best_set_of_size_by_trial(grams, 3, 0.01, Budget(19))


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(2, 8), st.sampled_from([0.02, 0.1, 0.3, 0.6]))
def test_pruning_never_changes_the_best_set(seed, m, tau):
    rng = np.random.default_rng(seed)
    # Changes of rank two with some noise, of very different sizes.
    rows = [
        10.0 ** rng.uniform(-2, 2)
        * (rng.normal(size=(m, 2)) @ rng.normal(size=(2, m)) + 0.03 * rng.normal(size=(m, m)))
        for _ in range(m)
    ]
    grams = np.stack([M.T @ M for M in rows])
    for r in range(1, m + 1):
        ratios = {C: ratio(np.vstack([rows[j] for j in C]), r) for C in combinations(range(m), r)}
        best = max(ratios, key=ratios.__getitem__)
        expected = best if ratios[best] >= 1 - tau else None
        assert best_set_of_size(grams, r, tau, Budget(10**6)) == expected
        assert best_set_of_size_by_trial(grams, r, tau, Budget(10**6)) == expected


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 6), st.integers(1, 4))
def test_the_bound_on_what_more_rows_can_reach_holds(seed, r, more):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(5, 8)) * 10.0 ** rng.uniform(-2, 1, size=(5, 1))
    extra = rng.normal(size=(more, 8)) * 10.0 ** rng.uniform(-2, 1)
    before = np.linalg.svd(np.vstack([S, np.zeros((3, 8))]), compute_uv=False)[::-1]
    after = np.linalg.svd(np.vstack([S, extra]), compute_uv=False)
    bound = largest_head(before[None, -r:], np.array([(extra**2).sum()]))[0]
    assert after[:r].sum() <= bound * (1 + 1e-12)


def test_pruning_spares_most_of_the_sets():
    world = jc.simulate.random_world(24, 1, 0.7, 3)
    client = world.client(0, n_samples=10**6)
    m = len(client.labels)
    assert m >= 15
    budget = Budget(10**6)
    grams = np.stack([M.T @ M for M in differences_of(client).rows])
    assert best_set_of_size(grams, 7, 1e-4, budget) is None
    everything = len(list(combinations(range(m), 7)))
    assert budget.spent < everything / 4


# -- the printed rules ----------------------------------------------------------------------------


def test_the_ratio_is_of_singular_values_not_of_their_squares():
    assert ratio(np.diag([3.0, 2.0, 1.0]), 1) == pytest.approx(0.5)
    assert ratio(np.diag([3.0, 2.0, 1.0]), 2) == pytest.approx(5 / 6)
    assert ratio(np.zeros((3, 3)), 1) == 1.0


def test_a_set_is_accepted_when_its_ratio_equals_the_threshold():
    # σ = (3, 1): the ratio at r = 1 is exactly 3/4.
    grams = np.stack([np.diag([9.0, 1.0]), np.diag([1.0, 1.0])])
    assert best_set_of_size(grams, 1, 0.25, Budget(100)) == (0,)
    assert best_set_of_size(grams, 1, 0.25 - 1e-9, Budget(100)) is None


def test_an_ancestor_is_kept_when_the_ratio_equals_the_threshold():
    # The new block's change off the other blocks has σ = (3, 1), so its ratio is exactly 3/4.
    differences = Differences(("a", "b"), np.eye(2), (np.diag([1.0, 0.0]), np.diag([3.0, 1.0])))
    rows = {(0,): np.array([[0.0, 1.0]])}
    assert block_ancestors_fs((1,), differences, rows, 0.25)[1] == [(0,)]
    assert block_ancestors_fs((1,), differences, rows, 0.25 + 1e-9)[1] == []


def test_among_passing_sets_the_one_of_largest_ratio_is_taken():
    grams = np.stack([np.diag([100.0, 1.0]), np.diag([10_000.0, 1.0]), np.diag([400.0, 1.0])])
    assert best_set_of_size(grams, 1, 0.2, Budget(100)) == (1,)


def test_the_default_threshold_is_the_paper_s():
    client = sampled(5, 20_000)
    by_default = baseline.recover_fragment(client)
    chosen = baseline.recover_fragment(client, tau=0.05)
    assert by_default.block_order == chosen.block_order
    np.testing.assert_array_equal(by_default.basis, chosen.basis)


# -- what must not matter -------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_renaming_reordering_turning_and_scaling_leave_the_blocks_alone(seed):
    client = sampled(seed, 50_000)
    rng = np.random.default_rng(seed)
    shuffled = [client.labels[i] for i in rng.permutation(len(client.labels))]
    new = {x: f"n{i}" for i, x in enumerate(rng.permutation(client.labels).tolist())}
    d = client.n_features
    turn = 3.7 * np.linalg.qr(rng.normal(size=(d, d)))[0][rng.permutation(d)]
    before = baseline.recover_fragment(rebuilt(client))
    after = baseline.recover_fragment(
        rebuilt(client, lambda c: turn @ c @ turn.T, new.__getitem__, shuffled)
    )
    renamed = before.block_order.relabel(lambda block: frozenset(new[x] for x in block))
    assert after.block_order == renamed


# -- how well it does -----------------------------------------------------------------------------


def test_a_million_rows_recover_most_of_setting_a():
    scores = []
    for seed in range(5):
        world = jc.simulate.setting("A", seed)
        clients = [world.client(k, n_samples=10**6, seed=seed) for k in range(world.n_clients)]
        fragments = [baseline.recover_fragment(c, tau=0.03) for c in clients]
        truths = [world.truth(k) for k in range(world.n_clients)]
        order = baseline.assemble_pairs(fragments)
        scores.append(
            (
                metrics.global_f1(world.order, order.pairs),
                metrics.subspace_error(truths, fragments),
                metrics.support_leakage(truths, fragments),
            )
        )
    e1, e2, e3 = np.mean(scores, axis=0)
    assert e1 > 0.8
    assert e2 < 0.1
    assert e3 < 0.2


def test_a_million_rows_reach_the_level_of_the_paper_s_table():
    # The paper prints 0.81 for p = 10, K = 15, q = 0.6 (one run).
    scores = []
    for seed in range(10):
        world = jc.simulate.random_world(10, 15, 0.6, seed)
        fragments = [
            baseline.recover_fragment(world.client(k, n_samples=10**6, seed=seed), tau=0.07)
            for k in range(15)
        ]
        scores.append(metrics.global_f1(world.order, baseline.assemble_pairs(fragments).pairs))
    assert 0.7 < np.mean(scores) < 0.92


# -- the budget -----------------------------------------------------------------------------------


def test_when_the_budget_ends_the_fragment_says_so_and_keeps_what_was_found():
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


def test_a_budget_of_one_still_gives_a_whole_fragment():
    client = sampled(5, 10_000)
    fragment = baseline.recover_fragment(client, budget=1)
    assert fragment.outcome.code == "budget"
    assert fragment.blocks == (frozenset(client.labels),)


def test_a_budgeted_result_does_not_depend_on_the_moment_it_is_run():
    client = jc.simulate.random_world(16, 1, 0.8, 2).client(0, n_samples=1000)
    runs = [baseline.recover_fragment(client, tau=0.02, budget=500) for _ in range(2)]
    assert runs[0].to_json() == runs[1].to_json()


def test_a_budget_is_never_overspent():
    budget = Budget(10)
    budget.spend(10)
    with pytest.raises(BudgetSpent):
        budget.spend(1)
    assert budget.spent == 10


# -- input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, float("nan"), float("inf"), "0.05", True])
@pytest.mark.parametrize("n", [None, 1000])
def test_a_threshold_outside_zero_to_one_is_refused(tau, n):
    client = sampled(5, n)
    with pytest.raises(jc.InputError, match=r"client 'client-1': tau is .* between 0 and 1"):
        baseline.recover_fragment(client, tau=tau)


@pytest.mark.parametrize("budget", [0, -5, 1.5, True, None, "many"])
def test_a_budget_that_is_no_positive_whole_number_is_refused(budget):
    with pytest.raises(jc.InputError, match=r"client 'client-1': budget is .* at least 1"):
        baseline.recover_fragment(sampled(5, 1000), budget=budget)


def test_a_regime_without_variance_in_a_needed_direction_is_refused():
    client = sampled(5, 1000)
    label, d = client.labels[0], client.n_features
    flat = np.zeros((d, d))
    flat[0, 0] = 1.0
    broken = jc.Client.from_covariances(
        "lab-1",
        observational=client.control.covariance,
        interventions={
            x: flat if x == label else client.second_moments(x)[0] for x in client.labels
        },
        n_samples=1000,
    )
    with pytest.raises(jc.InputError, match=f"client 'lab-1', regime '{label}': .* singular"):
        baseline.recover_fragment(broken)


def test_the_fragment_says_where_it_comes_from_and_no_more_than_the_paper_knows():
    client = sampled(5, 1000)
    fragment = baseline.recover_fragment(client)
    assert fragment.method == "paper"
    assert fragment.client == client.name
    assert fragment.labels == client.labels
    assert fragment.n_samples == client.n_samples
    assert fragment.districts is fragment.bayes is fragment.statements is None
    assert jc.Fragment.from_json(fragment.to_json()).block_order == fragment.block_order


def test_latents_without_an_intervention_are_reported_from_samples_too():
    world = jc.simulate.setting("C", 0)
    labels = sorted(world.truth(0).labels)[:4]
    fragment = baseline.recover_fragment(world.client(0, n_samples=5000, labels=labels))
    assert fragment.outcome.code == "not-identified"
    assert "every latent" in fragment.outcome.message
