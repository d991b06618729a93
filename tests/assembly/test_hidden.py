"""The rules across hidden nodes state nothing false, and each of them is needed."""

from __future__ import annotations

import numpy as np
import pytest

from jigsaw_crl import Verdict, assemble
from jigsaw_crl.assembly.exact.deduction import deduce
from jigsaw_crl.assembly.exact.entailment import UNKNOWN, entail
from jigsaw_crl.assembly.exact.hidden import reason_across_hidden
from jigsaw_crl.assembly.panel import read_fragments
from jigsaw_crl.truth.simulate.world import World

from .clients import false_statements, lab, perfect, small_world


def hidden_reach(world: World, labels: tuple[str, ...], observed: set[str]) -> np.ndarray:
    """The truth: m reaches x through labels that are not observed, shape (p, p)."""
    nodes = [world.node(label) for label in labels]
    edge = (world.sem.A != 0).T
    reach = np.zeros_like(edge)
    hidden = np.array([world.names[n] not in observed for n in range(world.n_latent)])
    for m in np.flatnonzero(hidden):
        front = set(np.flatnonzero(edge[m]).tolist())
        while front:
            x = front.pop()
            if not reach[m, x]:
                reach[m, x] = True
                if hidden[x]:
                    front |= set(np.flatnonzero(edge[x]).tolist())
    return reach[np.ix_(nodes, nodes)]


@pytest.mark.parametrize("closed_world", [False, True])
def test_nothing_false_is_stated_in_120_worlds(closed_world):
    gained = 0
    for seed in range(120):
        world = small_world(seed, n_latent=8 + seed % 8, n_clients=3 + seed % 3)
        panel = read_fragments(perfect(world))
        if closed_world and len(panel.labels) < world.n_latent:
            continue  # the assumption is false in this world
        truth = world.order.restrict(panel.labels).matrix
        plain = entail(panel)
        grown = plain.copy()
        views = reason_across_hidden(grown, panel, closed_world=closed_world)
        assert not (grown.yes & ~truth).any()
        assert not (grown.no & truth).any()
        for view in views:
            observed = {panel.labels[i] for i in np.flatnonzero(view.observed)}
            reach = hidden_reach(world, panel.labels, observed)
            assert not ((view.yes != UNKNOWN) & ~reach).any()
            assert not ((view.no != UNKNOWN) & reach).any()
        gained += int(grown.yes.sum() + grown.no.sum() - plain.yes.sum() - plain.no.sum())
    assert gained > 100


def test_every_rule_occurs_in_the_certificates_of_some_world():
    used: set[str] = set()
    for seed in range(40):
        world = small_world(seed, n_latent=14, n_clients=4)
        order = assemble(perfect(world), closed_world=True)
        plain = entail(order.panel)
        new = (order.verdicts >= 0) & ~plain.yes & ~plain.no
        for a, d in np.argwhere(new).tolist():
            used |= order.explain(order.labels[a], order.labels[d]).rules
    assert used >= {"reach", "unblocked", "separate", "passage", "blocked", "compose", "confounder"}


def test_labels_that_are_not_spouses_have_no_hidden_ancestor_in_common():
    # b and c are not spouses at lab-1, so m, a hidden parent of b, does not reach c.
    labs = [
        lab(
            "lab-1",
            "bc",
            no=[("b", "c"), ("c", "b")],
            spouses=[],
        ),
        lab("lab-2", "mb", yes=[("m", "b")], no=[("b", "m")]),
    ]
    order = assemble(labs)
    assert order.verdict("m", "c") is Verdict.NOT_ANCESTOR
    assert {"unblocked", "separate", "blocked"} <= order.explain("m", "c").rules


def test_spouses_that_contradict_statements_are_not_used_and_a_note_says_so():
    # m is a parent of both b and c with nothing between, yet lab-1 denies that they are spouses.
    labs = [
        lab("lab-1", "bc", no=[("b", "c"), ("c", "b")], spouses=[]),
        lab("lab-2", "mb", yes=[("m", "b")]),
        lab("lab-3", "mc", yes=[("m", "c")]),
    ]
    order = assemble(labs)
    assert order.mode == "exact"
    assert any("hidden nodes were not used" in note for note in order.notes)
    assert order.pairs() == {("m", "b"), ("m", "c")}


def test_a_closed_world_that_contradicts_the_spouses_is_not_used_and_a_note_says_so():
    labs = [lab("lab-1", "bc", spouses=[("b", "c")])]
    order = assemble(labs, closed_world=True)
    assert any("closed_world was not used: it contradicts" in note for note in order.notes)
    assert order.verdict("b", "c") is Verdict.UNDETERMINED


def test_a_note_says_that_closed_world_needs_spouses():
    order = assemble([lab("lab-1", "bc", yes=[("b", "c")])], closed_world=True)
    assert any("closed_world was not used" in note for note in order.notes)


def test_population_worlds_are_recovered_without_a_false_statement():
    scores = []
    for seed in range(30):
        world = small_world(seed, n_latent=20, n_clients=5)
        order = assemble(perfect(world))
        truth = world.order.restrict(order.labels).matrix
        assert false_statements(order.verdicts, truth) == 0
        said, true = order.pairs(), world.order.pairs()
        scores.append(2 * len(said & true) / max(len(said) + len(true), 1))
    assert np.mean(scores) >= 0.93


def test_deduction_without_hidden_rules_is_plain_entailment():
    panel = read_fragments(perfect(small_world(3)))
    found = deduce(panel, hidden_rules=False)
    np.testing.assert_array_equal(found.knowledge.yes, entail(panel).yes)
