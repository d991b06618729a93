"""The fast search finds what the printed lines find, on estimates and on exact moments."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.search import BranchAndBound, best_set_of_size

from .clients import (
    SAMPLE_SIZES,
    SEEDS,
    TAUS,
    assert_same_blocks_and_spaces,
    clear_client,
    literally,
    sampled_client,
    with_regimes,
)


def best_by_trial(M, r, tau):
    """The set of r labels with the largest ratio, by the literal rule."""
    ratio = {
        C: literal.rho(np.concatenate([M[j] for j in C]), r) for C in combinations(range(len(M)), r)
    }
    best = max(ratio, key=ratio.__getitem__)
    return best if ratio[best] >= 1 - tau else None


# -- whole clients --------------------------------------------------------------------------------
@given(SEEDS)
def test_exact_moments_give_the_blocks_and_row_spaces_of_the_literal_algorithm(seed):
    client, _ = clear_client(seed)
    assert_same_blocks_and_spaces(baseline.recover_fragment(client), literally(client))


@given(SEEDS, SAMPLE_SIZES, TAUS)
def test_estimates_give_the_blocks_and_row_spaces_of_the_literal_algorithm(seed, n, tau):
    client = sampled_client(seed, n)
    ours = baseline.recover_fragment(client, tau=tau)
    assert_same_blocks_and_spaces(ours, literally(client, tau), atol=1e-5)


def test_a_regime_without_variance_in_a_needed_direction_is_refused():
    client = sampled_client(5, 1000)
    label, d = client.labels[0], client.n_features
    flat = np.zeros((d, d))
    flat[0, 0] = 1.0
    broken = with_regimes(client, {label: flat})
    with pytest.raises(jc.InputError, match=f"client 'lab-1', regime '{label}': .* singular"):
        baseline.recover_fragment(broken)


# -- one set --------------------------------------------------------------------------------------
@given(SEEDS, st.integers(2, 8), st.sampled_from([1e-12, 0.02, 0.1, 0.3, 0.6]))
def test_pruning_does_not_change_the_best_of_sets_of_very_different_sizes(seed, m, tau):
    rng = np.random.default_rng(seed)
    # Changes of rank two with some noise.
    M = [
        10.0 ** rng.uniform(-2, 2)
        * (rng.normal(size=(m, 2)) @ rng.normal(size=(2, m)) + 0.03 * rng.normal(size=(m, m)))
        for _ in range(m)
    ]
    for r in range(1, m + 1):
        assert best_set_of_size(M, r, tau, BranchAndBound(10**6).spend) == best_by_trial(M, r, tau)


def test_of_two_sets_that_differ_below_the_root_of_rounding_the_tight_one_is_taken():
    # Eigenvalues of MᵀM cannot tell 1e-10 from zero; singular values of M can.
    tight, nearly = np.diag([1.0, 0.0]), np.diag([2.0, 1e-10])
    for changes in ([tight, nearly], [nearly, tight]):
        (found,) = best_set_of_size(changes, 1, 1e-12, BranchAndBound(10).spend)
        assert changes[found] is tight
