"""Districts and blocks: from a client's own evidence, and with the assembled order."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.nullcone.structure import decide, joined_by_others


def evidence(district, ancestor=-5.0):
    """Factors of labels without single directions, all pairs alike in what is not given."""
    p = len(district)
    factors = np.broadcast_to(ancestor, (2, p, p)).copy()
    return BayesFactors((0.5, 0.08), factors, np.array(district, dtype=float))


UNSEEN = {(0, 2): np.nan, (1, 2): np.nan, (2, 2): np.nan}


@pytest.mark.parametrize(
    ("usual", "pairs", "districts"),
    [
        (-4.0, {(0, 1): 30.0, (2, 3): 30.0, (1, 2): 4.0}, [[0, 1], [2, 3]]),
        (2.0, {(0, 1): 30.0, (2, 3): 30.0}, [[0, 1, 2, 3]]),
        (30.0, UNSEEN, [[0, 1], [2]]),
    ],
    ids=["one pair between two by chance", "all pairs between two", "a label that was not seen"],
)
def test_districts_are_joined_by_all_their_pairs_together(usual, pairs, districts):
    district = np.full((sum(map(len, districts)),) * 2, usual)
    for (i, j), x in pairs.items():
        district[i, j] = district[j, i] = x
    assert decide(evidence(district)).districts == districts


def test_labels_that_a_client_lacks_join_its_labels_by_free_paths():
    # h causes a directly, and b only through a and c.
    pairs = [("h", "a"), ("a", "c"), ("c", "b"), ("g", "a"), ("g", "d")]
    order = PartialOrder.from_pairs("abcdhg", pairs)
    certain, possible = joined_by_others(order, ("a", "b", "c", "d"))
    assert (
        certain.tolist()
        == np.array([[1, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1]], dtype=bool).tolist()
    )
    assert possible[:3, :3].all()
    assert possible[3].tolist() == [True, True, True, True]


def test_the_order_decides_weak_evidence_for_a_district():
    labels = ("a", "b")
    joined = PartialOrder.from_pairs(("a", "b", "h"), [("h", "a"), ("h", "b")])
    apart = PartialOrder.from_pairs(("a", "b", "h"), [("h", "a")])
    for weak in (-2.0, 2.0):
        bayes = evidence(np.full((2, 2), weak))
        assert decide(bayes, joined, labels).districts == [[0, 1]]
        assert decide(bayes, apart, labels).districts == [[0], [1]]
    strong = evidence(np.full((2, 2), 20.0))
    assert decide(strong, apart, labels).districts == [[0, 1]]
    assert decide(evidence(np.full((2, 2), -20.0)), joined, labels).districts == [[0], [1]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_the_assembled_order_settles_blocks_and_bases(name):
    right, errors = [], []
    for seed in (300, 301):
        world = jc.simulate.setting(name, seed)
        result = jc.recover(world.clients(10_000, seed=seed))
        truths = [world.truth(k) for k in range(world.n_clients)]
        errors.append(jc.metrics.subspace_error(truths, result.fragments))
        right += [set(result.fragments[t.client].blocks) == set(t.blocks) for t in truths]
    assert np.mean(right) >= 0.9
    assert np.mean(errors) < 0.01
