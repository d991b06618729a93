"""Algorithm 2: blocks, order and basis against the literal version on random clients."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from jigsaw_crl import baseline

from .clients import (
    SAMPLE_SIZES,
    SEEDS,
    TAUS,
    assert_blocks_are_true,
    assert_same_blocks_and_spaces,
    clear_client,
    confounded_client,
    sampled_client,
    small_client,
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


def test_the_published_enumeration_gives_the_same_fragments_from_exact_moments():
    largest = 0
    for seed in range(40):
        client, truth = small_client(seed, most=12)
        fast = baseline.recover_fragment(client)
        published = baseline.recover_fragment(client, search="published")
        assert_blocks_are_true(published, truth)
        assert published.to_json() == fast.to_json()
        np.testing.assert_array_equal(published.basis, fast.basis)
        largest = max(largest, *(len(b) for b in published.blocks))
    assert largest > 4  # sets of several sizes were enumerated


@pytest.mark.parametrize("tau", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("n", [1000, 1_000_000])
def test_the_published_enumeration_gives_the_same_fragments_from_estimates(n, tau):
    for seed in range(12):
        client = sampled_client(seed, n, most=10)
        fast = baseline.recover_fragment(client, tau=tau)
        published = baseline.recover_fragment(client, tau=tau, search="published")
        assert published.outcome.ok
        assert published.to_json() == fast.to_json()
        np.testing.assert_array_equal(published.basis, fast.basis)


def test_the_published_enumeration_examines_every_smaller_set_before_a_block():
    client = confounded_client(5)
    needed = 5 + 10 + 10 + 5
    whole = baseline.recover_fragment(client, search="published", budget=needed)
    assert whole.outcome.ok
    assert whole.blocks == (frozenset(client.labels),)
    short = baseline.recover_fragment(client, search="published", budget=needed - 1)
    assert short.outcome.code == "budget"
    assert f"{needed - 1} label sets" in short.outcome.message
    assert baseline.recover_fragment(client, budget=1).outcome.ok
