"""Worlds from the paper's settings, at random, or from a given graph; and what is no world."""

import numpy as np
import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.simulate import (
    SETTINGS,
    Batches,
    Intervention,
    random_world,
    setting,
    world_from_graph,
)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_setting_has_the_paper_s_sizes_and_edges(name):
    data, world = SETTINGS[name], setting(name, seed=4)
    assert [v.mixing.shape for v in world.views] == [
        (n, len(o)) for n, o in zip(data.feature_counts, data.node_sets, strict=True)
    ]
    for k, nodes in enumerate(data.node_sets):
        assert {world.node(x) + 1 for x in world.client(k).labels} == set(nodes)
    for i, j, weight in data.weights:
        assert j > i  # the paper's convention: strictly upper triangular
        assert world.sem.A[i - 1, j - 1] == weight
        assert world.order.is_ancestor(world.names[j - 1], world.names[i - 1])


def test_label_order_is_unrelated_to_the_graph():
    agree = []
    for seed in range(60):
        world = random_world(10, 2, 0.8, seed)
        assert world.labels == tuple(sorted(world.labels))
        agree += [a < d for a, d in world.order.pairs()]
        own = world.client(0).labels
        agree += [own.index(a) < own.index(d) for a, d in world.truth(0).order.pairs()]
    # About 2,000 pairs, dependent within a world: a fair coin stays well inside these bounds.
    assert 0.42 < np.mean(agree) < 0.58


def test_named_labels_and_given_weights_are_kept():
    A = np.zeros((3, 3))
    A[1, 0], A[2, 1] = 0.8, -0.7
    names = ["rain", "river", "flood"]
    sets = [["rain", "flood"], ["river", "flood", "rain"]]
    world = world_from_graph(A, sets, None, 5, names=names)
    assert set(world.labels) == set(names)
    assert world.order.pairs() == {("rain", "river"), ("river", "flood"), ("rain", "flood")}
    assert world.truth(0).marginal.A.sum() == pytest.approx(-0.56)
    drawn = world_from_graph(A != 0, [[0, 1]], [4], 5)
    assert (np.abs(drawn.sem.A[A != 0]) <= 1).all()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: setting("D"), "no setting"),
        (lambda: random_world(1, 3, 0.5), "n_latent"),
        (lambda: random_world(5, 0, 0.5), "n_clients"),
        (lambda: random_world(5, 3, 0.0), "coverage"),
        (lambda: random_world(5, 3, float("nan")), "coverage"),
        (lambda: random_world(5, 3, 0.5, seed=-1), "seed"),
        (lambda: random_world(5, 3, 0.5, intervention="odd"), "no intervention protocol"),
        (lambda: world_from_graph([[0, 1], [1, 0]], [[0, 1]], None), "cycle"),
        (lambda: world_from_graph(np.zeros((2, 3)), [[0, 1]], None), "shape"),
        (lambda: world_from_graph(np.zeros((2, 2)), [[0, 3]], None), "node set"),
        (lambda: world_from_graph(np.zeros((2, 2)), [[0, 1]], [1]), "cannot determine"),
        (lambda: world_from_graph(np.zeros((2, 2)), [[0]], None, names=["a"]), "1 element "),
        (lambda: world_from_graph([[0, np.inf], [0, 0]], [[0]], None), "finite"),
        (lambda: setting("A").client(5), "no client 5"),
        (lambda: setting("A").truth(7), "no client 7"),
        (lambda: setting("A").client(0, 4), "too few"),
        (lambda: setting("A").client(0, labels=["nowhere"]), "cannot be intervened on"),
        (lambda: setting("A").client(0, 100, "cauchy"), "no noise family"),
        (lambda: setting("A").client(0, 100, seed=-2), "seed"),
        (lambda: setting("A").client(0, 100, doses=0), "doses"),
        (lambda: setting("A").node("q"), "no label"),
        (lambda: Intervention("odd"), "no intervention of kind"),
        (lambda: Intervention(low=3, high=2), "cannot be drawn"),
        (lambda: Intervention(shift=-1.0), "shift"),
        (lambda: Intervention(shift=(2.0, 1.0)), "shift"),
        (lambda: Intervention(penetrance=0.0), "penetrance"),
        (lambda: Intervention(off_target=1.5), "off_target"),
        (lambda: Intervention("knock-down", low=1, high=2), "knock-down"),
        (lambda: Batches(-1.0), "offset"),
        (lambda: Batches(1.0, "odd"), "odd"),
        (lambda: Batches(1.0, count=0), "0 batches"),
    ],
)
def test_bad_arguments_are_refused(call, says):
    with pytest.raises(InputError, match=says):
        call()
