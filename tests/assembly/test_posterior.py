"""Sampling and its agreement, compared with the enumeration of all orders."""

import dataclasses

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.posterior import chains
from jigsaw_crl.assembly.posterior.chains import (
    all_orders,
    convergence,
    entailed,
    sample_orders,
    split_r_hat,
)
from jigsaw_crl.assembly.posterior.walk import Chains, Weights, best_order, unpack
from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.evidence.priors import PAIR_COST

from .clients import lab


def exact_marginals(weights):
    orders = all_orders(len(weights))
    scores = np.array([weights.scores(o) for o in orders])
    weight = np.exp(scores - scores.max())
    return np.tensordot(weight / weight.sum(), orders, axes=1)


def plain(evidence):
    """Log factors less a cost for every pair, and a cost of 1 for every cover."""
    return Weights(evidence - PAIR_COST, np.full(evidence.shape, -1.0), np.zeros(len(evidence)))


def any_weights(rng, p, scale):
    implied, cover = rng.normal(scale=scale, size=(2, p, p))
    return Weights(implied - 1.0, cover - 1.0, rng.normal(scale=scale, size=p))


def stages(monkeypatch, first, most=16_000):
    """Sweeps per half in the first stage, and the most in any."""
    monkeypatch.setattr(chains, "FIRST", first)
    monkeypatch.setattr(chains, "MOST_SWEEPS", most)


def walked(weights, sweeps, moving=None):
    """Share of the sweeps of one chain that had each pair."""
    p = len(weights)
    start, every = np.zeros((p, p), dtype=bool), ~np.eye(p, dtype=bool)
    chain = Chains.at([start], weights, np.random.default_rng(8))
    chain.active = np.flatnonzero(every if moving is None else moving)
    _, (counts,), _ = chain.walk(sweeps)
    return counts / sweeps


@pytest.mark.parametrize("anchored", [False, True])
def test_chains_reach_orders_that_differ_in_several_pairs_at_once(anchored):
    # 0, 1 and 2 are certainly ancestors of 3. Either 3 and all of them are ancestors of 4, or none
    # is (except 0, if anchored). Changing one pair alone has a probability of about e^-13.
    evidence = np.zeros((5, 5)) - 6.0
    evidence[:3, 3] = 20.0
    evidence[:3, 4] = -2.5
    evidence[3, 4] = 8.0 if anchored else 12.5
    if anchored:
        evidence[0, 4] = 20.0
    exact = exact_marginals(plain(evidence))
    assert 0.2 < exact[3, 4] < 0.8
    np.testing.assert_allclose(walked(plain(evidence), 4_000), exact, atol=0.06)


@pytest.mark.parametrize("p", [6, 30, 70, 130])
def test_a_chain_stays_an_order_and_keeps_its_score_up_to_date(p):
    rng = np.random.default_rng(p)
    weights = any_weights(rng, p, 3.0)
    start = best_order(weights.direct, rng)
    chain = Chains.at([start], weights, rng)
    for _ in range(4):
        trace, counts, orders = chain.walk(1, kept=1)
        (matrix,) = chain.matrices()
        np.testing.assert_array_equal(transitive_closure(matrix), matrix)
        for same in (unpack(chain.down[0], p).T, counts[0], unpack(orders[0, 0], p)):
            np.testing.assert_array_equal(same, matrix)
        assert trace[0, -1] == chain.score[0]
        assert chain.score[0] == pytest.approx(weights.scores(matrix), abs=1e-6)


@pytest.mark.parametrize(("seed", "leave"), [(0, 0), (1, 0), (2, 5), (3, 12)])
def test_bridges_and_flips_sample_the_enumerated_posterior(seed, leave):
    # The first few pairs have no bridges: they change by flips alone, or with other pairs.
    weights = any_weights(np.random.default_rng([seed, 3]), 4, 1.5)
    moving = ~np.eye(4, dtype=bool)
    moving.ravel()[np.flatnonzero(moving)[:leave]] = False
    np.testing.assert_allclose(walked(weights, 40_000, moving), exact_marginals(weights), atol=0.02)


