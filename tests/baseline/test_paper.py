"""What the paper states and proves, each under its number (the others are in `test_literal`)."""

import numpy as np
import pytest
from hypothesis import given

import jigsaw_crl as jc
from jigsaw_crl.baseline import literal
from jigsaw_crl.truth.simulate import SEM, Change
from jigsaw_crl.truth.simulate.sampling import Regime

from .clients import SEEDS, literally, precisions, small_world


def client_and_truth(seed):
    """The world of `small_world`, its client's precisions on features, and the truth."""
    world = small_world(seed)
    return world, precisions(world.client(0)), world.truth(0)


def assert_in_span(rows, directions, scale):
    """Rows lie in the span of some directions, up to rounding."""
    basis = np.linalg.svd(directions, full_matrices=False)[2]
    rest = rows - rows @ basis.T @ basis
    assert np.abs(rest).max() <= 1e-7 * scale


def covariance(sem, world, mixing, change=None):
    """Exact covariance of the features of client 0."""
    regime = Regime.of(sem if change is None else sem.changed(change), world.view(0).nodes, mixing)
    _, C = regime.latent_moments()
    return mixing @ C @ mixing.T


@given(SEEDS)
def test_appendix_b_noise_variances_of_one_give_the_same_features(seed):
    rng = np.random.default_rng(seed)
    shape = small_world(seed)
    variances = rng.uniform(0.3, 3.0, shape.n_latent)
    nodes = shape.view(0).nodes
    world = jc.simulate.world_from_graph(shape.sem.A, [nodes], None, seed, variances=variances)
    # D = Σ'^(−1/2), A = D A' D⁻¹, and H = D H': the mixing is divided by D.
    D, G = variances**-0.5, world.view(0).mixing
    sem = SEM(D[:, None] * world.sem.A / D, np.ones(len(D)), np.zeros(len(D)))
    own = G / D[world.view(0).nodes]
    np.testing.assert_allclose(covariance(world.sem, world, G), covariance(sem, world, own))
    for label in world.truth(0).labels:
        given_change = world.change(0, label)
        t = given_change.target
        rescaled = Change(t, D[t] * given_change.weights / D, D[t] ** 2 * given_change.variance)
        np.testing.assert_allclose(
            covariance(world.sem, world, G, given_change), covariance(sem, world, own, rescaled)
        )


@given(SEEDS)
def test_proposition_1_the_client_has_a_linear_system_of_its_own(seed):
    world = small_world(seed)
    truth, nodes = world.truth(0), world.view(0).nodes
    own = np.linalg.inv(truth.marginal.precision())
    np.testing.assert_allclose(own, world.sem.covariance()[np.ix_(nodes, nodes)], atol=1e-9)
    assert truth.order == world.order.restrict(truth.labels)


@given(SEEDS)
def test_proposition_2_blocks_hide_no_ancestor_and_their_parents_show_one(seed):
    truth = small_world(seed, 14).truth(0)
    for above in truth.blocks:
        for below in truth.blocks:
            if above == below or truth.block_order.is_ancestor(above, below):
                continue
            assert not any(truth.order.is_ancestor(u, v) for u in above for v in below)
    for above, below in truth.block_order.covers():
        assert any((u, v) in truth.parents for u in above for v in below)


@given(SEEDS)
def test_proposition_3_rows_of_h_lie_in_the_rows_of_q_of_ancestor_blocks(seed):
    truth = small_world(seed).truth(0)
    H = np.linalg.pinv(truth.mixing)
    for i, label in enumerate(truth.labels):
        assert_in_span(H[i], truth.Q[at_or_above(truth, label)], np.abs(H).max())


def at_or_above(truth, label):
    """Positions of the labels in the block of a label, and in the ancestors of this block."""
    block = truth.block_of(label)
    blocks = {block, *truth.block_order.ancestors(block)}
    return [i for i, other in enumerate(truth.labels) if truth.block_of(other) in blocks]


@given(SEEDS)
def test_lemma_1_an_intervention_changes_the_precision_in_two_directions(seed):
    world, Theta, truth = client_and_truth(seed)
    A, nodes = world.sem.A, world.view(0).nodes
    hidden = np.setdiff1d(np.arange(world.n_latent), nodes)
    own, H = truth.marginal, np.linalg.pinv(truth.mixing)
    # (I − A_MM)⁻¹, and B = A_OM (I − A_MM)⁻¹.
    through = np.linalg.inv(np.eye(len(hidden)) - A[np.ix_(hidden, hidden)])
    B = A[np.ix_(nodes, hidden)] @ through
    left = H.T @ (np.eye(len(nodes)) - own.A).T @ np.linalg.inv(own.Sigma)
    for label in truth.labels:
        weights = world.change(0, label).weights
        d = weights[nodes] + (through @ A[np.ix_(hidden, nodes)]).T @ weights[hidden]
        u = B * world.sem.variances[hidden] @ through.T @ weights[hidden]
        e = np.eye(len(nodes))[truth.labels.index(label)]
        directions = np.array([left @ e, left @ u + H.T @ d])
        scale = max(np.abs(T).max() for T in Theta.values())
        assert_in_span(Theta[label] - Theta[0], directions, scale)


@given(SEEDS)
def test_lemma_2_the_change_lies_in_the_rows_of_the_block_and_its_ancestors(seed):
    _, Theta, truth = client_and_truth(seed)
    scale = max(np.abs(T).max() for T in Theta.values())
    for label in truth.labels:
        assert_in_span(Theta[label] - Theta[0], truth.Q[at_or_above(truth, label)], scale)


def covered(world):
    """Assumption 3: some client has both ends of each Hasse edge as singleton blocks, one above."""
    truths = [world.truth(k) for k in range(world.n_clients)]
    seen = {
        (a, d) for t in truths for above, below in t.block_order.covers() if len(above | below) == 2
        for a in above for d in below
    }  # fmt: skip
    return world.order.covers() <= seen


@pytest.mark.parametrize("name", ["A", "B", "C", *range(6)])
def test_theorem_2_fragments_of_covering_clients_give_the_global_order(name):
    if isinstance(name, str):
        world = jc.simulate.setting(name, 0)
    else:
        seeds = range(1_000 * name, 1_000 * (name + 1))
        worlds = (jc.simulate.random_world(5, 4, 0.7, seed) for seed in seeds)
        world = next(w for w in worlds if covered(w) and len(w.order.pairs()) > 3)
    assert covered(world)
    fragments = [literally(client) for client in world.clients()]
    printed = []
    for fragment in fragments:
        blocks = [tuple(sorted(b)) for b in fragment.blocks]
        below = {(tuple(sorted(d)), tuple(sorted(a))) for a, d in fragment.block_order.pairs()}
        printed.append((blocks, below))
    found = literal.id_global_causal_order(printed)
    assert {(j, i) for i, j in found} == set(world.order.pairs())


def test_theorem_2_needs_its_assumption():
    # One client sees all latents but one, which joins the others in one block.
    A = [[0, 0, 0.8], [0, 0, -0.9], [0, 0, 0]]
    world = jc.simulate.world_from_graph(A, [[0, 1], [1, 2]], None, 0, names=["a", "b", "c"])
    assert not covered(world)
    order = jc.recover(world.clients(), method="paper").order
    assert order.pairs() < world.order.pairs()
