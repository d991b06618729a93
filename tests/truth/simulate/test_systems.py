"""Systems that are not linear: their scale, and what is refused."""

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
    linear = latents(random_world(8, 1, 1.0, seed=3, intervention=SET), "control")
    assert np.allclose(Z, linear) == (system == "linear")


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_hard_intervention_moves_its_target_and_descendants_alone(system):
    world = random_world(8, 1, 1.0, seed=3, system=system, intervention=SET)
    label = max(world.labels, key=lambda x: len(world.order.descendants(x)))
    node, spread = world.node(label), np.sqrt(np.diag(world.sem.covariance()))
    shift = latents(world, label).mean(axis=0) / spread
    below = [world.node(x) for x in world.order.descendants(label)]
    assert abs(abs(shift[node]) - 1) < 0.03
    assert np.abs(shift[below]).max() > 0.1
    # Heavy tails: a mean of 20,000 rows is known to a few hundredths.
    assert np.abs(np.delete(shift, [node, *below])).max() < 0.05


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
