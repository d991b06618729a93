"""Statements from exact moments are true, also where numbers come within rounding of zero."""

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.fragment.fragment import NO, YES
from jigsaw_crl.nullcone import Recovery
from jigsaw_crl.nullcone.district import Lines, inside
from jigsaw_crl.nullcone.structure import decide


# An ancestor six spouses away shows below rounding; the pairs do not settle which of two lines
# carries a label's noise; a weak second direction leaves a line uncertain by a million times
# rounding; a wrong line has more small products than the right one; a spouse moves a second
# direction that is within rounding.
@pytest.mark.parametrize(
    ("p", "n_clients", "q", "seed", "k"),
    [
        (100, 20, 0.3, 0, 14),
        (300, 10, 0.15, 0, 1),
        (100, 20, 0.3, 50, 2),
        (150, 20, 0.3, 52, 5),
        (150, 20, 0.3, 51, 8),
        (300, 40, 0.15, 3, 14),
    ],
)
def test_what_is_within_rounding_is_not_stated(p, n_clients, q, seed, k):
    world = jc.simulate.random_world(p, n_clients, q, seed=seed)
    fragment = jc.recover_fragment(world.client(k))
    assert settled(fragment, world) > 0.6 * len(fragment.labels) * (len(fragment.labels) - 1)


def settled(fragment, world):
    """Number of pairs that are settled; all that is stated is true."""
    labels, said = fragment.labels, fragment.statements
    count = 0
    for i, a in enumerate(labels):
        for j, d in enumerate(labels):
            if i != j and said.ancestor[i, j] in (YES, NO):
                assert world.order.is_ancestor(a, d) == (said.ancestor[i, j] == YES)
                count += 1
    for candidates, d in said.one_of:
        assert any(world.order.is_ancestor(c, d) for c in candidates)
    return count


def confounded(weight, *more):
    """a and b have a hidden common cause h, of little weight for a; b and e are parents of d."""
    edges = [("h", "a", weight), ("h", "b", 0.8), ("b", "d", 0.7), ("e", "d", -0.6), *more]
    return world_of(edges, "h")


def world_of(edges, *hidden):
    names = sorted({name for edge in edges for name in edge[:2]})
    A = np.zeros((len(names), len(names)))
    for source, target, weight in edges:
        A[names.index(target), names.index(source)] = weight
    seen = [name for name in names if name not in hidden]
    return jc.simulate.world_from_graph(A, [seen], None, names=names)


def without(client, label):
    """The client without the regime of one label, whose latent it still accesses."""
    regimes = {name: m for name, m in client.interventions.items() if name != label}
    return replace(client, interventions=regimes, n_latent=client.n_latent)


# With one parent more each, a and b move second directions of their own.
@pytest.mark.parametrize("parents", [(), (("f", "a", 0.5), ("g", "b", -0.5))])
@pytest.mark.parametrize("weight", [1e-3, 1e-6, 1e-7, 1e-9, 1e-12])
def test_a_common_cause_of_any_weight_is_no_ancestor(parents, weight):
    world = confounded(weight, *parents)
    client = world.client(0)
    labels = len(client.labels)
    assert settled(jc.recover_fragment(client), world) >= labels * (labels - 1) - 6
    for label in ("d", "e"):
        settled(jc.recover_fragment(without(client, label)), world)


def test_a_district_that_a_label_may_belong_to_has_no_ancestor_of_it():
    edges = [("h1", "w", 1e-11), ("h1", "b", 0.8), ("h2", "b", 0.7), ("h2", "g", 0.6)]
    edges += [("h3", "g", 0.5), ("h3", "k", 0.9), ("k", "d", 0.6), ("r", "d", 0.4)]
    world = world_of(edges, "h1", "h2", "h3")
    assert settled(jc.recover_fragment(world.client(0)), world) > 0
    assert settled(jc.recover_fragment(without(world.client(0), "g")), world) > 0


@pytest.mark.parametrize("weight", [1e-3, 1e-5, 1e-6, 1e-8, 1e-10])
def test_a_small_effect_is_stated_where_no_line_can_be_tilted(weight):
    world = world_of([("e", "d", weight), ("b", "d", 0.7)])
    fragment = jc.recover_fragment(world.client(0))
    assert settled(fragment, world) == 6


@pytest.mark.parametrize(
    ("noise", "bound", "least"),
    [(0.0, 1, 330), (1e-12, 1000, 250), (1e-10, 1, 0), (1e-8, 1, 0), (1e-6, 1, 0), (1e-3, 1, 0)],
)
def test_facts_about_a_district_are_true_whatever_the_error_of_the_lines(noise, bound, least):
    """The lines are moved at random, and their bound with them, in units of the noise."""
    world, rng = jc.simulate.random_world(60, 8, 0.3, seed=5), np.random.default_rng(0)
    stated = 0
    for k in range(8):
        recovery = Recovery.of(world.client(k))
        own = Lines.of(recovery.reading)
        moved = rng.normal(size=own.unit.shape)
        moved *= noise / np.linalg.norm(moved, axis=2, keepdims=True)
        unit = np.where(own.unit.any(axis=2, keepdims=True), own.unit + moved, 0.0)
        own = replace(own, unit=unit, error=np.maximum(own.error, bound * noise))
        for members in decide(recovery.bayes).districts:
            no, one_of = inside(own, members)
            names = [recovery.labels[i] for i in members]
            for a, d in no:
                assert not world.order.is_ancestor(names[a], names[d])
            for group, d in one_of:
                assert any(world.order.is_ancestor(names[c], names[d]) for c in group)
            stated += len(no) + len(one_of)
    assert stated >= least
