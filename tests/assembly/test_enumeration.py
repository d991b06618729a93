"""All orders of a few labels: every one once, weighed exactly."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl.assembly.posterior import best_order, chains, sample_orders
from jigsaw_crl.assembly.posterior.enumeration import Enumeration, all_orders
from jigsaw_crl.assembly.posterior.walk import Weights
from jigsaw_crl.base.order import boolean_product


def some_weights(p, seed):
    rng = np.random.default_rng(seed)
    given = [rng.normal(scale=2.0, size=shape) for shape in ((p, p), (p, p), p)]
    for matrix in given[:2]:
        np.fill_diagonal(matrix, 0.0)
    return Weights(*given)


@pytest.mark.parametrize(("p", "n"), [(0, 1), (1, 1), (2, 3), (3, 19), (4, 219), (5, 4_231)])
def test_every_strict_order_is_there_once(p, n):
    orders = all_orders(p)
    assert len(orders) == n
    assert len({order.tobytes() for order in orders}) == n
    for order in orders:
        assert not (order & order.T).any()
        assert not (boolean_product(order, order) & ~order).any()


def test_scores_are_those_of_the_weights_and_the_best_has_the_highest():
    weights = some_weights(4, 1)
    found = Enumeration.of(weights)
    wanted = [weights.score(order) for order in found.orders]
    np.testing.assert_allclose(found.score, wanted, atol=1e-12)
    best = best_order(weights, np.random.default_rng(0))
    assert weights.score(best) == pytest.approx(max(wanted))


def test_probabilities_are_those_that_chains_approach(monkeypatch):
    weights = some_weights(4, 2)
    exact = sample_orders(weights, np.random.default_rng(0))
    assert exact.convergence.converged
    assert str(exact.convergence) == "all orders were weighed"
    monkeypatch.setattr(chains, "FEW", 0)
    sampled = sample_orders(weights, np.random.default_rng(0), first=2_000, most=4_000)
    np.testing.assert_allclose(sampled.probability, exact.probability, atol=0.03)


def test_orders_are_drawn_with_their_probability():
    weights = some_weights(3, 3)
    found = Enumeration.of(weights)
    drawn = sample_orders(weights, np.random.default_rng(0)).sample(4_000)
    np.testing.assert_allclose(np.mean(drawn, axis=0), found.probability(), atol=0.04)


def test_rounding_takes_no_probability_beyond_one():
    over = 0
    for seed in range(200):
        weights = some_weights(4, seed)
        weights.implied[0, 1] += 60.0
        found = Enumeration.of(weights)
        over += np.tensordot(found.posterior, found.orders, axes=1).max() > 1.0
        assert found.probability().max() <= 1.0
    assert over
