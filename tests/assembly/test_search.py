"""All orders of a few labels, and the best guess."""

import numpy as np
import pytest

from jigsaw_crl.assembly.posterior.chains import all_orders, sample_orders
from jigsaw_crl.assembly.posterior.walk import Weights, decode
from jigsaw_crl.base.order import boolean_product


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


def test_orders_of_many_labels_are_scored_alone_and_together():
    """Products of sparse relations on many labels take another way."""
    rng = np.random.default_rng(0)
    weights = Weights(*rng.normal(size=(2, 310, 310)), rng.normal(size=310))
    orders = np.zeros((2, 310, 310), dtype=bool)
    orders[0, 0, 1:9] = orders[0, 1, 2:9] = True
    together = weights.scores(orders)
    assert together[1] == 0.0
    np.testing.assert_allclose(together, [weights.scores(order) for order in orders])
