"""The literal algorithms: correct where the paper proves it, strict elsewhere."""

import numpy as np
import pytest
from hypothesis import given

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.baseline import literal

from .clients import SEEDS, assert_blocks_are_true, clear_client, literally, mixed_by, with_regimes


@given(SEEDS)
def test_theorem_1_and_corollary_1_hold_for_exact_moments_of_random_clients(seed):
    client, truth = clear_client(seed)
    fragment = literally(client)
    assert_blocks_are_true(fragment, truth)
    assert jc.metrics.subspace_error([truth], [fragment]) < 1e-10
    assert jc.metrics.support_leakage(truth, fragment) == 0.0


def test_line_9_of_algorithm_1_keeps_a_part_of_an_ancestor_that_a_misses():
    # c -> b -> a. Rows of H for b and c are orthogonal, so a's changes involve b alone: 𝒜 = {b}.
    # The row of H for a is not orthogonal to that of c. Blocks and order are right all the same.
    A = [[0, 0.8, 0], [0, 0, -0.7], [0, 0, 0]]
    world = jc.simulate.world_from_graph(A, [range(3)], None, 0, names=["a", "b", "c"])
    truth = world.truth(0)
    H = {"a": [0.5, 0.6, 1.0], "b": [1.0, 0.0, 0.0], "c": [0.0, 1.0, 0.0]}
    G = np.linalg.inv([H[x] for x in truth.labels])
    client = mixed_by(world.client(0), truth, G)
    printed, ours = literally(client), baseline.recover_fragment(client)
    for fragment in (printed, ours):
        assert fragment.block_order == truth.block_order
    a, c = (client.labels.index(x) for x in "ac")
    np.testing.assert_allclose(abs(printed.basis[a] @ printed.basis[c]), 0.6 / 1.36**0.5)
    np.testing.assert_allclose(ours.basis[a] @ ours.basis[c], 0.0, atol=1e-12)


def test_the_ratio_is_of_singular_values_not_of_their_squares():
    assert literal.rho(np.diag([3.0, 2.0, 1.0]), 1) == pytest.approx(0.5)
    assert literal.rho(np.zeros((3, 3)), 1) == 1.0


def test_algorithm_1_fs_removes_a_block_only_above_the_threshold():
    # The change off the other blocks has σ = (3, 1), so its ratio is exactly 3/4.
    Theta = {0: np.zeros((2, 2)), "a": np.diag([1.0, 0.0]), "b": np.diag([3.0, 1.0])}
    q = {"a": np.array([0.0, 1.0])}
    assert literal.id_block_ancestor_fs(("b",), Theta, [("a",)], q, 0.25)[1] == [("a",)]
    assert literal.id_block_ancestor_fs(("b",), Theta, [("a",)], q, 0.25 + 1e-9)[1] == []


def test_algorithm_2_fs_accepts_a_set_at_the_threshold():
    # ρ₁ of b is 3/4 and that of a is 1/2: at τ = 1/4 the block {b} passes, just below it does not.
    Theta = {0: np.zeros((2, 2)), "a": np.diag([1.0, 1.0]), "b": np.diag([3.0, 1.0])}
    assert ("b",) in literal.id_block_causal_order_fs(Theta, 0.25)[0]
    assert literal.id_block_causal_order_fs(Theta, 0.25 - 1e-9)[0] == [("a", "b")]


def test_two_labels_with_one_target_stop_the_loop_that_would_not_end():
    client = jc.simulate.world_from_graph(np.zeros((3, 3)), [range(3)], None, 0).client(0)
    a, b, _ = client.labels
    broken = with_regimes(client, {b: client.second_moments(a)[0]})
    with pytest.raises(jc.InputError, match=r"no set of the labels .* latent"):
        literally(broken)
