"""The proposed next client settles open pairs."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl import InputError, assemble, next_client, recover
from jigsaw_crl.truth.simulate import random_world, world_from_graph
from jigsaw_crl.truth.simulate.views import View

from .clients import perfect
from .strategies import labs


def start(seed):
    world = random_world(16, 4, 0.6, seed=seed)
    return world, assemble(perfect(world))


def observe(world, labels, name):
    nodes = np.array([world.node(label) for label in labels], dtype=np.intp)
    view = View(name, nodes, np.eye(len(nodes)))
    (fragment,) = perfect(replace(world, views=(view,)))
    return fragment


@pytest.mark.slow
def test_designed_clients_settle_everything_sooner_than_random_ones():
    needed = {"designed": 0, "random": 0}
    for seed in range(5):
        for kind in needed:
            world, order = start(seed)
            everything = observe(world, order.labels, "everything")
            hopeless = assemble([*order.fragments, everything]).undetermined()
            rng = np.random.default_rng([seed, 2])
            for number in range(12):
                if order.undetermined() <= hopeless:
                    break
                labels = rng.choice(order.labels, size=10, replace=False).tolist()
                if kind == "designed":
                    labels = next_client(order, 10).labels
                order = assemble([*order.fragments, observe(world, labels, f"extra-{number}")])
                needed[kind] += 1
    assert needed["designed"] <= 2.6 * 5
    assert 3 * needed["designed"] < needed["random"]


@pytest.mark.slow
@given(labs=labs(), size=st.integers(2, 6), seed=st.integers(0, 100))
def test_a_proposal_concerns_open_pairs_of_known_labels(labs, size, seed):
    order = assemble(labs)
    opened = order.undetermined()
    proposal = next_client(order, size, seed=seed)
    assert set(proposal.labels) <= set(order.labels)
    assert len(proposal.labels) == (min(size, len(order)) if opened else 0)
    assert proposal.expected_gain >= 0
    assert proposal.undetermined == len(opened)
    assert set(proposal.settles) <= opened
    assert set(proposal.cannot) <= opened - set(proposal.settles)
    assert all(set(pair) <= set(proposal.labels) for pair in proposal.settles)
    assert all(0.5 < chance <= 1 for chance in proposal.chances)
    assert len(proposal.chances) == len(proposal.settles)


@pytest.mark.parametrize("size", [1, 0, -3, True, 2.5])
def test_a_client_needs_two_labels_or_more(size):
    _, order = start(1)
    with pytest.raises(InputError, match="two labels"):
        next_client(order, size)


def test_two_labels_are_enough_if_two_roots_are_open():
    effects = np.zeros((4, 4))
    effects[2, 0] = effects[2, 1] = 1.0
    names, sites = ["pump", "valve", "flow", "tank"], [[0, 2, 3], [1, 2, 3]]
    world = world_from_graph(effects, sites, None, names=names)
    order = assemble(perfect(world))
    assert order.undetermined() == {("pump", "valve"), ("valve", "pump")}
    found = next_client(order)
    assert found.labels == ("pump", "valve")
    assert found.reason.startswith("2 labels bring")
    assert "3 labels bring" in found.reason


def test_without_a_size_as_many_labels_are_proposed_as_pay_and_the_figures_add_up():
    _, order = start(0)
    found = next_client(order)
    assert 2 <= len(found.labels) <= max(len(f.labels) for f in order.fragments)
    assert f"{len(found.labels)} labels bring" in found.reason
    assert found.chances == tuple(sorted(found.chances, reverse=True))
    assert sum(found.chances) < found.expected < found.undetermined
    size, bits, each = map(float, re.findall(r"\d+\.?\d*", found.reason)[:3])
    assert bits == pytest.approx(found.expected_gain, rel=0.05)
    assert size * each == pytest.approx(bits, rel=0.06)
    asked = next_client(order, len(found.labels))
    assert (asked.labels, asked.reason) == (found.labels, "as many labels as asked for")


def test_labels_that_cannot_be_had_or_cost_too_much_are_not_proposed():
    _, order = start(1)
    free = next_client(order, 6).labels
    rest = next_client(order, 6, cannot=free[:2]).labels
    assert not set(free[:2]) & set(rest)
    assert len(rest) == 6
    dear = next_client(order, 6, cost=dict.fromkeys(free[:2], 100.0))
    assert not set(free[:2]) & set(dear.labels)
    assert "per unit of cost" in next_client(order, cost={free[0]: 2.0}).reason
    for bad in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="above 0"):
            next_client(order, cost={free[0]: bad})
    with pytest.raises(InputError, match="no client has the label"):
        next_client(order, cannot=["nobody"])
    with pytest.raises(InputError, match="fewer than two labels"):
        next_client(order, cannot=order.labels)


@pytest.mark.parametrize("seed", range(4))
def test_one_label_more_brings_no_more_for_its_cost(seed):
    order = recover(random_world(10, 4, 0.6, seed=seed).clients(500)).order
    for cost in ({}, {order.labels[seed]: 3.0}):
        shares = re.findall(r"([\d.]+) per", next_client(order, cost=cost).reason)
        assert shares
        assert float(shares[0]) >= max(map(float, shares))
