"""Why a probability beyond a threshold can come with an undetermined verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jigsaw_crl import Fragment, PartialOrder, Verdict, assemble
from jigsaw_crl.assembly.verdict import CERTAIN_NO, LEAST_AGAINST
from jigsaw_crl.fragment.fragment import BayesFactors


def client(name: str, ancestor: list[list[float]], *, single: bool = False) -> Fragment:
    """Two labels apart from each other, with these log Bayes factors of ancestry."""
    labels = ("pump", "valve")
    blocks = tuple(frozenset([x]) for x in labels)
    odds = np.array(ancestor, dtype=float)
    district = np.where(np.eye(2, dtype=bool), 0.0, -20.0)
    return Fragment(
        name,
        "null-cone",
        labels,
        blocks,
        PartialOrder.from_pairs(blocks, []),
        blocks,
        bayes=BayesFactors((0.5,), odds[None], district, single=(single, single)),
    )


def test_a_probability_that_only_the_prior_makes_low_is_undetermined_and_explained():
    low = np.array([[0.0, 0.02], [0.0, 0.0]])
    order = replace(assemble([client("north", [[0, -0.9], [-9, 0]])]), sampled=low)
    assert order.probability("pump", "valve") < CERTAIN_NO
    assert -LEAST_AGAINST < order.evidence[order.indices("pump", "valve")] < 0
    assert order.verdict("pump", "valve") is Verdict.UNDETERMINED
    text = str(order.explain("pump", "valve"))
    assert "the probability is low because few pairs are related" in text
    assert '"not ancestor" needs log-odds of -1.0 or less (here -0.9)' in text
    assert text.count("log-odds") == 1


@pytest.mark.parametrize(("odds", "verdict"), [(-9, "not ancestor"), (0.5, "undetermined")])
def test_other_verdicts_do_not_mention_the_prior(odds, verdict):
    order = assemble([client("north", [[0, odds], [-9, 0]], single=odds < 0)])
    assert str(order.verdict("pump", "valve")) == verdict
    assert "few pairs are related" not in str(order.explain("pump", "valve"))
