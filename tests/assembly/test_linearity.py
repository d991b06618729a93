"""A study whose lines contradict a linear system states nothing about ancestors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.suspicions import clients_against_linearity
from jigsaw_crl.base.findings import Finding


def laplace(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return rng.laplace(scale=1 / np.sqrt(2), size=size)


def uniform(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    return rng.uniform(-np.sqrt(3), np.sqrt(3), size)


def clients_of(
    world: jc.simulate.World,
    n: int,
    draw: Callable[[np.random.Generator, tuple[int, int]], np.ndarray],
    response: Callable[[np.ndarray], np.ndarray] = lambda z: z,
) -> list[jc.Client]:
    """Rows of a system in which parents act through `response`."""
    clients = []
    for k in range(world.n_clients):
        view, rng, regimes = world.view(k), np.random.default_rng([world.seed, k]), {}
        for label in (None, *(world.names[node] for node in view.nodes)):
            sem = world.sem if label is None else world.sem.changed(world.change(k, label))
            Z = sem.means + draw(rng, (n, world.n_latent)) * np.sqrt(sem.variances)
            for node in map(world.node, world.order.topological()):
                Z[:, node] += response(Z) @ sem.A[node]
            regimes[label] = Z[:, view.nodes] @ view.mixing.T
        control, size = regimes.pop(None), len(view.nodes)
        clients.append(
            jc.Client.from_samples(
                view.name, observational=control, interventions=regimes, n_latent=size
            )
        )
    return clients


@pytest.mark.slow
def test_what_a_curved_system_seems_to_say_is_withheld():
    world = jc.simulate.random_world(16, 15, 0.6, 401)
    normal = np.random.Generator.standard_normal
    result = jc.recover(clients_of(world, 10_000, normal, lambda z: 2 * np.tanh(z / 2)))
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
@pytest.mark.parametrize(
    ("size", "draw", "n", "least"),
    [((16, 15, 0.6, 401), laplace, 10_000, 0.9), ((8, 5, 0.8, 402), uniform, 5_000, 0.8)],
)
def test_a_linear_system_of_other_noise_is_not_withheld(size, draw, n, least):
    world = jc.simulate.random_world(*size)
    result = jc.recover(clients_of(world, n, draw))
    found = {f.check for f in result.diagnostics}
    # Bounded noise has light tails.
    assert ("light-tails" in found) == (draw is uniform)
    assert "not-linear" not in found
    assert jc.metrics.global_f1(world.order, result.order) > least


def found(check: str, label: str | None = None) -> Finding:
    return Finding(check, "warning", "It looks odd.", "Look.", regime=label)


def with_findings(fragment: jc.Fragment, *said: Finding) -> jc.Fragment:
    return replace(fragment, findings=(*fragment.findings, *said))


@pytest.mark.parametrize(
    ("leaning", "labels", "second", "light", "unclear", "told"),
    [
        # One leaning label proves nothing, at many clients neither; many labels do.
        (0, 1, 0, 0, 0, 0),
        (1, 1, 0, 0, 0, 0),
        (6, 1, 0, 0, 0, 0),
        (6, 4, 0, 0, 0, 6),
        # Beside regimes with second targets lines prove nothing.
        (6, 4, 6, 0, 0, 0),
        # Light tails and unclear regimes of most clients tell the same.
        (0, 1, 0, 6, 5, 5),
        (0, 1, 0, 6, 2, 0),
        (0, 1, 0, 2, 5, 0),
    ],
)
def test_findings_of_most_clients_and_labels_contradict_a_linear_system(
    leaning, labels, second, light, unclear, told
):
    world = jc.simulate.random_world(6, 6, 0.8, 3)
    said = []
    for k, client in enumerate(world.clients(300, seed=0)):
        own = [found("leaning-lines", f"z{1 + k % labels}")] * (k < leaning)
        own += [found("off-target", "z1")] * (k < second)
        own += [found("light-tails")] * (k < light) + [found("unclear-regime", "z1")] * (
            k < unclear
        )
        said.append(with_findings(jc.recover_fragment(client), *own))
    assert len(clients_against_linearity(said)) == told


def test_sites_that_claim_leaning_lines_cannot_silence_the_others():
    world = jc.simulate.random_world(8, 10, 0.6, 402)
    fragments = [jc.recover_fragment(c) for c in world.clients(5_000)]
    honest = jc.assemble(fragments)
    told = [
        with_findings(f, found("leaning-lines", f"z{k + 1}")) if k < 4 else f
        for k, f in enumerate(fragments)
    ]
    assert honest.pairs()
    assert jc.assemble(told).pairs() == honest.pairs()
