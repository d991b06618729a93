"""A study whose lines contradict a linear system states nothing about ancestors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.suspicions import clients_against_linearity as leaning_clients
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.diagnostics.findings import finding


def curved_clients(world: jc.simulate.World, n: int, curved: bool) -> list[jc.Client]:
    """Rows of a system in which parents act through 2 tanh(z/2), or linearly."""
    above = (world.sem.A != 0).sum(axis=1)
    ancestors = np.linalg.matrix_power(np.eye(world.n_latent) + (world.sem.A != 0), 20) > 0
    causal = np.argsort(ancestors.sum(axis=1) + 1e-3 * above, kind="stable")
    clients = []
    for k in range(world.n_clients):
        view = world.view(k)
        rng = np.random.default_rng([world.seed, k])
        regimes = {}
        for label in (None, *(world.names[node] for node in view.nodes)):
            sem = world.sem if label is None else world.sem.changed(world.change(k, label))
            draw = rng.standard_normal if curved else partial(rng.laplace, scale=1 / np.sqrt(2))
            noise = draw(size=(n, world.n_latent))
            Z = sem.means + noise * np.sqrt(sem.variances)
            for i in causal:
                Z[:, i] += (2 * np.tanh(Z / 2) if curved else Z) @ sem.A[i]
            regimes[label] = Z[:, view.nodes] @ view.mixing.T
        clients.append(
            jc.Client.from_samples(
                view.name,
                observational=regimes.pop(None),
                interventions=regimes,
                n_latent=len(view.nodes),
            )
        )
    return clients


@pytest.mark.slow
def test_what_a_curved_system_seems_to_say_is_withheld():
    world = jc.simulate.random_world(16, 15, 0.6, 401)
    result = jc.recover(curved_clients(world, 10_000, curved=True))
    (said,) = [f for f in result.diagnostics if f.check == "not-linear"]
    assert said.client is None
    assert said.value > 1
    assert not result.order.pairs()
    assert len(result.order.undetermined()) == 16 * 15
    # More rows would not help; hard interventions that shift the mean would.
    found = jc.next_client(result.order, size=4)
    assert "hard interventions that shift the mean" in found.kinds
    assert found.withheld == tuple(sorted(result.fragments))
    assert not found.more_rows


@pytest.mark.slow
def test_a_linear_system_of_laplace_noise_is_not_withheld():
    world = jc.simulate.random_world(16, 15, 0.6, 401)
    result = jc.recover(curved_clients(world, 10_000, curved=False))
    assert "not-linear" not in {f.check for f in result.diagnostics}
    assert jc.metrics.global_f1(world.order, result.order) > 0.9


@pytest.mark.parametrize(("clients", "labels", "told"), [(1, 1, 0), (6, 1, 0), (6, 4, 6)])
def test_one_leaning_label_proves_nothing_at_many_clients_and_many_labels_do(clients, labels, told):
    world = jc.simulate.random_world(6, 6, 0.8, 3)
    fragments = [jc.recover_fragment(c) for c in world.clients(300, seed=0)]
    assert not leaning_clients(fragments)
    said = [
        with_leaning(f, f"z{1 + k % labels}") if k < clients else f for k, f in enumerate(fragments)
    ]
    assert len(leaning_clients(said)) == told


def test_lines_beside_regimes_with_second_targets_prove_nothing():
    world = jc.simulate.random_world(6, 6, 0.8, 3)
    fragments = [jc.recover_fragment(c) for c in world.clients(300, seed=0)]
    said = [with_leaning(f, f"z{1 + k % 4}") for k, f in enumerate(fragments)]
    second = Finding("off-target", "warning", "two targets", "Look.", regime="z1")
    unclean = [replace(f, findings=(*f.findings, second)) for f in said]
    assert leaning_clients(said)
    assert not leaning_clients(unclean)


def with_leaning(fragment: jc.Fragment, label: str) -> jc.Fragment:
    found = finding("leaning-lines", 9.0, 5.0, client=fragment.client, regime=label)
    return replace(fragment, findings=(*fragment.findings, found))


def test_sites_that_claim_leaning_lines_cannot_silence_the_others():
    world = jc.simulate.random_world(8, 10, 0.6, 402)
    fragments = [jc.recover_fragment(c) for c in world.clients(5_000)]
    honest = jc.assemble(fragments)
    told = [with_leaning(f, f"z{k + 1}") if k < 4 else f for k, f in enumerate(fragments)]
    order = jc.assemble(told)
    assert honest.pairs()
    assert order.pairs() == honest.pairs()


@pytest.mark.parametrize(("light", "unclear", "told"), [(6, 5, 5), (6, 2, 0), (2, 5, 0)])
def test_light_tails_and_unclear_regimes_of_most_clients_tell_the_same(light, unclear, told):
    world = jc.simulate.random_world(6, 6, 0.8, 3)
    fragments = [jc.recover_fragment(c) for c in world.clients(300, seed=0)]
    tails = Finding("light-tails", "warning", "light", "Look.")
    regime = Finding("unclear-regime", "error", "unclear", "Look.", regime="z1")
    said = [
        replace(f, findings=(tails,) * (k < light) + (regime,) * (k < unclear))
        for k, f in enumerate(fragments)
    ]
    assert len(leaning_clients(said)) == told


def test_bounded_noise_in_a_linear_system_has_light_tails_and_is_not_withheld():
    world = jc.simulate.random_world(8, 5, 0.8, 402)
    rng = np.random.default_rng(0)
    clients = []
    for k in range(world.n_clients):
        view, regimes = world.view(k), {}
        for label in (None, *(world.names[node] for node in view.nodes)):
            sem = world.sem if label is None else world.sem.changed(world.change(k, label))
            noise = rng.uniform(-np.sqrt(3), np.sqrt(3), (5_000, 8)) * np.sqrt(sem.variances)
            Z = np.linalg.solve(np.eye(8) - sem.A, noise.T).T
            regimes[label] = Z[:, view.nodes] @ view.mixing.T
        control = regimes.pop(None)
        clients.append(
            jc.Client.from_samples(view.name, observational=control, interventions=regimes)
        )
    result = jc.recover(clients)
    found = {f.check for f in result.diagnostics}
    assert "light-tails" in found
    assert "not-linear" not in found
    assert jc.metrics.global_f1(world.order, result.order) > 0.8
