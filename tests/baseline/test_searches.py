"""Algorithm 2: blocks, order and basis against the literal version on random clients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import jigsaw_crl as jc
from jigsaw_crl import baseline

from .clients import (
    SAMPLE_SIZES,
    SEEDS,
    TAUS,
    assert_same_blocks_and_spaces,
    clear_client,
    sampled_client,
    with_regimes,
)


@given(SEEDS)
def test_exact_moments_give_the_blocks_and_row_spaces_of_the_literal_algorithm(seed):
    client, _ = clear_client(seed)
    assert_same_blocks_and_spaces(
        baseline.recover_fragment(client), baseline.recover_fragment(client, search="literal")
    )


@given(SEEDS, SAMPLE_SIZES, TAUS)
def test_estimates_give_the_blocks_and_row_spaces_of_the_literal_algorithm(seed, n, tau):
    client = sampled_client(seed, n)
    assert_same_blocks_and_spaces(
        baseline.recover_fragment(client, tau=tau),
        baseline.recover_fragment(client, tau=tau, search="literal"),
        atol=1e-5,
    )


@pytest.mark.parametrize("search", ["fast", "literal"])
def test_a_regime_without_variance_in_a_needed_direction_is_refused(search):
    client = sampled_client(5, 1000)
    label, d = client.labels[0], client.n_features
    flat = np.zeros((d, d))
    flat[0, 0] = 1.0
    broken = with_regimes(client, {label: flat})
    with pytest.raises(jc.InputError, match=f"client 'lab-1', regime '{label}': .* singular"):
        baseline.recover_fragment(broken, search=search)
