"""The table of hypotheses can be read, changed in one place, and used from end to end."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.evidence import hypotheses
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.hypotheses import HYPOTHESES, LEAN_J, Component, Hypothesis
from jigsaw_crl.fragment import Fragment
from jigsaw_crl.nullcone.reading import read


def test_the_table_prints_as_its_docstring_says():
    assert doctest.testmod(hypotheses).failed == 0
    assert len(str(HYPOTHESES).splitlines()) == 1 + len(HYPOTHESES.components)


def test_every_quantity_of_the_table_is_defined():
    zero, none = np.zeros(2), np.zeros(2, dtype=bool)
    scales, weights, priors = HYPOTHESES.of_pairs(hypotheses.quantities(zero, zero, none, none))
    assert scales.shape == (2, len(HYPOTHESES.components), 3)
    assert (weights >= 0).all()
    assert np.allclose(priors.sum(axis=1), 1.0), "with two directions each the priors sum to one"


def test_the_mirror_of_a_mirror_is_the_row_itself():
    for row, other in zip(HYPOTHESES.rows, HYPOTHESES.mirror, strict=True):
        if row.meaning in ("ancestor", "descendant"):
            assert HYPOTHESES.rows[other].components == row.mirrored().components
        assert HYPOTHESES.mirror[other] == HYPOTHESES.rows.index(row)


# CONTRIBUTING shows this row as its example.
FAINT = Hypothesis(
    "ancestor, faint",
    "ancestor",
    (Component(qq=0.02 * LEAN_J, qc=0.01, cq=0.02 * LEAN_J),),
    prior=0.05,
    scale=0.01,
)


def recovered(table, seed):
    world = jc.simulate.random_world(8, 4, 0.8, seed=seed)
    fragments = []
    for k in range(world.n_clients):
        client = world.client(k, n_samples=5_000)
        reading = read(client, hypotheses=table)
        single = (False,) * len(client.labels)
        bayes = BayesFactors.of(reading.factors, table, single)
        blocks = tuple(frozenset([label]) for label in client.labels)
        order = PartialOrder.from_pairs(blocks, [])
        fragments.append(
            Fragment(client.name, "null-cone", client.labels, blocks, order, blocks, bayes)
        )
    return fragments


def test_a_row_added_to_the_table_reaches_the_fragment_its_file_and_the_order():
    table = HYPOTHESES.plus(FAINT)
    plain, added = recovered(HYPOTHESES, 60_001), recovered(table, 60_001)
    assert table.scales == (*HYPOTHESES.scales, 0.01)
    for old, new in zip(plain, added, strict=True):
        assert new.bayes.scales == table.scales
        np.testing.assert_allclose(new.bayes.ancestor[:2], old.bayes.ancestor, atol=2.0)
        again = Fragment.from_json(new.to_json())
        np.testing.assert_array_equal(again.bayes.ancestor, new.bayes.ancestor)
    order = jc.assemble(added)
    # An effect too small to see cannot be excluded, so "no" loses strength and "yes" does not.
    before, after = jc.assemble(plain).evidence, order.evidence
    clear = before < -4
    assert clear.any()
    assert (after[clear] > before[clear]).all()
    assert order.pairs() == jc.assemble(plain).pairs()


@pytest.mark.parametrize("meaning", ["district", "leaning"])
def test_a_hypothesis_can_be_made_impossible(meaning):
    table = HYPOTHESES.without(meaning)
    client = jc.simulate.setting("B", 1).client(0, n_samples=3_000)
    factors = read(client, hypotheses=table).factors
    (row,) = table.where(meaning)
    off = ~np.eye(len(client.labels), dtype=bool)
    assert (factors[row][off] < -1_000).all()
