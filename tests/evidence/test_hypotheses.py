"""The table of hypotheses can be read, changed in one place, and used from end to end."""

import doctest

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.verdict import OPEN
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.evidence import hypotheses
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.hypotheses import HYPOTHESES, ancestor
from jigsaw_crl.fragment.fragment import Fragment

from ..nullcone.readings import read


def test_the_table_prints_as_its_docstring_says():
    assert doctest.testmod(hypotheses).failed == 0
    assert len(str(HYPOTHESES).splitlines()) == 1 + len(HYPOTHESES.components[0])


@pytest.mark.parametrize("table", [HYPOTHESES, HYPOTHESES.plus(ancestor("another", 0.02))])
def test_each_meaning_has_a_quarter_of_the_prior(table):
    for meaning in ("unrelated", "ancestor", "descendant", "district"):
        assert table.priors[table.where(meaning)].sum() == pytest.approx(0.25)
    assert table.priors.sum() == pytest.approx(1.0)


def test_two_rows_of_one_name_are_refused():
    with pytest.raises(ValueError, match="two hypotheses have one name"):
        HYPOTHESES.plus(ancestor("strong", 0.3))


def recovered(table, seed):
    world = jc.simulate.random_world(8, 4, 0.8, seed=seed)
    fragments = []
    for k in range(world.n_clients):
        client = world.client(k, n_samples=5_000)
        reading = read(client, hypotheses=table)
        parts = (reading.factors[table.where(x)] for x in ("ancestor", "district", "leaning"))
        ancestor, (district,), (lean,) = parts
        bayes = BayesFactors(table.scales, ancestor, district, lean)
        blocks = tuple(frozenset([label]) for label in client.labels)
        order = PartialOrder.from_pairs(blocks, [])
        fragments.append(
            Fragment(client.name, "null-cone", client.labels, blocks, order, blocks, bayes)
        )
    return fragments


def test_a_row_added_to_the_table_reaches_the_fragment_its_file_and_the_order():
    # CONTRIBUTING shows this row as its example.
    table = HYPOTHESES.plus(ancestor("another", 0.02))
    plain, added = recovered(HYPOTHESES, 60_001), recovered(table, 60_001)
    n = len(HYPOTHESES.scales)
    assert table.scales == (*HYPOTHESES.scales, 0.02)
    for old, new in zip(plain, added, strict=True):
        assert new.bayes.scales == table.scales
        np.testing.assert_allclose(new.bayes.ancestor[:n], old.bayes.ancestor, atol=2.0)
        again = Fragment.from_json(new.to_json())
        np.testing.assert_array_equal(again.bayes.ancestor, new.bayes.ancestor)
    before, after = jc.assemble(plain), jc.assemble(added)
    # The same verdicts, except where a smaller effect is harder to exclude.
    both = (before.verdicts != OPEN) & (after.verdicts != OPEN)
    assert both.mean() > 0.8
    np.testing.assert_array_equal(before.verdicts[both], after.verdicts[both])


@pytest.mark.parametrize("meaning", ["district", "leaning"])
def test_a_hypothesis_can_be_made_impossible(meaning):
    table = HYPOTHESES.without(meaning)
    client = jc.simulate.setting("B", 1).client(0, n_samples=3_000)
    factors = read(client, hypotheses=table).factors
    (row,) = table.where(meaning)
    off = ~np.eye(len(client.labels), dtype=bool)
    assert (factors[row][off] < -1_000).all()
