"""E1, E2 and E3, wrong verdicts, and stated probabilities against the truth."""

from dataclasses import replace

import numpy as np
import pytest

from jigsaw_crl.assembly.conclusion import assemble
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.pipeline import recover
from jigsaw_crl.truth.metrics import (
    VerdictCounts,
    global_f1,
    reliability,
    subspace_error,
    support_leakage,
    verdict_counts,
)
from jigsaw_crl.truth.simulate import random_world, setting

from ..baseline.test_global_causal_order import fragment as paper_fragment


def exact_fragment(truth, basis=None, labels=None):
    basis = truth.Q if basis is None else basis
    about = truth.blocks, truth.block_order
    return Fragment(truth.client, "paper", labels or truth.labels, *about, basis=basis)


@pytest.mark.parametrize(
    ("true", "estimated", "score"),
    [
        ({"ab", "ac"}, {"ab", "ac"}, 1),
        ({"ab", "ac"}, {"ba", "ca"}, 0),
        ({"ab"}, set(), 0),
        (set(), set(), 1),
        # Precision 1/2, recall 1/4.
        ({"ab", "ac", "bc", "ad"}, {"ab", "cb"}, 1 / 3),
    ],
)
def test_f1_balances_precision_and_recall(true, estimated, score):
    assert global_f1(map(tuple, true), map(tuple, estimated)) == pytest.approx(score)
    order = setting("A", 0).order
    assert global_f1(order, order) == 1


def test_the_truth_scores_zero_on_both_errors():
    for seed in range(5):
        world = random_world(8, 4, 0.6, seed)
        truths = [world.truth(k) for k in range(4)]
        fragments = [exact_fragment(t) for t in truths]
        assert subspace_error(truths, fragments) < 1e-20
        assert support_leakage(truths, fragments) == 0
        # Any basis of a block's rows, and any order of the labels, is as good.
        rng = np.random.default_rng(seed)
        for t in truths:
            basis = t.Q.copy()
            for block in t.blocks:
                rows = [t.labels.index(x) for x in block]
                basis[rows] = rng.normal(size=(len(rows),) * 2) @ basis[rows]
            mixed = rng.permutation(len(t.labels))
            turned = exact_fragment(t, basis[mixed], tuple(t.labels[i] for i in mixed))
            assert subspace_error(t, turned) < 1e-16
            assert support_leakage(t, turned) == 0


def test_orthogonal_rows_score_one_and_half_the_dimensions_score_half():
    truth = setting("A", 0).truth(3)  # a block of two, and one of one
    pair = next(b for b in truth.blocks if len(b) == 2)
    rows = [truth.labels.index(x) for x in pair]
    _, _, directions = np.linalg.svd(truth.Q)
    outside = directions[len(truth.labels) :]  # orthogonal to every row of Q
    wrong = truth.Q.copy()
    wrong[rows[0]], wrong[rows[1]] = outside[0], outside[1]
    assert subspace_error(truth, exact_fragment(truth, wrong)) == pytest.approx(1 / 2)
    half = truth.Q.copy()
    inside = np.linalg.svd(truth.Q[rows])[2][:2]
    half[rows] = [inside[0], outside[0]]
    assert subspace_error(truth, exact_fragment(truth, half)) == pytest.approx(1 / 2 * 1 / 2)


def test_leakage_counts_forbidden_entries_only():
    world = setting("A", 0)
    truth = world.truth(0)
    forbidden = sum(
        truth.block_of(i) != truth.block_of(j)
        and not truth.block_order.is_ancestor(truth.block_of(j), truth.block_of(i))
        for i in truth.labels
        for j in truth.labels
    )
    # Row 0 leaks into one forbidden latent: add a row of H, which is that latent itself.
    i, j = next(
        (i, j)
        for i, a in enumerate(truth.labels)
        for j, b in enumerate(truth.labels)
        if a != b and not truth.block_order.is_ancestor(truth.block_of(b), truth.block_of(a))
    )
    wrong = truth.Q.copy()
    wrong[i] += np.linalg.pinv(truth.mixing)[j]
    assert support_leakage(truth, exact_fragment(truth, wrong)) == pytest.approx(1 / forbidden)
    # The scale of a row means nothing.
    scaled = exact_fragment(truth, wrong * 1e-6)
    assert support_leakage(truth, scaled) == pytest.approx(1 / forbidden)


