"""A label that means something else at one site is named, and costs no wrong verdict."""

import jigsaw_crl as jc


def exchanged(client, a, b):
    """The client with the regimes of two labels exchanged."""
    regimes = dict(client.interventions)
    regimes[a], regimes[b] = regimes[b], regimes[a]
    return jc.Client.from_moments(
        client.name, control=client.control, interventions=regimes, n_latent=client.n_latent
    )


def mislabelled():
    """A world, its clients, and the labels that one of them has exchanged."""
    world = jc.simulate.random_world(10, 6, 0.9, 4)
    clients, order = world.clients(5_000, seed=0), world.order
    own = clients[2].labels
    # The two labels whose relations to the others differ most.
    root = max(own, key=lambda x: sum(order.is_ancestor(x, y) for y in own))
    leaf = max(own, key=lambda x: sum(order.is_ancestor(y, x) for y in own))
    clients[2] = exchanged(clients[2], root, leaf)
    return world, clients, {(clients[2].name, x) for x in (root, leaf)}


def test_exchanged_labels_are_named_and_cost_no_wrong_verdict():
    world, clients, labels = mislabelled()
    result = jc.recover(clients)
    said = {(f.client, f.regime) for f in result.diagnostics if f.check == "label-differs"}
    assert said == labels
    assert jc.metrics.verdict_counts(world.order, result.order).wrong_yes == 0
