"""A label that means something else at one site is left out there."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.meanings import differing_labels
from jigsaw_crl.assembly.panel import read_fragments


def exchanged(client: jc.Client, a: str, b: str) -> jc.Client:
    """The client with the regimes of two labels exchanged."""
    regimes = dict(client.interventions)
    regimes[a], regimes[b] = regimes[b], regimes[a]
    return jc.Client.from_moments(
        client.name, control=client.control, interventions=regimes, n_latent=client.n_latent
    )


def test_exchanged_labels_are_named_and_left_out():
    world = jc.simulate.random_world(10, 6, 0.9, 4)
    order = world.order
    clients = world.clients(5000, seed=0)
    # The two labels whose relations to the others differ most.
    own = clients[2].labels
    above = {x: {(x, y) for y in own if order.is_ancestor(x, y)} for x in own}
    root = max(own, key=lambda x: len(above[x]))
    leaf = max(own, key=lambda x: sum(order.is_ancestor(y, x) for y in own))
    clients[2] = exchanged(clients[2], root, leaf)
    result = jc.recover(clients)
    said = {(f.client, f.regime) for f in result.diagnostics if f.check == "label-differs"}
    assert said == {(clients[2].name, root), (clients[2].name, leaf)}
    counts = jc.metrics.verdict_counts(order, result.order)
    assert counts.wrong_yes == 0


@pytest.mark.slow
def test_labels_of_sound_sites_are_seldom_named():
    named = 0
    for seed in range(15):
        world = jc.simulate.random_world(12, 6, 0.7, 70 + seed)
        n = (300, 1000, 10_000)[seed % 3]
        fragments = [jc.recover_fragment(c) for c in world.clients(n, seed=seed)]
        named += bool(differing_labels(read_fragments(fragments)))
    assert named <= 1
