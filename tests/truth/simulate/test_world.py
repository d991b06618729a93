"""Worlds: what clients see, what is true, and that both fit together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.moments.regime import fixed_rank_pinv
from jigsaw_crl.truth.simulate import (
    INTERVENTIONS,
    SETTINGS,
    random_world,
    setting,
    world_from_graph,
)

worlds = st.builds(
    random_world,
    n_latent=st.integers(2, 12),
    n_clients=st.integers(1, 3),
    coverage=st.sampled_from([0.3, 0.6, 0.9, 1.0]),
    seed=st.integers(0, 2**32 - 1),
    intervention=st.sampled_from(sorted(INTERVENTIONS)),
)


def precision(covariance, rank):
    return fixed_rank_pinv(covariance, rank)


@given(worlds)
@settings(max_examples=60, deadline=None)
def test_block_rq_has_the_supports_of_its_definition(world):
    for k in range(world.n_clients):
        truth = world.truth(k)
        assert np.allclose(truth.R @ truth.Q, truth.H, atol=1e-9 * np.abs(truth.H).max())
        assert np.allclose(np.linalg.norm(truth.Q, axis=1), 1)
        for i, row in enumerate(truth.labels):
            for j, column in enumerate(truth.labels):
                own, other = truth.block_of(row), truth.block_of(column)
                if truth.block_order.is_ancestor(other, own):
                    assert abs(truth.Q[i] @ truth.Q[j]) < 1e-10
                elif own != other:
                    assert truth.R[i, j] == 0


@given(worlds)
@settings(max_examples=60, deadline=None)
def test_an_intervention_changes_the_precision_by_rank_two_at_most(world):
    for k in range(world.n_clients):
        client = world.client(k)
        p = client.n_latent
        before = precision(client.control_second_moment(), p)
        for label in client.labels:
            after = precision(client.second_moments(label)[0], p)
            sizes = np.linalg.svd(after - before, compute_uv=False)
            assert (sizes[2:] <= 1e-8 * max(np.abs(before).max(), np.abs(after).max())).all()


@given(worlds)
@settings(max_examples=40, deadline=None)
def test_the_precision_is_the_one_of_the_marginal_system(world):
    for k in range(world.n_clients):
        truth, client = world.truth(k), world.client(k)
        expected = truth.H.T @ truth.marginal.precision() @ truth.H
        got = precision(client.control_second_moment(), client.n_latent)
        assert np.allclose(got, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


@given(worlds)
@settings(max_examples=40, deadline=None)
def test_each_client_order_is_the_global_one_restricted(world):
    for k in range(world.n_clients):
        truth = world.truth(k)
        assert truth.order == world.order.restrict(truth.labels)
        assert all(any(d <= b for b in truth.blocks) for d in truth.districts)
        assert all(any(s <= d for d in truth.districts) for s in truth.spouses)


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


def test_label_order_says_nothing_about_the_graph():
    agree = []
    for seed in range(60):
        world = random_world(10, 2, 0.8, seed)
        assert world.labels == tuple(sorted(world.labels))
        agree += [a < d for a, d in world.order.pairs()]
        own = world.client(0).labels
        agree += [own.index(a) < own.index(d) for a, d in world.truth(0).order.pairs()]
    # About 2,000 pairs, dependent within a world: a fair coin stays well inside these bounds.
    assert 0.42 < np.mean(agree) < 0.58
    unshuffled = random_world(10, 2, 0.8, 0, shuffle=False)
    assert all(a > d for a, d in unshuffled.order.pairs())


def test_the_same_seed_gives_the_same_world_and_sample():
    for noise in ("gaussian", "laplace"):
        first, again = (
            random_world(6, 2, 0.7, seed=9).client(1, 200, noise, seed=3) for _ in range(2)
        )
        other = random_world(6, 2, 0.7, seed=9).client(1, 200, noise, seed=4)
        assert first.labels == again.labels
        assert np.array_equal(first.control.covariance, again.control.covariance)
        assert not np.array_equal(first.control.covariance, other.control.covariance)
        for label in first.labels:
            assert np.array_equal(
                first.interventions[label][0].covariance, again.interventions[label][0].covariance
            )


def test_interventions_do_not_depend_on_the_sample_size_and_differ_between_clients():
    world = setting("A", seed=2)
    shared = next(iter(set(world.truth(0).labels) & set(world.truth(1).labels)))
    here, there = world.change(0, shared), world.change(1, shared)
    assert here.variance != there.variance
    assert world.change(0, shared).variance == here.variance
    assert 2 <= here.variance <= 3
    parents = world.sem.A[here.target] != 0
    assert ((here.weights >= 2) & (here.weights <= 3) == parents).all()


def test_a_mean_shift_acts_on_the_second_moment_about_the_control_mean():
    world = setting("A", seed=0, intervention="mean-only")
    client = world.client(0)
    for label in client.labels:
        change = client.second_moments(label)[0] - client.control_second_moment()
        assert np.linalg.matrix_rank(change, tol=1e-9) == 1


def test_a_client_may_intervene_on_some_of_its_latents_only():
    world = setting("C", seed=0)
    some = world.truth(0).labels[:3]
    client = world.client(0, 500, labels=some)
    assert client.labels == some
    assert client.n_latent == 8
    whole = world.client(0)
    part = world.client(0, labels=some)
    for label in some:
        assert np.array_equal(part.second_moments(label)[0], whole.second_moments(label)[0])
    with pytest.raises(InputError, match="cannot be intervened on"):
        world.client(0, labels=["nowhere"])


def test_doses_are_several_regimes_of_one_label_with_their_own_draws():
    client = setting("A", seed=0).client(0, doses=2)
    for label in client.labels:
        one, two = client.second_moments(label)
        assert not np.allclose(one, two)


def test_sample_sizes_may_differ_between_regimes():
    world = setting("A", seed=0)
    sizes = {"control": 1000, **{x: 100 + i for i, x in enumerate(world.truth(0).labels)}}
    assert world.client(0, sizes).n_samples == sizes
    del sizes[world.truth(0).labels[0]]
    with pytest.raises(InputError, match="sample size is missing"):
        world.client(0, sizes)


def test_rows_have_the_moments_of_the_client():
    world = setting("A", seed=3, intervention="mean-noise")
    exact = world.client(2)
    for noise in ("gaussian", "laplace"):
        control, labelled = world.rows(2, 40_000, noise, seed=1)
        assert control.shape == (40_000, 7)
        assert tuple(labelled) == exact.labels
        for label, rows in labelled.items():
            truth = exact.interventions[label][0]
            scale = np.sqrt(np.diag(truth.covariance))
            assert (np.abs(rows.mean(axis=0) - truth.mean) < 0.05 * scale).all()
            assert np.allclose(
                np.cov(rows.T) / np.outer(scale, scale),
                truth.covariance / np.outer(scale, scale),
                atol=0.08,
            )


def test_named_labels_and_given_weights_are_kept():
    A = np.zeros((3, 3))
    A[1, 0], A[2, 1] = 0.8, -0.7
    names = ["rain", "river", "flood"]
    world = world_from_graph(
        A,
        [["rain", "flood"], ["river", "flood", "rain"]],
        None,
        5,
        names=names,
        variances=[1, 2, 3],
    )
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
        (lambda: random_world(5, 3, 1.5), "coverage"),
        (lambda: random_world(5, 3, float("nan")), "coverage"),
        (lambda: random_world(5, 3, 0.5, seed=-1), "seed"),
        (lambda: random_world(5, 3, 0.5, intervention="odd"), "no intervention protocol"),
        (lambda: setting("A").client(5), "no client 5"),
        (lambda: setting("A").client(-1), "no client -1"),
        (lambda: setting("A").truth(7), "no client 7"),
        (lambda: setting("A").client(0, 4), "too few"),
        (lambda: setting("A").client(0, 100, "cauchy"), "no noise family"),
        (lambda: setting("A").client(0, 100, seed=-2), "seed"),
        (lambda: setting("A").client(0, 100, doses=0), "doses"),
        (lambda: setting("A").rows(0, 2), "too few"),
        (lambda: setting("A").node("q"), "no label"),
        (lambda: world_from_graph([[0, 1], [1, 0]], [[0, 1]], None), "cycle"),
        (lambda: world_from_graph(np.zeros((2, 3)), [[0, 1]], None), "shape"),
        (lambda: world_from_graph(np.zeros((2, 2)), [[0, 3]], None), "node set"),
        (lambda: world_from_graph(np.zeros((2, 2)), [], None), "node sets"),
        (lambda: world_from_graph(np.zeros((2, 2)), [[0, 1]], [1]), "cannot determine"),
        (lambda: world_from_graph(np.zeros((2, 2)), [[0]], None, names=["a"]), "1 element "),
        (lambda: world_from_graph(np.zeros((2, 2)), [[0]], None, variances=[1, 0]), "variances"),
        (lambda: world_from_graph([[0, np.inf], [0, 0]], [[0]], None), "finite"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(call, says):
    with pytest.raises(InputError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)