def test_labels_that_move_alone_sample_the_enumerated_posterior(monkeypatch):
    # No bridges, and so few flips that moves of labels do most of the work.
    monkeypatch.setattr(Chains, "flips", 2)
    weights, p = any_weights(np.random.default_rng(5), 5, 1.5), 5
    chain = Chains.at([np.zeros((p, p), dtype=bool)], weights, np.random.default_rng(6))
    chain.active = chain.active[:0]
    _, (counts,), _ = chain.walk(60_000)
    np.testing.assert_allclose(counts / 60_000, exact_marginals(weights), atol=0.02)
    assert chain.score[0] == pytest.approx(weights.scores(chain.matrices()[0]), abs=1e-6)


def test_a_label_on_the_wrong_side_of_several_others_comes_to_the_right_one():
    # 0 → 1 → … → 5 is certain. 6 is below all of them by evidence of 10 each, and above by 3 each:
    # between the two lies an order without either, e^18 times less probable than where 6 starts.
    p = 7
    log_factor = np.full((p, p), -5.0)
    log_factor[np.triu_indices(6, 1)] = 30.0
    log_factor[:6, 6], log_factor[6, :6] = 10.0, 3.0
    start = np.zeros((p, p), dtype=bool)
    start[:6, :6] = np.triu(np.ones((6, 6), dtype=bool), 1)
    start[6, :6] = True
    chains = Chains.at([start] * 4, plain(log_factor), np.random.default_rng(0))
    chains.active = chains.active[:0]
    chains.walk(100)
    for matrix in chains.matrices():
        assert matrix[:6, 6].all()


def test_chains_find_one_long_chain_of_labels():
    # 0 → 1 → … → 99. A fifth of the pairs is seen by nobody, and one answer in fifty is wrong.
    p, rng = 100, np.random.default_rng(1)
    true = np.triu(np.ones((p, p), dtype=bool), 1)
    log_factor = np.where(true ^ (rng.random((p, p)) < 0.02), 4.0, -4.0)
    log_factor[rng.random((p, p)) < 0.2] = 0.0
    chains = Chains.at([np.zeros((p, p), dtype=bool)] * 4, plain(log_factor), rng)
    chains.grow(8)
    chains.walk(10)
    for matrix in chains.matrices():
        assert (matrix != true).mean() < 0.015


def test_bridges_are_proposed_where_what_they_add_is_worth_something():
    # 0, 1 → 2 and 3 → 4, 5 hold. Nobody saw 2 and 3 together; the other pairs between speak for it.
    log_factor = np.full((6, 6), -9.0)
    log_factor[:2, 2] = log_factor[3, 4:] = 9.0
    log_factor[:3, 3:] = 3.0
    log_factor[2, 3] = log_factor[5, 0] = 0.0
    start = log_factor > 8.0
    chain = Chains.at([start], plain(log_factor), np.random.default_rng(0))
    proposed = set(chain.active.tolist())
    assert 2 * 6 + 3 in proposed
    assert 5 * 6 + 0 not in proposed


def test_pairs_that_one_chain_decides_and_another_does_not_are_set_aside():
    means = np.zeros((2, 2, 3, 3))
    means[:, :, [0, 0, 1], [1, 2, 2]] = [[0.99, 0.5, 0.02], [0.8, 0.55, 0.2]]
    traces = np.tile(np.random.default_rng(0).normal(size=50), (4, 1))
    found = convergence(means, traces)
    assert found.disputed == ((0, 1), (1, 2))
    assert not found.converged
    assert "do not agree yet, on 2 pairs in particular" in str(found)
    assert found.worst_error == pytest.approx(np.sqrt(4 * 0.025**2 / 3 / 4))


def test_the_same_seed_draws_the_same_orders_and_more_than_were_kept(monkeypatch):
    # Six labels are too many to weigh all orders.
    stages(monkeypatch, 10, 10)
    weights = any_weights(np.random.default_rng(7), 6, 1.5)
    found = sample_orders(weights, np.random.default_rng(0))
    assert not found.convergence.converged
    assert "do not agree" in str(found.convergence)
    one, same, other = (np.array(found.sample(20, seed=s)) for s in (3, 3, 4))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    once, often = (found.sample(n * len(found.orders)) for n in (1, 3))
    np.testing.assert_allclose(np.mean(often, axis=0), np.mean(once, axis=0))


