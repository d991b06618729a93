"""Assembling: the same fragments give the same order, and problems are reported."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl import InputError, Verdict, assemble
from jigsaw_crl.assembly.verdict import NO, YES
from jigsaw_crl.base.order import transitive_closure

from ..baseline.test_global_causal_order import fragment as paper_fragment
from .clients import noisy, perfect, small_world
from .strategies import assert_same, labs, reordered


@given(labs=labs(), seed=st.integers(0, 100))
def test_the_order_of_clients_and_of_their_labels_changes_no_field(labs, seed):
    rng = np.random.default_rng(seed)
    shuffled = [reordered(labs[i], rng) for i in rng.permutation(len(labs))]
    assert_same(assemble(labs), assemble(shuffled))


@given(labs=labs())
def test_every_result_is_consistent_in_itself(labs):
    order = assemble(labs)
    off = ~np.eye(len(order), dtype=bool)
    yes, no = order.verdicts == YES, (order.verdicts == NO) & off
    assert ((order.probabilities >= 0) & (order.probabilities <= 1)).all()
    assert (order.probabilities[yes] > 0.95).all()
    assert (order.probabilities[no] < 0.05).all()
    assert not (transitive_closure(yes) & (no | np.eye(len(order), dtype=bool))).any()
    np.testing.assert_array_equal(transitive_closure(order.decoded), order.decoded)
    assert not np.diagonal(order.decoded).any()


def test_the_same_seed_gives_the_same_order_and_another_seed_nearly_the_same():
    fragments = noisy(small_world(2), 0.1)
    one, again, other = (assemble(fragments, seed=s) for s in (0, 0, 1))
    assert_same(one, again)
    # Each run promises a root mean square error of 0.025 for open pairs, not one for each pair.
    off = ~np.eye(len(one), dtype=bool)
    apart = (one.probabilities - other.probabilities)[off]
    assert np.sqrt((apart**2).mean()) < 2 * 0.025 * np.sqrt(2)


def test_fragments_of_the_paper_settle_what_their_blocks_imply():
    order = assemble([paper_fragment("lab-1", ["a", "b", "cd"], ("a", "b"), ("b", "cd"))])
    assert order.verdict("a", "b") is Verdict.ANCESTOR
    assert order.verdict("b", "a") is Verdict.NOT_ANCESTOR
    assert order.verdict("c", "a") is Verdict.NOT_ANCESTOR
    assert order.verdict("b", "c") is Verdict.UNDETERMINED
    assert order.verdict("c", "d") is Verdict.UNDETERMINED


def test_algorithm_3_can_be_chosen_and_its_cycles_are_reported():
    first, second, third = (paper_fragment(pair, pair, tuple(pair)) for pair in ("ab", "bc", "ba"))
    order = assemble([first, second], method="paper")
    assert order.pairs() == {("a", "b"), ("b", "c"), ("a", "c")}
    assert order.verdict("a", "c") is Verdict.ANCESTOR
    assert order.verdict("c", "a") is Verdict.UNDETERMINED
    assert order.best_guess().pairs() == order.pairs()
    tangled = assemble([first, third], method="paper")
    assert any("cycle through a, b" in note for note in tangled.notes)
    assert set(tangled.hasse().edges) == tangled.pairs() == {("a", "b"), ("b", "a")}
    assert not tangled.best_guess().pairs()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda _: [], "no fragment"),
        (lambda _: ["lab-1"], "a fragment is expected, got str"),
        (lambda labs: [*labs, labs[0]], "two fragments carry this client's name"),
    ],
)
def test_bad_input_is_refused_with_a_message(given, words):
    labs = perfect(small_world(0))
    with pytest.raises(InputError, match=words):
        assemble(given(labs))
    with pytest.raises(InputError, match="no assembly method 'union'"):
        assemble(labs, method="union")  # type: ignore[arg-type]
    order = assemble(labs)
    with pytest.raises(InputError, match="no client has the label 'pump'"):
        order.verdict("pump", order.labels[0])
    with pytest.raises(InputError, match="asked about itself"):
        order.explain(order.labels[0], order.labels[0])
