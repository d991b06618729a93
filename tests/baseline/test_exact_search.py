"""Exact moments: the polynomial search and the literal rule."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given

from jigsaw_crl.baseline import literal
from jigsaw_crl.baseline.budget import Budget, BudgetSpent
from jigsaw_crl.baseline.exact_search import smallest_tight_set
from jigsaw_crl.baseline.planes import Space, complement, dimension, planes_of, project

from .clients import SEEDS, clear_client


@given(SEEDS)
def test_the_search_finds_a_set_that_the_literal_rule_would_pick(seed):
    client, _ = clear_client(seed)
    labels, planes = client.labels, planes_of(client)
    Theta = literal.precisions(client)
    # As in a later step of Algorithm 2: some blocks are found, and the search is off their rows W.
    blocks, _, Q = literal.id_block_causal_order(Theta)
    found_labels = [x for B in blocks[1 + seed % len(blocks) :] for x in B]
    W = Q[len(Q) - len(found_labels) :]
    remaining = [j for j, x in enumerate(labels) if x not in found_labels]
    whitened = np.linalg.lstsq(planes.to_features, W.T, rcond=None)[0]
    N = complement(client.n_latent, [whitened])
    space = project(planes, remaining, N)

    def tight(r):
        return {
            C
            for C in combinations([labels[j] for j in remaining], r)
            if len(literal.P(C, W, Theta)) == r
        }

    size = next(r for r in range(1, len(remaining) + 1) if tight(r))
    found = smallest_tight_set(space, Budget(10**6))
    assert tuple(labels[remaining[i]] for i in found) in tight(size)


def test_one_block_of_many_labels_is_found_without_enumeration():
    rng = np.random.default_rng(0)
    # Generic planes: only all labels together have as many directions as labels.
    vectors = np.stack([np.linalg.qr(rng.normal(size=(20, 2)))[0] for _ in range(20)])
    assert smallest_tight_set(Space(vectors, np.full(20, 1e-14)), Budget(5_000)) == tuple(range(20))


def test_labels_without_independent_directions_are_searched_by_enumeration():
    # Three labels in a plane: no choice of one vector each is independent.
    vectors = np.stack([np.eye(2), np.eye(2), np.array([[1.0, 0.0], [0.0, 0.0]])])
    space = Space(vectors, np.full(3, 1e-14))
    assert dimension(space, [(0, 1)])[0] == 2
    assert smallest_tight_set(space, Budget(100)) == (2,)
    with pytest.raises(BudgetSpent):
        smallest_tight_set(space, Budget(2))