@pytest.mark.parametrize("p", [4, 7])
def test_orders_agree_with_what_is_certain(p):
    # 0 is an ancestor of 1, 2 is not one of 3, 3 not one of 0, and 0 or 1 is one of 3.
    yes, no = np.zeros((2, p, p), dtype=bool)
    yes[0, 1] = no[2, 3] = True
    no[3, 0] = True
    no[4:], no[:, 4:] = True, True
    no &= ~np.eye(p, dtype=bool)
    runs = [entailed(yes, no, [((1, 0), 3)], np.random.default_rng(seed)) for seed in range(6)]
    orders = [
        o for o in all_orders(4) if o[0, 1] and not o[2, 3] and not o[3, 0] and o[:2, 3].any()
    ]
    scores = np.array([plain(np.zeros((4, 4))).scores(o) for o in orders])
    exact = np.tensordot(np.exp(scores) / np.exp(scores).sum(), orders, axes=1)
    found, mean = runs[0], np.mean([run.probability for run in runs], axis=0)
    np.testing.assert_allclose(mean[:4, :4], exact, atol=0.03)
    for order in found.sample(200):
        assert order[0, 1]
        assert not order[2, 3]
        assert order[1, 3] or order[0, 3]
    np.testing.assert_allclose(np.mean(found.sample(400), axis=0), found.probability, atol=0.07)


def test_chains_that_stand_still_apart_have_a_large_but_finite_r_hat():
    still = np.repeat([[3.0], [7.0], [3.0], [7.0]], 20, axis=1)
    assert 10.0 < split_r_hat(still) < np.inf
    assert split_r_hat(np.full((4, 20), 3.0)) == 1.0
    assert split_r_hat(np.zeros((4, 1))) == 1.0


def test_a_global_order_draws_from_the_probabilities_that_it_states():
    world = jc.simulate.random_world(12, 3, 0.7, 9_200_001)
    fragments = [jc.recover_fragment(client) for client in world.clients(1_000, seed=1)]
    order = jc.assemble(fragments)
    assert ((order.probabilities > 0.2) & (order.probabilities < 0.8)).any()
    drawn = np.array(order.sample(400))
    np.testing.assert_allclose(drawn.mean(axis=0), order.probabilities, atol=0.08)
    # A copy knows the fragments and the seed, and samples the same orders again.
    np.testing.assert_array_equal(drawn, np.array(dataclasses.replace(order).sample(400)))


def test_an_exact_order_draws_only_what_agrees_with_one_of_several_ancestors():
    # lab-1 names two candidates and cannot say which.
    order = jc.assemble([lab("lab-1", "abd", no=[("d", "a"), ("d", "b")], one_of=[("ab", "d")])])
    assert order.mode == "exact"
    assert all(drawn[:2, 2].any() for drawn in order.sample(100))
    assert order.probability("a", "d") + order.probability("b", "d") > 1.0


def test_probabilities_of_a_few_labels_are_exact_and_those_that_chains_approach(monkeypatch):
    weights = any_weights(np.random.default_rng(2), 4, 2.0)
    exact = sample_orders(weights, np.random.default_rng(0))
    assert str(exact.convergence) == "all orders were weighed"
    np.testing.assert_allclose(exact.probability, exact_marginals(weights), atol=1e-12)
    drawn = exact.sample(4_000)
    np.testing.assert_allclose(np.mean(drawn, axis=0), exact.probability, atol=0.04)
    monkeypatch.setattr(chains, "FEW", 0)
    stages(monkeypatch, 2_000, 4_000)
    sampled = sample_orders(weights, np.random.default_rng(0))
    np.testing.assert_allclose(sampled.probability, exact.probability, atol=0.03)


@pytest.mark.slow
def test_of_many_labels_the_pairs_of_small_components_have_their_exact_probabilities(monkeypatch):
    # 26 groups of 4 labels; everything between groups is excluded.
    rng, p, size = np.random.default_rng(11), 104, 4
    implied = np.full((p, p), -30.0)
    cover, exact = np.zeros((p, p)), np.zeros((p, p))
    groups = [any_weights(rng, size, 1.5) for _ in range(p // size)]
    for number, group in enumerate(groups):
        grid = np.ix_(*(range(size * number, size * number + size),) * 2)
        implied[grid], cover[grid] = group.implied, group.cover
        exact[grid] = exact_marginals(group)
    ancestry = np.concatenate([group.ancestry for group in groups])
    stages(monkeypatch, 700, 700)
    found = sample_orders(Weights(implied, cover, ancestry), rng)
    np.testing.assert_allclose(found.probability, exact, atol=0.12)
    within = exact > 0
    assert np.abs(found.probability - exact)[within].mean() < 0.02
