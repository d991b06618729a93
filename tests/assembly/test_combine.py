"""Assembling: one answer for one set of fragments, and plain words about what went wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl import GlobalOrder, InputError, Verdict, assemble
from jigsaw_crl.base.order import PartialOrder, transitive_closure
from jigsaw_crl.fragment.fragment import BayesFactors, Fragment

from .clients import false_statements, flipped, lab, noisy, perfect, small_world, weighed


def same(one: GlobalOrder, other: GlobalOrder) -> None:
    assert one.labels == other.labels
    np.testing.assert_array_equal(one.verdicts, other.verdicts)
    np.testing.assert_array_equal(one.decoded, other.decoded)
    np.testing.assert_array_equal(one.probabilities, other.probabilities)
    assert one.client_weights == other.client_weights
    assert one.notes == other.notes


def reordered(fragment: Fragment, rng: np.random.Generator) -> Fragment:
    """The same fragment with its labels listed in another order."""
    deal = rng.permutation(len(fragment.labels))
    grid = np.ix_(deal, deal)
    b = fragment.bayes
    assert b is not None
    bayes = BayesFactors(b.scales, np.stack([x[grid] for x in b.ancestor]), b.district[grid])
    return replace(fragment, labels=tuple(fragment.labels[i] for i in deal), bayes=bayes)


def test_neither_arrival_nor_the_listing_of_labels_changes_the_order():
    fragments = noisy(small_world(0), 0.1)
    rng = np.random.default_rng(1)
    first = assemble(fragments)
    shuffled = [reordered(fragments[i], rng) for i in rng.permutation(len(fragments))]
    same(first, assemble(shuffled))


@pytest.mark.parametrize("make", [perfect, lambda world: noisy(world, 0.1)])
def test_adding_fragments_one_by_one_gives_the_order_of_the_whole_set(make):
    fragments = make(small_world(4))
    whole = assemble(fragments)
    grown = assemble(fragments[2:3])
    for fragment in (fragments[0], fragments[3], fragments[1]):
        grown = grown.add(fragment)
    same(whole, grown)
    same(whole, assemble(fragments[:2], start=assemble(fragments[2:])))


def test_the_same_seed_gives_the_same_order_and_another_seed_nearly_the_same():
    fragments = noisy(small_world(2), 0.1)
    one, again, other = (assemble(fragments, seed=s) for s in (0, 0, 1))
    same(one, again)
    assert np.abs(one.probabilities - other.probabilities).max() < 0.15


def test_null_cone_is_another_name_for_the_default():
    fragments = perfect(small_world(1))
    same(assemble(fragments), assemble(fragments, method="null-cone"))


def test_the_decoded_order_is_an_order():
    order = assemble(noisy(small_world(5), 0.15))
    np.testing.assert_array_equal(transitive_closure(order.decoded), order.decoded)
    assert order.order().pairs() == order.pairs()


@pytest.mark.parametrize(("rate", "least"), [(0.01, 0.985), (0.05, 0.98), (0.1, 0.95), (0.2, 0.9)])
@pytest.mark.parametrize("known", [True, False])
def test_wrong_statements_are_outvoted(rate, least, known):
    scores, wrong, decided = [], 0, 0
    for seed in range(100, 106):
        world = small_world(seed, n_latent=20, n_clients=15)
        rng = np.random.default_rng(seed)
        given = [flipped(f, rate, rng) for f in perfect(world)]
        order = assemble([weighed(f, rate) for f in given] if known else given)
        said, true = order.pairs(), world.order.pairs()
        scores.append(2 * len(said & true) / (len(said) + len(true)))
        truth = world.order.restrict(order.labels).matrix
        wrong += false_statements(order.verdicts, truth)
        decided += int((order.verdicts >= 0).sum()) - len(truth)
    assert np.mean(scores) >= least
    assert wrong <= 0.01 * decided


def test_contradicting_statements_are_weighed_and_the_note_says_who_says_what():
    labs = [
        lab("lab-1", "ab", yes=[("a", "b")], no=[("b", "a")]),
        lab("lab-2", "ab", no=[("a", "b"), ("b", "a")]),
    ]
    order = assemble(labs)
    assert order.mode == "evidence"
    assert "lab-1 says yes; lab-2 says no" in order.notes[0]
    assert order.verdict("a", "b") is Verdict.UNDETERMINED
    assert "lab-1 says yes, lab-2 says no" in str(order.explain("a", "b"))


def test_a_pair_that_no_client_saw_together_is_decided_only_by_entailment():
    decided_unseen = 0
    for seed in range(8):
        order = assemble(noisy(small_world(seed, n_clients=3), 0.02))
        eye = np.eye(len(order), dtype=bool)
        sure = (np.abs(order.evidence) > np.log(2)) & (order.verdicts >= 0)
        yes = transitive_closure(sure & (order.verdicts == 1))
        reach = (yes | eye).astype(float)
        no = reach.T @ ((sure & (order.verdicts == 0)) | yes.T | eye) @ reach.T > 0
        unseen = (order.evidence == 0) & ~eye
        assert not (unseen & (order.verdicts == 1) & ~yes).any()
        assert not (unseen & (order.verdicts == 0) & ~no).any()
        decided_unseen += int((unseen & (order.verdicts >= 0)).sum())
    assert decided_unseen > 0


def test_exact_and_sampled_fragments_mix():
    world = small_world(6, n_clients=8)
    exact, sampled = perfect(world)[:4], noisy(world, 0.02)[4:]
    order = assemble([*exact, *sampled])
    assert order.mode == "evidence"
    truth = world.order.restrict(order.labels).matrix
    assert false_statements(order.verdicts, truth) <= 2


def test_fragments_of_the_paper_give_what_their_blocks_settle():
    a, b, cd = frozenset("a"), frozenset("b"), frozenset("cd")
    blocks = PartialOrder.from_pairs((a, b, cd), [(a, b), (b, cd)])
    order = assemble([Fragment("lab-1", "paper", tuple("abcd"), (a, b, cd), blocks)])
    assert order.verdict("a", "b") is Verdict.ANCESTOR
    assert order.verdict("b", "a") is Verdict.NOT_ANCESTOR
    assert order.verdict("c", "a") is Verdict.NOT_ANCESTOR
    assert order.verdict("b", "c") is Verdict.UNDETERMINED
    assert order.verdict("c", "d") is Verdict.UNDETERMINED


def test_algorithm_3_stays_available_and_its_cycle_is_reported():
    def chain(name: str, a: str, d: str) -> Fragment:
        blocks = (frozenset(a), frozenset(d))
        return Fragment(name, "paper", (a, d), blocks, PartialOrder.from_pairs(blocks, [blocks]))

    order = assemble([chain("lab-1", "a", "b"), chain("lab-2", "b", "c")], method="paper")
    assert order.pairs() == {("a", "b"), ("b", "c"), ("a", "c")}
    assert order.verdict("a", "c") is Verdict.ANCESTOR
    assert order.verdict("c", "a") is Verdict.UNDETERMINED
    tangled = assemble([chain("lab-1", "a", "b"), chain("lab-2", "b", "a")], method="paper")
    assert any("cycle through a, b" in note for note in tangled.notes)
    assert set(tangled.hasse().edges) == {("a", "b"), ("b", "a")}


def test_the_frame_and_the_diagram_hold_what_the_order_says():
    order = assemble(noisy(small_world(7), 0.05))
    frame = order.to_frame()
    assert list(frame.columns) == [
        "ancestor", "descendant", "verdict", "probability", "supporting", "contradicting",
    ]  # fmt: skip
    assert len(frame) == len(order) * (len(order) - 1)
    row = frame.iloc[17]
    assert row.verdict == str(order.verdict(row.ancestor, row.descendant))
    assert row.probability == order.probability(row.ancestor, row.descendant)
    covers = PartialOrder.from_matrix(order.labels, order.decoded).covers()
    assert set(order.hasse().edges) == set(covers)
    label = order.labels[0]
    assert order.ancestors(label) == {a for a, d in order.pairs() if d == label}


def test_probabilities_of_exact_mode_lie_between_the_verdicts():
    order = assemble(perfect(small_world(8, n_clients=3)))
    assert order.undetermined()
    off = ~np.eye(len(order), dtype=bool)
    assert (order.probabilities[(order.verdicts == 1)] == 1).all()
    assert (order.probabilities[(order.verdicts == 0)] == 0).all()
    opened = order.probabilities[(order.verdicts == -1) & off]
    assert ((opened > 0) & (opened < 1)).any()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda _: [], "no fragment"),
        (lambda f: [f[0], f[0]], "two fragments carry this client's name"),
        (lambda _: ["lab-1"], "a fragment is expected, got str"),
    ],
)
def test_bad_input_is_told_in_one_line(given, words):
    with pytest.raises(InputError, match=words):
        assemble(given(perfect(small_world(0))))


def test_an_unknown_method_or_label_is_told_in_one_line():
    fragments = perfect(small_world(0))
    with pytest.raises(InputError, match="no assembly method 'union'"):
        assemble(fragments, method="union")  # type: ignore[arg-type]
    order = assemble(fragments)
    with pytest.raises(InputError, match="no client has the label 'pump'"):
        order.verdict("pump", order.labels[0])
    with pytest.raises(InputError, match="asked about itself"):
        order.explain(order.labels[0], order.labels[0])


def test_arrays_of_a_result_cannot_be_written():
    order = jc.assemble(perfect(small_world(0)))
    with pytest.raises(ValueError, match="read-only"):
        order.verdicts[0, 1] = 1
