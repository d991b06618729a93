"""Clients for the tests of the paper's method, and what is compared on them."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.base.algebra import fixed_rank_pinv
from jigsaw_crl.baseline import literal

SEEDS = st.integers(0, 2**16)
SAMPLE_SIZES = st.sampled_from([100, 1000, 100_000])
TAUS = st.sampled_from([0.01, 0.03, 0.05, 0.1, 0.3])


def small_world(seed, most=9):
    """A random world of 3 to `most` latents and one client."""
    return jc.simulate.random_world(3 + seed % (most - 2), 1, 0.7, seed)


def clear_client(seed, most=8):
    """Exact moments whose relations are far above rounding, and the truth.

    Edge weights are at least 0.2 in size and the mixing has condition number 3, because the literal
    algorithms take no precautions against rounding.
    """
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, most + 1))
    weights = rng.uniform(0.2, 1.0, (p, p)) * rng.choice([-1.0, 1.0], (p, p))
    A = np.where(np.triu(rng.random((p, p)) < min(1.0, 3.0 / p), 1), weights, 0.0)
    nodes = rng.permutation(p)[: rng.integers(2, p + 1)].tolist()
    world = jc.simulate.world_from_graph(A, [nodes], None, seed)
    truth = world.truth(0)
    d, k = truth.mixing.shape
    left, right = (np.linalg.qr(rng.normal(size=(n, k)))[0] for n in (d, k))
    G = left * np.linspace(1.0, 3.0, k) @ right.T
    _, Q = block_rq(truth, np.linalg.pinv(G))
    return mixed_by(world.client(0), truth, G), replace(truth, mixing=G, Q=Q)


def sampled_client(seed, n, most=8):
    """Moments of n simulated rows per regime; exact moments for n = None."""
    return small_world(seed, most).client(0, n_samples=n, seed=seed)


def with_regimes(client, moments):
    """The client with the second moments of some labels replaced, under the name lab-1."""
    return jc.Client.from_covariances(
        "lab-1",
        observational=client.control_second_moment,
        interventions={x: moments.get(x, client.second_moments(x)[0]) for x in client.labels},
        n_samples=client.control.n,
    )


def block_rq(truth, H):
    """R and Q of Algorithm 4 along the true block order."""
    position = {label: i for i, label in enumerate(truth.labels)}
    blocks = truth.block_order.topological()  # ancestors first
    return literal.block_rq(
        H,
        [[position[x] for x in block] for block in blocks],
        [[position[x] for a in truth.block_order.ancestors(b) for x in a] for b in blocks],
    )


def mixed_by(client, truth, G):
    """The client with the mixing G in place of its own."""
    T = G @ np.linalg.pinv(truth.mixing)
    return jc.Client.from_covariances(
        client.name,
        observational=T @ client.control_second_moment @ T.T,
        interventions={x: T @ client.second_moments(x)[0] @ T.T for x in client.labels},
        n_samples=client.control.n,
    )


def precisions(client):
    """Θ⁽ʲ⁾ of each label and, under the key 0, Θ⁽⁰⁾: pseudo-inverses of rank p_k on features."""
    p = client.n_latent
    given = {0: client.control_second_moment}
    given |= {label: client.second_moments(label)[0] for label in client.labels}
    return {label: fixed_rank_pinv(moment, p) for label, moment in given.items()}


def literally(client, tau=0.05):
    """The fragment that the paper's own lines give."""
    Theta = precisions(client)
    if client.is_population:
        I, prec, Q = literal.id_block_causal_order(Theta)
    else:
        I, prec, Q = literal.id_block_causal_order_fs(Theta, tau)
    order = jc.PartialOrder.from_pairs(
        map(frozenset, I), [(frozenset(B), frozenset(C)) for C, B in prec]
    )
    places = [[label for C in I for label in C].index(x) for x in client.labels]
    blocks = tuple(map(frozenset, I))
    return jc.Fragment(client.name, "paper", client.labels, blocks, order, basis=Q[places])


def recovered(world, recover, rows=None):
    """Fragments (of exact moments by default) and truths of all clients of a world."""
    clients = range(world.n_clients)
    return [recover(world.client(k, rows)) for k in clients], [world.truth(k) for k in clients]


def assert_blocks_are_true(fragment, truth):
    assert fragment.outcome.ok, fragment.outcome
    assert set(fragment.blocks) == set(truth.blocks)
    assert fragment.block_order == truth.block_order


def assert_same_row_spaces(fragment, blocks, Q, atol=1e-6):
    """Rows of a block are orthonormal, and unique up to a rotation within the block."""
    for block in blocks:
        rows = [fragment.index(x) for x in block]
        ours, other = fragment.basis[rows], Q[rows]
        np.testing.assert_allclose(ours.T @ ours, other.T @ other, atol=atol)


def assert_same_blocks_and_spaces(fragment, other, atol=1e-6):
    assert set(fragment.blocks) == set(other.blocks)
    assert fragment.block_order == other.block_order
    assert_same_row_spaces(fragment, other.blocks, other.basis, atol)
