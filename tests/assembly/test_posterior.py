"""Sampling, search and decoding compared with the enumeration of all orders."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl.assembly.posterior import best_order, decode, draw_orders, sample_orders
from jigsaw_crl.assembly.posterior.decode import LEAST_F1
from jigsaw_crl.assembly.posterior.walk import COVER_COST, Chain, order_score
from jigsaw_crl.base.bitsets import unpack
from jigsaw_crl.base.order import transitive_closure
from jigsaw_crl.evidence.priors import PAIR_COST

from .test_entailment import all_orders


def exact_marginals(evidence: np.ndarray) -> np.ndarray:
    orders = all_orders(len(evidence))
    scores = np.array([order_score(o, evidence - PAIR_COST, COVER_COST) for o in orders])
    weight = np.exp(scores - scores.max())
    return np.tensordot(weight / weight.sum(), orders, axes=1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sampled_probabilities_match_the_enumerated_posterior(seed):
    rng = np.random.default_rng(seed)
    evidence = rng.normal(scale=2.5, size=(4, 4))
    found = sample_orders(evidence, rng, first=8000)
    assert found.convergence.converged
    np.testing.assert_allclose(found.probability, exact_marginals(evidence), atol=0.03)


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
    weight = rng.normal(scale=4.0, size=(p, p)) - 3.0
    start = best_order(weight, rng)
    chain = Chain.at(start, weight, rng, score=order_score(start, weight, COVER_COST))
    for _ in range(15):
        trace = chain.walk(4)
        matrix = chain.matrix()
        np.testing.assert_array_equal(transitive_closure(matrix), matrix)
        np.testing.assert_array_equal(unpack(chain.down, p).T, matrix)
        assert trace[-1] == chain.score
        assert chain.score == pytest.approx(order_score(matrix, weight, COVER_COST), abs=1e-6)


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
        weight = rng.normal(scale=3.0, size=(4, 4))
        scores = [order_score(o, weight, 1.0) for o in orders]
        reached = order_score(best_order(weight, rng), weight, 1.0)
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
