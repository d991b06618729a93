"""Estimates: branch and bound finds the set that the literal rule finds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.budget import Budget
from jigsaw_crl.baseline.ratio_search import best_set_of_size, largest_head
from jigsaw_crl.baseline.recovery import precisions_of

from .clients import SAMPLE_SIZES, SEEDS, TAUS, sampled_client


def grams_of(client):
    Theta, _ = precisions_of(client)
    changes = [literal.stacked(Theta, (label,)) for label in client.labels]
    return np.stack([M.T @ M for M in changes])


def best_by_trial(M, r, tau):
    """The set of r labels with the largest ratio, by the literal rule."""
    ratio = {
        C: literal.rho(np.concatenate([M[j] for j in C]), r) for C in combinations(range(len(M)), r)
    }
    best = max(ratio, key=ratio.__getitem__)
    return best if ratio[best] >= 1 - tau else None


@given(SEEDS, SAMPLE_SIZES, TAUS)
def test_the_search_finds_the_set_that_the_literal_rule_picks(seed, n, tau):
    client = sampled_client(seed, n, most=7)
    Theta, grams = literal.precisions(client), grams_of(client)
    M = [literal.stacked(Theta, (label,)) for label in client.labels]
    for r in range(1, len(M) + 1):
        assert best_set_of_size(grams, r, tau, Budget(10**6)) == best_by_trial(M, r, tau)


@given(SEEDS, st.integers(2, 8), st.sampled_from([0.02, 0.1, 0.3, 0.6]))
def test_pruning_does_not_change_the_best_of_sets_of_very_different_sizes(seed, m, tau):
    rng = np.random.default_rng(seed)
    # Changes of rank two with some noise.
    rows = [
        10.0 ** rng.uniform(-2, 2)
        * (rng.normal(size=(m, 2)) @ rng.normal(size=(2, m)) + 0.03 * rng.normal(size=(m, m)))
        for _ in range(m)
    ]
    grams = np.stack([M.T @ M for M in rows])
    for r in range(1, m + 1):
        assert best_set_of_size(grams, r, tau, Budget(10**6)) == best_by_trial(rows, r, tau)


@given(SEEDS, st.integers(1, 6), st.integers(1, 4))
def test_the_bound_on_the_leading_singular_values_holds_when_rows_are_added(seed, r, more):
    rng = np.random.default_rng(seed)
    S = rng.normal(size=(5, 8)) * 10.0 ** rng.uniform(-2, 1, size=(5, 1))
    extra = rng.normal(size=(more, 8)) * 10.0 ** rng.uniform(-2, 1)
    before = np.linalg.svd(np.vstack([S, np.zeros((3, 8))]), compute_uv=False)[::-1]
    after = np.linalg.svd(np.vstack([S, extra]), compute_uv=False)
    bound = largest_head(before[None, -r:], np.array([(extra**2).sum()]))[0]
    assert after[:r].sum() <= bound * (1 + 1e-12)


def test_pruning_examines_less_than_a_quarter_of_the_sets():
    client = jc.simulate.random_world(24, 1, 0.7, 3).client(0, n_samples=10**6)
    m = len(client.labels)
    assert m >= 15
    budget = Budget(10**6)
    assert best_set_of_size(grams_of(client), 7, 1e-4, budget) is None
    assert budget.spent < len(list(combinations(range(m), 7))) / 4


def test_a_set_is_accepted_when_its_ratio_equals_the_threshold():
    # σ = (3, 1): the ratio at r = 1 is exactly 3/4.
    grams = np.stack([np.diag([9.0, 1.0]), np.diag([1.0, 1.0])])
    assert best_set_of_size(grams, 1, 0.25, Budget(100)) == (0,)
    assert best_set_of_size(grams, 1, 0.25 - 1e-9, Budget(100)) is None


def test_among_passing_sets_the_one_of_largest_ratio_is_taken():
    grams = np.stack([np.diag([100.0, 1.0]), np.diag([10_000.0, 1.0]), np.diag([400.0, 1.0])])
    assert best_set_of_size(grams, 1, 0.2, Budget(100)) == (1,)
