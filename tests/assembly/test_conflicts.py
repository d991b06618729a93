"""Exact statements that contradict each other are weighed as evidence, and a note says so."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl import assemble

from .clients import false_statements, lab, perfect, small_world

CONTRADICT = "the statements contradict each other"


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
        truth = world.order.restrict(order.labels).matrix
        assert order.mode == "exact"
        assert false_statements(order.verdicts, truth) == 0
        scores.append(jc.metrics.global_f1(world.order, order))
    assert np.mean(scores) >= 0.93