def test_rows_that_were_not_recovered_score_worst():
    of_four = setting("A", 0).truth(1)  # four blocks of one label
    for missing in (0.0, np.nan):
        nothing = exact_fragment(of_four, np.full_like(of_four.Q, missing))
        assert subspace_error(of_four, nothing) == support_leakage(of_four, nothing) == 1


def test_what_cannot_be_scored_is_refused():
    truth = setting("A", 0).truth(0)
    fragment = exact_fragment(truth)
    with pytest.raises(InputError, match="no basis"):
        subspace_error(truth, replace(fragment, basis=None))
    with pytest.raises(InputError, match="client-1: nothing to score"):
        subspace_error([truth], [replace(fragment, client="other")])
    with pytest.raises(InputError, match="truth does not have"):
        support_leakage(
            setting("A", 0).truth(0),
            replace(exact_fragment(setting("A", 0).truth(3)), client=truth.client),
        )
    with pytest.raises(InputError, match="no client: nothing to score"):
        subspace_error([], [])


@pytest.fixture(scope="module")
def settled():
    """A world and its order, recovered from exact moments without an open pair."""
    world = setting("A", 0)
    return world, recover(world.clients()).order


def test_verdicts_are_counted_against_the_truth(settled):
    world, order = settled
    true = len(world.order.pairs())
    assert verdict_counts(world.order, order) == VerdictCounts(20, true, true, 0, 20 - true, 0)
    turned = PartialOrder.from_pairs(world.labels, [(d, a) for a, d in world.order.pairs()])
    assert verdict_counts(turned, order) == VerdictCounts(20, true, true, true, 20 - true, true)
    # Pairs with a label that the order lacks are undecided.
    larger = PartialOrder.from_pairs([*world.labels, "new"], world.order.pairs())
    counts = verdict_counts(larger, order, larger.elements)
    assert (counts.pairs, counts.yes + counts.no) == (30, 20)
    assert counts.decided == pytest.approx(2 / 3)
    total = counts + VerdictCounts(20, 9, 8, 1, 10, 2)
    assert (total.pairs, total.wrong_no, total.decided) == (50, 2, pytest.approx(38 / 50))


def test_stated_probabilities_are_compared_with_the_truth_in_seven_bins(settled):
    world, order = settled
    stated = np.full((5, 5), 0.003)
    stated[0, 1:] = 0.97, 0.995, 0.9, 0.5
    doubtful = replace(order, chances=stated)
    found = reliability(world.order, doubtful)
    assert found[:, 0].tolist() == [16, 0, 0, 1, 1, 1, 1]
    assert found[:, 1] == pytest.approx([16 * 0.003, 0, 0, 0.5, 0.9, 0.97, 0.995])
    true = world.order.restrict(order.labels).matrix
    assert found[:, 2].tolist() == [true[1:].sum(), 0, 0, *true[0, [4, 3, 1, 2]]]


def test_e1_scores_the_best_guess_of_an_assembled_order():
    world = setting("A", 0)
    order = recover(world.clients(300, seed=3)).order
    assert order.best_guess().pairs() > order.pairs()
    assert global_f1(world.order, order) == global_f1(world.order, order.best_guess())
    assert global_f1(world.order, order) != global_f1(world.order, order.pairs())


def test_e1_of_algorithm_3_scores_every_pair_it_states_also_on_a_cycle():
    pieces = [paper_fragment(pair, pair, tuple(pair)) for pair in ("ab", "ba")]
    order = assemble(pieces, method="paper")
    assert global_f1({("a", "b")}, order) == pytest.approx(2 / 3)
