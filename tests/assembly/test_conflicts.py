"""Exact statements that contradict each other are weighed as evidence, and a note says so."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from jigsaw_crl import assemble
from jigsaw_crl.assembly.entailment import Contradiction, deduce

from .clients import false_statements, lab, perfect, small_world
from .strategies import any_labs
from .test_agreement import evidence_of

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


@given(any_labs())
def test_what_follows_agrees_or_contradicts(labs):
    try:
        facts = deduce(evidence_of(labs))
    except Contradiction:
        assert assemble(labs).mode == "evidence"
        return
    assert not (facts.yes & facts.no).any()


def test_exact_worlds_are_recovered_without_a_false_statement():
    scores = []
    for seed in range(10):
        world = small_world(seed, n_latent=20, n_clients=5)
        order = assemble(perfect(world))
        truth = world.order.restrict(order.labels).matrix
        assert order.mode == "exact"
        assert false_statements(order.verdicts, truth) == 0
        said, true = order.pairs(), world.order.pairs()
        scores.append(2 * len(said & true) / max(len(said) + len(true), 1))
    assert np.mean(scores) >= 0.93
