"""A label that means something else at one site is left out there."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.dissent import differing_labels

from .test_agreement import evidence_of


def exchanged(client: jc.Client, a: str, b: str) -> jc.Client:
    """The client with the regimes of two labels exchanged."""
    regimes = dict(client.interventions)
    regimes[a], regimes[b] = regimes[b], regimes[a]
    return jc.Client.from_moments(
        client.name, control=client.control, interventions=regimes, n_latent=client.n_latent
    )


def mislabelled() -> tuple[jc.simulate.World, list[jc.Client], set[tuple[str, str]]]:
    """A world, its clients, and the labels that one of them has exchanged."""
    world = jc.simulate.random_world(10, 6, 0.9, 4)
    clients, order = world.clients(5_000, seed=0), world.order
    own = clients[2].labels
    # The two labels whose relations to the others differ most.
    root = max(own, key=lambda x: sum(order.is_ancestor(x, y) for y in own))
    leaf = max(own, key=lambda x: sum(order.is_ancestor(y, x) for y in own))
    clients[2] = exchanged(clients[2], root, leaf)
    return world, clients, {(clients[2].name, x) for x in (root, leaf)}


def test_exchanged_labels_are_named_and_left_out():
    world, clients, labels = mislabelled()
    result = jc.recover(clients)
    said = {(f.client, f.regime) for f in result.diagnostics if f.check == "label-differs"}
    assert said == labels
    assert jc.metrics.verdict_counts(world.order, result.order).wrong_yes == 0


@pytest.mark.slow
def test_labels_of_sound_sites_are_seldom_named():
    named = 0
    for seed in range(15):
        world = jc.simulate.random_world(12, 6, 0.7, 70 + seed)
        n = (300, 1000, 10_000)[seed % 3]
        fragments = [jc.recover_fragment(c) for c in world.clients(n, seed=seed)]
        named += bool(differing_labels(evidence_of(fragments)))
    assert named <= 1
