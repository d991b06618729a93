"""Where chains of many labels start: orders grown step by step, and recombined."""

import itertools

import numpy as np
import pytest

from jigsaw_crl.assembly.posterior.search import best_order, bridge_gains, grow
from jigsaw_crl.assembly.posterior.starts import parts, recombine
from jigsaw_crl.assembly.posterior.walk import Weights
from jigsaw_crl.base.order import transitive_closure


def order_of(p, edges, rng):
    """A random closed order."""
    relation = np.triu(rng.random((p, p)) < edges / p, 1)
    shuffle = rng.permutation(p)
    return transitive_closure(relation[np.ix_(shuffle, shuffle)])


def random_weights(p, rng):
    implied, cover = rng.normal(scale=2.0, size=(p, p)), rng.normal(-1.0, 1.0, size=(p, p))
    return Weights(implied, cover, rng.normal(size=p))


def noisy_study(p, rng, *, cost=5.0):
    """Weights as of a study in which a tenth of the pairs is seen by nobody, and the true order."""
    truth = order_of(p, 1.5, rng)
    said = np.where(truth, 4.0, -4.0) + rng.normal(scale=2.5, size=(p, p))
    said[rng.random((p, p)) < 0.1] = -0.8
    np.fill_diagonal(said, 0.0)
    return Weights(said, np.full((p, p), -cost), np.zeros(p)), truth


@pytest.mark.parametrize("seed", range(3))
def test_the_gain_of_a_bridge_is_what_the_score_gains(seed):
    rng = np.random.default_rng(seed)
    matrix, weights = order_of(12, 1.2, rng), random_weights(12, rng)
    weights.ancestry[:] = 0.0
    gain, covers = bridge_gains(matrix, weights)
    for a, d in itertools.permutations(range(12), 2):
        if matrix[a, d] or matrix[d, a]:
            assert gain[a, d] == -np.inf
            continue
        wider = matrix.copy()
        wider[a, d] = True
        wider = transitive_closure(wider)
        assert gain[a, d] == pytest.approx(weights.score(wider) - weights.score(matrix))
    assert (covers <= matrix).all()


@pytest.mark.parametrize("seed", range(5))
def test_an_order_stays_an_order_whichever_parts_it_takes(seed):
    rng = np.random.default_rng(seed)
    truth = order_of(30, 1.5, rng)
    # Two orders that share much: each has lost some covers and gained some pairs.
    one, other = (
        transitive_closure((truth & (rng.random((30, 30)) < 0.8)) | order_of(30, 0.1, rng) & truth)
        for _ in range(2)
    )
    pairs, ends = parts(one, other)
    a, d = np.nonzero(one != other)
    assert sorted(pairs.tolist()) == sorted((30 * a + d).tolist())
    for part in np.split(pairs, ends[:-1]):
        mixed = one.copy().ravel()
        mixed[part] = other.ravel()[part]
        mixed = mixed.reshape(30, 30)
        assert np.array_equal(transitive_closure(mixed), mixed)
        assert not (mixed & mixed.T).any()


def test_equal_orders_have_no_parts():
    matrix = order_of(10, 1.5, np.random.default_rng(0))
    pairs, ends = parts(matrix, matrix)
    assert len(pairs) == len(ends) == 0


def test_recombined_orders_are_orders_and_worth_no_less():
    rng = np.random.default_rng(2)
    weights, _ = noisy_study(40, rng)
    before = [grow(weights, rng) for _ in range(3)]
    after = recombine(before, weights)
    for old, new in zip(before, after, strict=True):
        assert np.array_equal(transitive_closure(new), new)
        assert not (new & new.T).any()
        assert weights.score(new) >= weights.score(old)


def test_a_grown_order_is_worth_more_than_greedy_insertion_with_local_search():
    rng = np.random.default_rng(4)
    weights, truth = noisy_study(150, rng)
    grown = weights.score(grow(weights, rng))
    assert grown > weights.score(best_order(weights, rng))
    assert grown > 0.98 * weights.score(truth)
