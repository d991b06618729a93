"""Exact statements: what follows, compared with all orders, and statements that contradict."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl import assemble
from jigsaw_crl.assembly.entailment import deduce
from jigsaw_crl.assembly.posterior.chains import all_orders
from jigsaw_crl.assembly.verdict import NO, YES

from .clients import lab, perfect, small_world
from .strategies import any_labs, true_labs
from .test_agreement import evidence_of

LABELS = "abcde"
CONTRADICT = "the statements contradict each other"


def fits(orders, fragments, labels=LABELS):
    """The orders that agree with every statement and every disjunction."""
    good = np.ones(len(orders), dtype=bool)
    for fragment in fragments:
        rows = [labels.index(x) for x in fragment.labels]
        part = orders[:, rows][:, :, rows]
        said = fragment.statements.ancestor
        good &= (part | (said != YES)).all(axis=(1, 2)) & (~part | (said != NO)).all(axis=(1, 2))
        for candidates, d in fragment.statements.one_of:
            columns = [labels.index(c) for c in candidates]
            good &= orders[:, columns, labels.index(d)].any(axis=1)
    return orders[good]


def random_lab(name, rng, truth):
    """A client that states some true pairs, and sets that hold an ancestor."""
    some = [pair for pair in permutations(range(5), 2) if rng.random() < 0.25]
    said = [[(LABELS[i], LABELS[j]) for i, j in some if truth[i, j] == is_so] for is_so in (1, 0)]
    one_of = []
    for d in range(5):
        above = np.flatnonzero(truth[:, d])
        if above.size and rng.random() < 0.7:
            others = [i for i in range(5) if i not in (d, above[0]) and rng.random() < 0.5]
            one_of.append(([LABELS[i] for i in [above[0], *others]], LABELS[d]))
    return lab(name, LABELS, yes=said[0], no=said[1], one_of=one_of)


def test_entailment_with_disjunctions_is_sound_and_finds_nearly_everything():
    rng, orders = np.random.default_rng(7), all_orders(5)
    found_pairs, true_pairs = 0, 0
    for _ in range(200):
        truth = orders[rng.integers(len(orders))]
        labs = [random_lab(name, rng, truth) for name in ("lab-1", "lab-2")]
        left = fits(orders, labs)
        found = deduce(evidence_of(labs))
        assert not (found.yes & ~left.all(axis=0)).any()
        assert not (found.no & left.any(axis=0)).any()
        found_pairs += int(found.yes.sum() + found.no.sum())
        true_pairs += int(left.all(axis=0).sum() + (~left.any(axis=0)).sum())
    assert found_pairs / true_pairs > 0.97


@given(labs=st.one_of(true_labs(), any_labs()))
def test_verdicts_hold_in_every_order_that_agrees_with_the_statements(labs):
    order = assemble(labs)
    left = fits(all_orders(len(order)), labs, order.labels)
    if order.mode == "evidence":
        assert len(left) == 0
        return
    yes, no = order.verdicts == YES, order.verdicts == NO
    assert (yes <= left.all(axis=0)).all()
    assert (no <= ~left.any(axis=0)).all()
    if not any(fragment.statements.one_of for fragment in labs):
        np.testing.assert_array_equal(yes, left.all(axis=0))
        np.testing.assert_array_equal(no, ~left.any(axis=0))


@pytest.mark.parametrize(
    "labs",
    [
        [
            lab("lab-1", "abx", yes=[("a", "b"), ("x", "b")]),
            lab("lab-2", "bc", yes=[("b", "c")]),
            lab("lab-3", "ca", yes=[("c", "a")]),
        ],
        [
            lab("lab-1", "abc", yes=[("a", "b"), ("b", "c")]),
            lab("lab-2", "acd", no=[("a", "c")], yes=[("a", "d")]),
        ],
        [
            lab("lab-1", "abde", one_of=[("ab", "d")], yes=[("d", "e")]),
            lab("lab-2", "abd", no=[("a", "d"), ("b", "d")]),
        ],
    ],
    ids=["cycle", "denied path", "refuted disjunction"],
)
def test_a_contradiction_is_named_and_the_statements_are_weighed(labs):
    order = assemble(labs)
    assert order.mode == "evidence"
    assert order.notes[0].startswith(CONTRADICT)
    assert not (order.verdicts == 1)[(order.verdicts == 1).T].any()


def states(name, above):
    """A client that states all pairs of six labels in a row."""
    pairs = list(combinations("uvwxyz", 2))
    back = [pair[::-1] for pair in pairs]
    return lab(name, "uvwxyz", yes=pairs if above else back, no=back if above else pairs)


@pytest.mark.parametrize("n_right", [1, 4])
def test_fifteen_opposite_statements_are_weighed_and_said_like_one(n_right):
    """No number of statements is dropped without a word."""
    labs = [states(f"right-{k}", above=True) for k in range(n_right)]
    order = assemble([*labs, states("wrong", above=False)])
    assert order.mode == "evidence"
    assert order.notes[0].startswith(CONTRADICT)
    assert "right-0" in order.notes[0]
    assert "wrong" in order.notes[0]
    if n_right == 1:
        # One word against another: nothing is an ancestor of anything for sure.
        assert not order.pairs()
        return
    assert order.pairs() == set(combinations("uvwxyz", 2))
    assert order.client_weights["wrong"] == 0.0
    assert any("contradicts the other clients" in note and "wrong" in note for note in order.notes)


def test_exact_worlds_are_recovered_without_a_false_statement():
    scores = []
    for seed in range(10):
        world = small_world(seed, n_latent=20, n_clients=5)
        order = assemble(perfect(world))
        counts = jc.metrics.verdict_counts(world.order, order)
        assert order.mode == "exact"
        assert counts.wrong_yes == counts.wrong_no == 0
        scores.append(jc.metrics.global_f1(world.order, order))
    assert np.mean(scores) >= 0.93
