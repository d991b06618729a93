"""Sampling, search and decoding compared with the enumeration of all orders."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl.assembly.posterior import best_order, decode, draw_orders, sample_orders
from jigsaw_crl.assembly.posterior.agreement import Halves
from jigsaw_crl.assembly.posterior.decode import LEAST_F1
from jigsaw_crl.assembly.posterior.walk import Chain, Proposals, Weights
from jigsaw_crl.base.bitsets import unpack
from jigsaw_crl.base.order import transitive_closure

from .test_entailment import all_orders


def exact_marginals(evidence: np.ndarray | Weights) -> np.ndarray:
    orders = all_orders(len(evidence))
    scores = np.array([Weights.of(evidence).score(o) for o in orders])
    weight = np.exp(scores - scores.max())
    return np.tensordot(weight / weight.sum(), orders, axes=1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sampled_probabilities_match_the_enumerated_posterior(seed):
    rng = np.random.default_rng(seed)
    evidence = rng.normal(scale=2.5, size=(4, 4))
    found = sample_orders(evidence, rng, first=8000)
    assert found.convergence.converged
    np.testing.assert_allclose(found.probability, exact_marginals(evidence), atol=0.03)


def any_weights(rng: np.random.Generator, p: int, scale: float) -> Weights:
    implied, cover = rng.normal(scale=scale, size=(2, p, p))
    return Weights(implied - 1.0, cover - 1.0, rng.normal(scale=scale, size=p))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_covers_and_labels_with_ancestors_may_have_weights_of_their_own(seed):
    rng = np.random.default_rng([seed, 2])
    weights = any_weights(rng, 4, 1.5)
    found = sample_orders(weights, rng, first=8000)
    np.testing.assert_allclose(found.probability, exact_marginals(weights), atol=0.03)
    np.testing.assert_allclose(found.chains.mean(axis=0), found.probability)


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
    exact = exact_marginals(evidence)
    assert 0.2 < exact[3, 4] < 0.8
    found = sample_orders(evidence, np.random.default_rng(8))
    assert found.convergence.converged
    assert found.convergence.sweeps <= 2000
    np.testing.assert_allclose(found.probability, exact, atol=0.06)


@pytest.mark.parametrize("p", [6, 30, 70, 130])
def test_a_chain_stays_an_order_and_keeps_its_score_up_to_date(p):
    rng = np.random.default_rng(p)
    weights = any_weights(rng, p, 3.0)
    start = best_order(weights, rng)
    chain = Chain.at(start, weights, rng, score=weights.score(start))
    for _ in range(15):
        trace = chain.walk(4)
        matrix = chain.matrix()
        np.testing.assert_array_equal(transitive_closure(matrix), matrix)
        np.testing.assert_array_equal(unpack(chain.down, p).T, matrix)
        assert trace[-1] == chain.score
        assert chain.score == pytest.approx(weights.score(matrix), abs=1e-6)


def pairs_in_turn(p: int, leave: int = 0) -> Proposals:
    """All pairs of p labels, except the first few, are proposed alone and two at a time."""
    moving = ~np.eye(p, dtype=bool)
    moving.ravel()[np.flatnonzero(moving)[:leave]] = False
    return Proposals.among(moving)


@pytest.mark.parametrize(("seed", "leave"), [(0, 0), (1, 0), (2, 5)])
def test_two_bridges_at_a_time_sample_the_enumerated_posterior(seed, leave):
    # Pairs that are not among the active ones are reached by the proposals aside.
    rng = np.random.default_rng([seed, 3])
    weights = any_weights(rng, 4, 1.5)
    start = np.zeros((4, 4), dtype=bool)
    chain = Chain.at(start, weights, rng, proposals=pairs_in_turn(4, leave))
    counts = np.zeros((4, 4), dtype=np.int32)
    chain.walk(40_000, counts=counts)
    np.testing.assert_allclose(counts / 40_000, exact_marginals(weights), atol=0.02)


@pytest.mark.parametrize("p", [6, 70, 130])
def test_a_chain_of_two_bridges_at_a_time_stays_an_order(p):
    rng = np.random.default_rng([p, 4])
    weights = any_weights(rng, p, 3.0)
    start = best_order(weights, rng)
    score = weights.score(start)
    chain = Chain.at(start, weights, rng, proposals=pairs_in_turn(p), score=score)
    for _ in range(4):
        chain.walk(1)
        matrix = chain.matrix()
        np.testing.assert_array_equal(transitive_closure(matrix), matrix)
        np.testing.assert_array_equal(unpack(chain.down, p).T, matrix)
        assert chain.score == pytest.approx(weights.score(matrix), abs=1e-6)


@pytest.mark.slow
def test_of_many_labels_the_pairs_of_small_components_have_their_exact_probabilities():
    # 26 groups of 4 labels; everything between groups is excluded.
    rng = np.random.default_rng(11)
    p, size = 104, 4
    implied = np.full((p, p), -30.0)
    cover = np.zeros((p, p))
    groups = [any_weights(rng, size, 1.5) for _ in range(p // size)]
    exact = np.zeros((p, p))
    for number, group in enumerate(groups):
        grid = np.ix_(*(range(size * number, size * number + size),) * 2)
        implied[grid], cover[grid] = group.implied, group.cover
        exact[grid] = exact_marginals(group)
    ancestry = np.concatenate([group.ancestry for group in groups])
    found = sample_orders(Weights(implied, cover, ancestry), rng, first=700, most=700)
    np.testing.assert_allclose(found.probability, exact, atol=0.12)
    within = exact > 0
    assert np.abs(found.probability - exact)[within].mean() < 0.02


def half(*pairs: float) -> np.ndarray:
    """What one half of a chain says about the pairs 0 → 1, 0 → 2 and 1 → 2."""
    matrix = np.zeros((3, 3))
    matrix[[0, 0, 1], [1, 2, 2]] = pairs
    return matrix


def test_pairs_that_one_chain_decides_and_another_does_not_are_set_aside():
    trace = np.random.default_rng(0).normal(size=50)
    means = [half(0.99, 0.5, 0.02), half(0.8, 0.6, 0.2)] * 2
    halves = Halves([trace] * 4, means)
    everything = halves.convergence(np.ones((3, 3), dtype=bool))
    assert everything.disputed == ((0, 1), (1, 2))
    assert not everything.converged
    assert "do not agree yet, on 2 pairs in particular" in str(everything)
    seen = np.zeros((3, 3), dtype=bool)
    seen[0, 2] = True
    judged = halves.convergence(seen)
    assert judged.converged
    assert judged.disputed == ()
    assert judged.worst_error == pytest.approx(np.sqrt(0.01 / 3 / 4))


def test_drawn_orders_have_the_posterior_frequencies():
    rng = np.random.default_rng(5)
    evidence = rng.normal(scale=1.5, size=(4, 4))
    drawn = np.mean(draw_orders(evidence, rng, 1500, gap=5), axis=0)
    np.testing.assert_allclose(drawn, exact_marginals(evidence), atol=0.06)


def test_every_drawn_order_is_transitive_and_free_of_cycles():
    rng = np.random.default_rng(6)
    evidence = rng.normal(scale=3.0, size=(70, 70))
    for order in draw_orders(evidence, rng, 5, gap=2):
        np.testing.assert_array_equal(transitive_closure(order), order)
        assert not np.diagonal(order).any()


def test_local_search_comes_close_to_the_best_of_all_orders():
    orders, share = all_orders(4), []
    for seed in range(40):
        rng = np.random.default_rng([seed, 1])
        weights = Weights.plain(rng.normal(scale=3.0, size=(4, 4)))
        scores = [weights.score(o) for o in orders]
        reached = weights.score(best_order(weights, rng))
        assert reached <= max(scores) + 1e-9
        share.append(reached / max(*scores, 1.0))
    assert np.mean(share) > 0.9


def test_chains_that_do_not_agree_in_time_are_reported():
    rng = np.random.default_rng(3)
    evidence = rng.normal(scale=6.0, size=(40, 40))
    found = sample_orders(evidence, rng, first=2, most=2)
    assert not found.convergence.converged
    assert "do not agree" in str(found.convergence)


def test_decoding_comes_close_to_the_best_expected_f1_of_all_orders():
    orders = all_orders(4)
    lost = []
    for seed in range(60):
        rng = np.random.default_rng([seed, 2])
        probability = exact_marginals(rng.normal(scale=2.0, size=(4, 4)))

        def value(order: np.ndarray, probability: np.ndarray = probability) -> float:
            return 2 * probability[order].sum() / (order.sum() + probability.sum())

        best = max(value(o) for o in orders)
        if best >= LEAST_F1:
            lost.append(best - value(decode(probability, rng)))
    assert len(lost) > 15
    assert np.mean(lost) < 0.01
    assert min(lost) > -1e-9


def test_decoding_claims_nothing_if_every_pair_is_improbable():
    probability = np.full((6, 6), 0.1)
    np.fill_diagonal(probability, 0.0)
    assert not decode(probability, np.random.default_rng(0)).any()
