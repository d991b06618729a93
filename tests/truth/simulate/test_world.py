"""The data of a world's clients, and that they agree with the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.algebra import fixed_rank_pinv
from jigsaw_crl.truth.simulate import FAMILIES, INTERVENTIONS, Change, Intervention, random_world

worlds = st.builds(
    random_world,
    n_latent=st.integers(2, 12),
    n_clients=st.integers(1, 3),
    coverage=st.sampled_from([0.3, 0.6, 0.9, 1.0]),
    seed=st.integers(0, 2**32 - 1),
    graph=st.sampled_from(sorted(FAMILIES)),
    intervention=st.sampled_from(sorted(INTERVENTIONS)),
)


@given(worlds)
def test_the_precision_is_the_one_of_the_marginal_system(world):
    for k in range(world.n_clients):
        truth, client = world.truth(k), world.client(k)
        H = np.linalg.pinv(truth.mixing)
        expected = H.T @ truth.marginal.precision() @ H
        got = fixed_rank_pinv(client.control_second_moment, client.n_latent)
        assert np.allclose(got, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


@given(worlds)
def test_block_rq_has_the_supports_of_its_definition(world):
    for k in range(world.n_clients):
        truth = world.truth(k)
        H = np.linalg.pinv(truth.mixing)
        R = H @ np.linalg.pinv(truth.Q)
        assert np.allclose(R @ truth.Q, H, atol=1e-9 * np.abs(H).max())
        assert np.allclose(np.linalg.norm(truth.Q, axis=1), 1)
        for i, row in enumerate(truth.labels):
            for j, column in enumerate(truth.labels):
                own, other = truth.block_of(row), truth.block_of(column)
                if truth.block_order.is_ancestor(other, own):
                    assert abs(truth.Q[i] @ truth.Q[j]) < 1e-10
                elif own != other:
                    assert abs(R[i, j]) < 1e-9 * np.abs(R).max()


def test_effects_are_what_a_push_does_in_standard_deviations():
    world = random_world(7, 3, 0.6, 3, intervention=Intervention("hard", shift=1.0))
    effects = world.effects()
    deviation = np.sqrt(np.diag(world.sem.covariance()))
    for j, cause in enumerate(effects.labels):
        node = world.node(cause)
        # Push the noise of one latent by one of its standard deviations, in its direction.
        direction = np.sign(world.change(0, cause).mean)
        push = Change(node, np.zeros(7), 0.0, direction * deviation[node])
        pushed = world.sem.changed(push)
        moved = pushed.total_effects() @ pushed.means / deviation
        for i, effect in enumerate(effects.labels):
            towards = np.sign(world.change(1, effect).mean)
            assert effects.total[j, i] == pytest.approx(towards * moved[world.node(effect)])
    assert np.array_equal(effects.total != 0, world.order.matrix | np.eye(7, dtype=bool))
