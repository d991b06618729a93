"""Assembling: the same fragments give the same order, and problems are reported."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl import InputError, Verdict, assemble
from jigsaw_crl.assembly.verdict import NO, OPEN, YES
from jigsaw_crl.base.order import PartialOrder, transitive_closure
from jigsaw_crl.fragment.fragment import Fragment

from .clients import false_statements, flipped, lab, noisy, perfect, small_world, weighed
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
    assert np.abs(one.probabilities - other.probabilities).max() < 0.15


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda world: noisy(world, 0.2), lambda world: perfect(world)[:4]]
)
def test_the_best_guess_adds_probable_open_pairs_to_the_decided_ones(make):
    added = 0
    for seed in range(6):
        order = assemble(make(small_world(seed, n_latent=12)))
        guess = order.best_guess()
        assert guess.elements == order.labels
        assert order.pairs() <= guess.pairs() <= order.pairs() | order.undetermined()
        assert not any(order.probability(*pair) < 0.1 for pair in guess.pairs())
        added += len(guess.pairs() - order.pairs())
    assert added


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "least", "known"), [(0.05, 0.98, False), (0.2, 0.9, True)])
def test_wrong_statements_are_outvoted(rate, least, known):
    scores, wrong, decided = [], 0, 0
    for seed in range(100, 112):
        world = small_world(seed, n_latent=12, n_clients=15)
        rng = np.random.default_rng(seed)
        given = [flipped(f, rate, rng) for f in perfect(world)]
        order = assemble([weighed(f, rate) for f in given] if known else given)
        scores.append(jc.metrics.global_f1(world.order, order.best_guess()))
        truth = world.order.restrict(order.labels).matrix
        wrong += false_statements(order.verdicts, truth)
        decided += int((order.verdicts != OPEN).sum()) - len(truth)
    assert np.mean(scores) >= least
    assert wrong <= 0.01 * decided


def test_a_contradicted_statement_is_weighed_and_a_note_names_the_clients():
    labs = [
        lab("lab-1", "ab", yes=[("a", "b")], no=[("b", "a")]),
        lab("lab-2", "ab", no=[("a", "b"), ("b", "a")]),
    ]
    order = assemble(labs)
    assert order.mode == "evidence"
    assert order.notes[0].startswith("the statements contradict each other")
    assert "a and b; lab-1 says yes; lab-2 says no" in order.notes[0]
    assert order.verdict("a", "b") is Verdict.UNDETERMINED
    assert order.verdict("b", "a") is Verdict.NOT_ANCESTOR
    assert "lab-1 says yes, lab-2 says no" in str(order.explain("a", "b"))


def test_exact_and_sampled_fragments_mix():
    world = small_world(6, n_clients=8)
    exact, sampled = perfect(world)[:4], noisy(world, 0.02)[4:]
    order = assemble([*exact, *sampled])
    assert order.mode == "evidence"
    truth = world.order.restrict(order.labels).matrix
    assert false_statements(order.verdicts, truth) <= 2


def test_fragments_of_the_paper_settle_what_their_blocks_imply():
    a, b, cd = frozenset("a"), frozenset("b"), frozenset("cd")
    blocks = PartialOrder.from_pairs((a, b, cd), [(a, b), (b, cd)])
    order = assemble([Fragment("lab-1", "paper", tuple("abcd"), (a, b, cd), blocks)])
    assert order.verdict("a", "b") is Verdict.ANCESTOR
    assert order.verdict("b", "a") is Verdict.NOT_ANCESTOR
    assert order.verdict("c", "a") is Verdict.NOT_ANCESTOR
    assert order.verdict("b", "c") is Verdict.UNDETERMINED
    assert order.verdict("c", "d") is Verdict.UNDETERMINED


def test_algorithm_3_can_be_chosen_and_its_cycles_are_reported():
    def chain(name: str, a: str, d: str) -> Fragment:
        blocks = (frozenset(a), frozenset(d))
        return Fragment(name, "paper", (a, d), blocks, PartialOrder.from_pairs(blocks, [blocks]))

    order = assemble([chain("lab-1", "a", "b"), chain("lab-2", "b", "c")], method="paper")
    assert order.pairs() == {("a", "b"), ("b", "c"), ("a", "c")}
    assert order.verdict("a", "c") is Verdict.ANCESTOR
    assert order.verdict("c", "a") is Verdict.UNDETERMINED
    assert order.best_guess().pairs() == order.pairs()
    tangled = assemble([chain("lab-1", "a", "b"), chain("lab-2", "b", "a")], method="paper")
    assert any("cycle through a, b" in note for note in tangled.notes)
    assert set(tangled.hasse().edges) == tangled.pairs() == {("a", "b"), ("b", "a")}
    assert not tangled.best_guess().pairs()


def test_the_table_and_the_diagram_agree_with_the_order():
    order = assemble(noisy(small_world(7), 0.05))
    frame = order.to_frame()
    assert list(frame.columns) == [
        "ancestor", "descendant", "verdict", "probability", "supporting", "contradicting",
        "excludes_above", "excludes_unit", "agreement", "rests_on", "witnesses", "contested",
    ]  # fmt: skip
    assert len(frame) == len(order) * (len(order) - 1)
    row = frame.iloc[17]
    assert row.verdict == str(order.verdict(row.ancestor, row.descendant))
    assert row.probability == order.probability(row.ancestor, row.descendant)
    covers = PartialOrder.from_pairs(order.labels, order.pairs()).covers()
    assert set(order.hasse().edges) == set(covers)
    assert order.undetermined()


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
