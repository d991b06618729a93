"""Statements from exact moments are true, also where numbers come within rounding of zero."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc
from jigsaw_crl.fragment.fragment import NO, YES


# At the first client an ancestor six spouses away shows below rounding; at the second, the pairs do
# not settle which of two lines carries a label's noise.
@pytest.mark.parametrize(("p", "n_clients", "q", "k"), [(100, 20, 0.3, 14), (300, 10, 0.15, 1)])
def test_what_is_within_rounding_is_not_stated(p, n_clients, q, k):
    world = jc.simulate.random_world(p, n_clients, q, seed=0)
    fragment = jc.recover_fragment(world.client(k))
    labels, said = fragment.labels, fragment.statements
    settled = 0
    for i, a in enumerate(labels):
        for j, d in enumerate(labels):
            if i != j and said.ancestor[i, j] in (YES, NO):
                assert world.order.is_ancestor(a, d) == (said.ancestor[i, j] == YES)
                settled += 1
    for candidates, d in said.one_of:
        assert any(world.order.is_ancestor(c, d) for c in candidates)
    assert settled > 0.6 * len(labels) * (len(labels) - 1)
