"""The data of a world's clients, and that they agree with the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from jigsaw_crl.base.algebra import fixed_rank_pinv
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.simulate import Change, Intervention, random_world, setting

from .strategies import worlds


@given(worlds)
def test_an_intervention_changes_the_precision_by_rank_two_at_most(world):
    for k in range(world.n_clients):
        client = world.client(k)
        p = client.n_latent
        before = fixed_rank_pinv(client.control_second_moment(), p)
        for label in client.labels:
            after = fixed_rank_pinv(client.second_moments(label)[0], p)
            sizes = np.linalg.svd(after - before, compute_uv=False)
            assert (sizes[2:] <= 1e-8 * max(np.abs(before).max(), np.abs(after).max())).all()


@given(worlds)
def test_the_precision_is_the_one_of_the_marginal_system(world):
    for k in range(world.n_clients):
        truth, client = world.truth(k), world.client(k)
        expected = truth.H.T @ truth.marginal.precision() @ truth.H
        got = fixed_rank_pinv(client.control_second_moment(), client.n_latent)
        assert np.allclose(got, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


@given(worlds)
def test_each_client_order_is_the_global_one_restricted(world):
    for k in range(world.n_clients):
        truth = world.truth(k)
        assert truth.order == world.order.restrict(truth.labels)
        assert all(any(d <= b for b in truth.blocks) for d in truth.districts)
        assert all(any(s <= d for d in truth.districts) for s in truth.spouses)


@given(worlds)
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


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: setting("A").client(5), "no client 5"),
        (lambda: setting("A").client(-1), "no client -1"),
        (lambda: setting("A").truth(7), "no client 7"),
        (lambda: setting("A").client(0, 4), "too few"),
        (lambda: setting("A").client(0, 100, "cauchy"), "no noise family"),
        (lambda: setting("A").client(0, 100, seed=-2), "seed"),
        (lambda: setting("A").client(0, 100, doses=0), "doses"),
        (lambda: setting("A").rows(0, 2), "too few"),
        (lambda: setting("A").node("q"), "no label"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(call, says):
    with pytest.raises(InputError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_effects_are_what_a_push_does_in_standard_deviations():
    world = random_world(7, 3, 0.6, 3, intervention=Intervention("hard", shift=1.0))
    effects = world.effects()
    deviation = np.sqrt(np.diag(world.sem.covariance()))
    for j, cause in enumerate(effects.labels):
        node = world.node(cause)
        # Push the noise of one latent by one of its standard deviations, in its direction.
        direction = np.sign(world.change(0, cause).mean)
        push = Change(node, np.zeros(7), 0.0, direction * deviation[node])
        moved = world.sem.changed(push).mean() / deviation
        for i, effect in enumerate(effects.labels):
            towards = np.sign(world.change(1, effect).mean)
            assert effects.total[j, i] == pytest.approx(towards * moved[world.node(effect)])
    assert np.array_equal(effects.total != 0, world.order.matrix | np.eye(7, dtype=bool))


def test_direct_effects_are_those_of_the_latents_that_are_asked_for():
    world = random_world(7, 3, 0.6, 3, intervention=Intervention("hard", shift=1.0))
    whole = world.effects()
    edges = {(world.names[j], world.names[i]) for i, j in np.argwhere(world.sem.A != 0)}
    named = {(whole.labels[a], whole.labels[d]) for a, d in np.argwhere(whole.direct)}
    assert named == edges
    for k in range(3):
        truth = world.truth(k)
        some = world.effects(truth.labels)
        assert some.labels == truth.labels
        assert np.allclose(np.eye(len(some.labels)) - np.linalg.inv(some.total), some.direct)
        named = {(some.labels[a], some.labels[d]) for a, d in np.argwhere(some.direct)}
        assert named == truth.parents


def test_without_a_shift_every_latent_grows_in_its_own_direction():
    world = random_world(5, 2, 0.8, 4, intervention="hard")
    deviation = np.sqrt(np.diag(world.sem.covariance()))
    nodes = [world.node(label) for label in world.labels]
    raw = (world.sem.A * deviation / deviation[:, None])[np.ix_(nodes, nodes)].T
    assert np.allclose(world.effects().direct, raw)
    with pytest.raises(InputError, match="no label"):
        world.effects(["nowhere"])
