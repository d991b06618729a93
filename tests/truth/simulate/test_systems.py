"""Systems that are not linear: their scale, what hard interventions cut, and what is refused."""

import numpy as np
import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.simulate import SYSTEMS, Intervention, random_world

SET = Intervention("set", shift=1.0)


def latents(world, regime, rows=20_000):
    """The latents of the only client, in the order of the nodes."""
    view = world.view(0)
    X = world.sample(0, rows, seed=7).regimes[regime]
    Z = np.empty((rows, world.n_latent))
    Z[:, view.nodes] = X @ np.linalg.pinv(view.mixing).T
    return Z


@pytest.mark.parametrize("system", SYSTEMS)
def test_every_system_has_the_scale_of_the_linear_one(system):
    world = random_world(8, 1, 1.0, seed=3, system=system, intervention=SET)
    Z, spread = latents(world, "control"), np.sqrt(np.diag(world.sem.covariance()))
    assert np.abs(Z.mean(axis=0) / spread).max() < 0.05
    assert np.abs(Z.std(axis=0) / spread - 1).max() < 0.15


@pytest.mark.parametrize("system", [name for name in SYSTEMS if name != "linear"])
def test_a_hard_intervention_moves_descendants_only_and_not_in_proportion(system):
    world = random_world(8, 1, 1.0, seed=3, system=system, intervention=SET)
    # The label with the most descendants.
    label = max(world.labels, key=lambda x: len(world.order.descendants(x)))
    node, spread = world.node(label), np.sqrt(np.diag(world.sem.covariance()))
    Z, Z0 = latents(world, label), latents(world, "control")
    below = [world.node(x) for x in world.order.descendants(label)]
    others = [i for i in range(8) if i not in below and i != node]
    assert abs(abs(Z[:, node].mean()) / spread[node] - 1) < 0.03
    assert abs(Z[:, node].std() / spread[node] - 0.7) < 0.03
    # Heavy tails: a mean of 20,000 rows is known to a few hundredths.
    assert np.abs((Z[:, others].mean(axis=0)) / spread[others]).max() < 0.05
    # What is left of a child beside its linear part depends on its causes.
    children = [i for i in below if world.sem.A[i, node] != 0]
    child = max(children, key=lambda i: np.count_nonzero(world.sem.A[i]))
    causes = Z0[:, world.sem.A[child] != 0]
    weights, *_ = np.linalg.lstsq(causes, Z0[:, child], rcond=None)
    rest = Z0[:, child] - causes @ weights
    joint = np.corrcoef(rest, causes.prod(axis=1))[0, 1]
    products = np.abs([joint] + [np.corrcoef(rest**k, c**m)[0, 1] for c in causes.T for k, m in
                       ((1, 2), (1, 3), (2, 1), (2, 2))])  # fmt: skip
    assert products.max() > 0.05


def test_a_mixed_system_has_several_responses_and_the_seed_decides():
    first, again, other = (
        latents(random_world(6, 1, 1.0, seed=s, system="mixed", intervention=SET), "control")
        for s in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_what_a_system_that_is_not_linear_cannot_give_is_refused():
    world = random_world(5, 1, 1.0, system="tanh")
    with pytest.raises(InputError, match="no exact moments"):
        world.client(0)
    with pytest.raises(InputError, match="depend on the dose"):
        world.effects()
    with pytest.raises(InputError, match="system"):
        random_world(5, 1, 1.0, system="cubic")
    with pytest.raises(InputError, match="already"):
        world.client(0, 100, departures=["nonlinear-system=0.5"])
