"""Row spaces of the precision changes, and the dimensions of their projections."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.planes import complement, dimension, planes_of, project

from .clients import SEEDS, clear_client


@given(SEEDS)
def test_dimensions_of_all_label_sets_equal_the_literal_ones(seed):
    client, _ = clear_client(seed, most=7)
    m = len(client.labels)
    space = project(planes_of(client), range(m), np.eye(client.n_latent))
    Theta = literal.precisions(client)
    nothing = np.zeros((0, client.n_features))
    for r in range(1, m + 1):
        sets = list(combinations(range(m), r))
        literally = [
            len(literal.P(tuple(client.labels[j] for j in C), nothing, Theta)) for C in sets
        ]
        assert dimension(space, sets).tolist() == literally


@given(SEEDS, st.integers(1, 4))
def test_the_complement_gives_the_projection_that_the_paper_prints(seed, t):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(t, 5))
    N = complement(5, [W[:1].T, W[1:].T])
    np.testing.assert_allclose(N @ N.T, literal.off(np.eye(5), W), atol=1e-8)
    np.testing.assert_allclose(N.T @ N, np.eye(5 - t), atol=1e-12)


def test_the_complement_of_nothing_is_everything():
    np.testing.assert_array_equal(complement(3, []), np.eye(3))
