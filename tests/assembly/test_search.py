"""All orders of a few labels, the best guess, and orders that grow step by step."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from jigsaw_crl.assembly.posterior import best_order, decode, sample_orders
from jigsaw_crl.assembly.posterior.search import all_orders, bridge_gains, grow
from jigsaw_crl.assembly.posterior.walk import Weights
from jigsaw_crl.base.order import boolean_product, transitive_closure


@pytest.mark.parametrize(("p", "n"), [(0, 1), (1, 1), (2, 3), (3, 19), (4, 219), (5, 4_231)])
def test_every_strict_order_is_there_once(p, n):
    orders = all_orders(p)
    assert len(orders) == n
    assert len({order.tobytes() for order in orders}) == n
    for order in orders:
        assert not (order & order.T).any()
        assert not (boolean_product(order, order) & ~order).any()


def test_decoding_finds_the_order_with_the_most_right_pairs_less_the_wrong_ones():
    for seed in range(60):
        rng = np.random.default_rng([seed, 2])
        weights = Weights(
            rng.normal(scale=2.0, size=(4, 4)) - 0.5, np.full((4, 4), -1.0), np.zeros(4)
        )
        probability = sample_orders(weights, rng).probability
        best = max((2 * probability[o] - 1).sum() for o in all_orders(4))
        found = decode(probability, rng)
        assert (2 * probability[found] - 1).sum() == pytest.approx(best)


def order_of(p, edges, rng):
    """A random closed order."""
    relation = np.triu(rng.random((p, p)) < edges / p, 1)
    shuffle = rng.permutation(p)
    return transitive_closure(relation[np.ix_(shuffle, shuffle)])


@pytest.mark.parametrize("seed", range(3))
def test_the_gain_of_a_bridge_is_what_the_score_gains(seed):
    rng = np.random.default_rng(seed)
    matrix, p = order_of(12, 1.2, rng), 12
    implied, cover = rng.normal(scale=2.0, size=(p, p)), rng.normal(-1.0, 1.0, size=(p, p))
    weights = Weights(implied, cover, np.zeros(p))
    gain, covers = bridge_gains(matrix, weights)
    for a, d in itertools.permutations(range(p), 2):
        if matrix[a, d] or matrix[d, a]:
            assert gain[a, d] == -np.inf
            continue
        wider = matrix.copy()
        wider[a, d] = True
        wider = transitive_closure(wider)
        assert gain[a, d] == pytest.approx(weights.score(wider) - weights.score(matrix))
    assert (covers <= matrix).all()


def test_a_grown_order_is_worth_more_than_greedy_insertion_and_about_as_much_as_the_truth():
    # As of a study in which a tenth of the pairs is seen by nobody.
    p, rng = 150, np.random.default_rng(4)
    truth = order_of(p, 1.5, rng)
    said = np.where(truth, 4.0, -4.0) + rng.normal(scale=2.5, size=(p, p))
    said[rng.random((p, p)) < 0.1] = -0.8
    np.fill_diagonal(said, 0.0)
    weights = Weights(said, np.full((p, p), -5.0), np.zeros(p))
    grown = grow(weights, rng)
    np.testing.assert_array_equal(transitive_closure(grown), grown)
    assert weights.score(grown) > weights.score(best_order(weights.direct, rng))
    assert weights.score(grown) > 0.98 * weights.score(truth)
