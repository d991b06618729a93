"""Statements that contradict each other are set aside, as few as possible; the rest stays exact."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given

from jigsaw_crl import Verdict, assemble
from jigsaw_crl.assembly import CertificateChecker
from jigsaw_crl.assembly.exact.conflicts import agreeing
from jigsaw_crl.assembly.exact.entailment import Contradiction
from jigsaw_crl.assembly.panel import read_fragments

from .clients import flipped, lab, perfect, small_world
from .strategies import any_labs


def test_a_cycle_is_set_aside_and_other_statements_stay_exact():
    labs = [
        lab("lab-1", "abx", yes=[("a", "b"), ("x", "b")]),
        lab("lab-2", "bc", yes=[("b", "c")]),
        lab("lab-3", "ca", yes=[("c", "a")]),
    ]
    order = assemble(labs)
    assert order.mode == "exact"
    assert order.verdict("x", "b") is Verdict.ANCESTOR
    for pair in ("ab", "bc", "ca"):
        assert order.verdict(*pair) is Verdict.UNDETERMINED
    assert "lab-3: c is an ancestor of a" in order.notes[0]


def test_a_path_along_a_denied_pair_is_set_aside():
    labs = [
        lab("lab-1", "abc", yes=[("a", "b"), ("b", "c")]),
        lab("lab-2", "acd", no=[("a", "c")], yes=[("a", "d")]),
    ]
    order = assemble(labs)
    assert order.mode == "exact"
    for pair in ("ab", "bc", "ac"):
        assert order.verdict(*pair) is Verdict.UNDETERMINED
    assert order.verdict("a", "d") is Verdict.ANCESTOR


def test_a_refuted_disjunction_is_set_aside_with_the_denials():
    labs = [
        lab("lab-1", "abde", one_of=[("ab", "d")], yes=[("d", "e")]),
        lab("lab-2", "abd", no=[("a", "d"), ("b", "d")]),
    ]
    order = assemble(labs)
    assert order.mode == "exact"
    assert order.verdict("a", "d") is Verdict.UNDETERMINED
    assert order.verdict("d", "e") is Verdict.ANCESTOR
    assert "lab-1: one of a, b is an ancestor of d" in order.notes[0]


@given(any_labs())
def test_what_is_left_agrees_or_too_much_contradicts(labs):
    panel = read_fragments(labs)
    try:
        left, knowledge, aside = agreeing(panel)
    except Contradiction:
        return
    assert not (knowledge.yes & knowledge.no).any()
    for before, after in zip(panel.claims, left.claims, strict=True):
        changed = np.argwhere(before.certain != after.certain)
        taken = {pair for conflict in aside for pair in conflict.pairs}
        assert {tuple(before.members[pair].tolist()) for pair in changed} <= taken


def test_many_contradictions_are_weighed_as_evidence():
    world = small_world(3, n_latent=20, n_clients=15)
    rng = np.random.default_rng(3)
    order = assemble([flipped(f, 0.05, rng) for f in perfect(world)])
    assert order.mode == "evidence"


@pytest.mark.parametrize("seed", range(4))
def test_one_false_statement_costs_no_other_verdict(seed):
    world = small_world(seed, n_latent=12, n_clients=8)
    given = perfect(world)
    rng = np.random.default_rng(seed)
    order = assemble([flipped(given[0], 1 / given[0].statements.ancestor.size, rng), *given[1:]])
    truth = world.order.restrict(order.labels).matrix
    assert order.mode == "exact"
    wrong = ((order.verdicts == 1) & ~truth) | ((order.verdicts == 0) & truth)
    assert int(wrong.sum()) <= 1


def test_certificates_hold_after_a_disjunction_was_set_aside():
    labs = [
        lab("lab-0", "abc", yes=[("a", "c")], no=[("a", "b"), ("b", "c")]),
        lab("lab-1", "abc", yes=[("b", "a")], one_of=[("a", "b"), ("b", "a")]),
    ]
    order = assemble(labs)
    assert order.mode == "exact"
    checker = CertificateChecker(order.fragments)
    for a, d in permutations(order.labels, 2):
        assert checker.check(order.explain(a, d)) == ""
