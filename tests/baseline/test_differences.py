"""The matrices Θ̂⁽ʲ⁾ − Θ̂⁽⁰⁾ and the ratio of their singular values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.differences import differences_of, ratio

from .clients import SAMPLE_SIZES, SEEDS, sampled_client, with_regimes


@given(SEEDS, SAMPLE_SIZES)
def test_changes_of_the_precision_equal_the_literal_ones_in_the_column_space(seed, n):
    client = sampled_client(seed, n)
    differences = differences_of(client)
    U = differences.to_features
    Theta = literal.precisions(client)
    for j, label in enumerate(client.labels):
        expected = Theta[label] - Theta[0]
        scale = np.linalg.norm(Theta[0], 2) + np.linalg.norm(Theta[label], 2)
        np.testing.assert_allclose(U @ differences.rows[j] @ U.T, expected, atol=1e-9 * scale)


@given(SEEDS)
def test_the_ratio_equals_the_literal_one(seed):
    M = np.random.default_rng(seed).normal(size=(7, 4))
    for r in range(1, 5):
        assert ratio(M, r) == pytest.approx(literal.rho(M, r), rel=1e-14)
    assert ratio(np.zeros((3, 3)), 1) == literal.rho(np.zeros((3, 3)), 1) == 1.0


@pytest.mark.parametrize("search", ["fast", "published", "literal"])
def test_a_regime_without_variance_in_a_needed_direction_is_refused(search):
    client = sampled_client(5, 1000)
    label, d = client.labels[0], client.n_features
    flat = np.zeros((d, d))
    flat[0, 0] = 1.0
    broken = with_regimes(client, {label: flat})
    with pytest.raises(jc.InputError, match=f"client 'lab-1', regime '{label}': .* singular"):
        baseline.recover_fragment(broken, search=search)
