"""Algorithm 3 and the choice of τ."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc
from jigsaw_crl import baseline
from jigsaw_crl.base.errors import InputError


def fragment(client, blocks, *pairs):
    """A fragment from blocks written as strings of one-letter labels."""
    sets = {b: frozenset(b) for b in blocks}
    order = jc.PartialOrder.from_pairs(sets.values(), [(sets[a], sets[d]) for a, d in pairs])
    return jc.Fragment(client, "paper", tuple("".join(blocks)), tuple(sets.values()), order)


def test_parents_of_several_clients_are_joined_and_closed():
    order = baseline.assemble_pairs(
        [fragment("1", ["a", "b"], ("a", "b")), fragment("2", ["b", "c"], ("b", "c"))]
    )
    assert order.labels == ("a", "b", "c")
    assert order.pairs == {("a", "b"), ("b", "c"), ("a", "c")}
    assert order.is_order


def test_blocks_of_several_labels_say_nothing():
    order = baseline.assemble_pairs([fragment("1", ["a", "bc"], ("a", "bc"))])
    assert order.labels == ("a", "b", "c")
    assert order.pairs == frozenset()


def test_a_relation_that_runs_through_a_larger_block_is_not_used():
    # w -> v2, v1 -> u and v1 <-> v2: {w} precedes {u} in the closure, yet w is no ancestor of u.
    given = fragment("1", ["w", "xy", "u"], ("w", "xy"), ("xy", "u"))
    assert given.is_block_ancestor("w", "u")
    assert baseline.assemble_pairs([given]).pairs == frozenset()


def test_that_relation_really_occurs_and_really_is_false():
    A = [[0, 0, 0, 0, 0], [0.8, 0, 0, 0, -0.9], [0, 0, 0, 0, 0.7], [0, 0, -0.8, 0, 0], [0] * 5]
    names = ["w", "v2", "v1", "u", "hidden"]
    world = jc.simulate.world_from_graph(A, [["w", "v2", "v1", "u"]], None, 0, names=names)
    found = baseline.recover_fragment(world.client(0))
    assert set(found.blocks) == {frozenset({"w"}), frozenset({"v1", "v2"}), frozenset({"u"})}
    assert found.is_block_ancestor("w", "u")
    assert not world.order.is_ancestor("w", "u")
    assert baseline.assemble_pairs([found]).pairs == frozenset()


def test_a_contradiction_is_reported_with_its_labels_and_does_not_stop_the_rest():
    order = baseline.assemble_pairs(
        [
            fragment("1", ["a", "b", "x", "y"], ("a", "b"), ("x", "y")),
            fragment("2", ["b", "c"], ("b", "c")),
            fragment("3", ["c", "a", "d"], ("c", "a"), ("c", "d")),
        ]
    )
    assert order.cyclic == (frozenset("abc"),)
    assert not order.is_order
    assert {("a", "b"), ("b", "a"), ("c", "d"), ("a", "d"), ("x", "y")} <= order.pairs
    assert all(a != d for a, d in order.pairs)


def test_the_order_of_the_fragments_does_not_matter():
    parts = [
        fragment("1", ["a", "b"], ("a", "b")),
        fragment("2", ["d", "c"], ("c", "d")),
        fragment("3", ["b", "c"], ("b", "c")),
    ]
    assert baseline.assemble_pairs(parts) == baseline.assemble_pairs(parts[::-1])


def test_nothing_to_assemble_is_an_error():
    with pytest.raises(InputError, match="no fragment"):
        baseline.assemble_pairs([])


def test_the_threshold_of_highest_mean_score_is_chosen():
    runs = [lambda tau: -((tau - 0.02) ** 2), lambda tau: -((tau - 0.04) ** 2)]
    assert baseline.calibrate_tau(runs) == 0.03
    assert baseline.calibrate_tau(iter(runs), grid=[0.01, 0.2]) == 0.01


def test_among_equal_scores_the_threshold_nearest_to_the_default_is_chosen():
    assert baseline.calibrate_tau([lambda _: 1.0]) == baseline.DEFAULT_TAU == 0.05
    assert baseline.calibrate_tau([lambda _: 1.0], grid=[0.06, 0.04, 0.01]) == 0.04


def test_the_grid_is_the_paper_s():
    assert [round(100 * tau) for tau in baseline.TAU_GRID] == list(range(1, 11))


@pytest.mark.parametrize(
    ("runs", "grid", "message"),
    [
        ([], baseline.TAU_GRID, "no run"),
        ([lambda _: 1.0], [], "grid of tau is empty"),
        ([lambda _: 1.0], [0.1, 2.0], "tau is 2.0"),
        ([lambda _: float("nan")], baseline.TAU_GRID, "nan or infinity"),
    ],
)
def test_a_calibration_that_cannot_be_done_says_why(runs, grid, message):
    with pytest.raises(InputError, match=message):
        baseline.calibrate_tau(runs, grid)


def test_calibration_on_simulated_runs_prefers_a_sensible_threshold():
    def run(seed):
        world = jc.simulate.setting("A", seed)
        clients = [world.client(k, n_samples=10**6, seed=seed) for k in range(world.n_clients)]
        truths = [world.truth(k) for k in range(world.n_clients)]

        def score(tau):
            found = [baseline.recover_fragment(c, tau=tau) for c in clients]
            return (
                jc.metrics.global_f1(world.order, baseline.assemble_pairs(found).pairs)
                - jc.metrics.subspace_error(truths, found)
                - jc.metrics.support_leakage(truths, found)
            )

        return score

    runs = [run(seed) for seed in range(100, 105)]
    best = baseline.calibrate_tau(runs)
    mean = {tau: sum(r(tau) for r in runs) for tau in (best, 0.01, 0.1)}
    assert mean[best] == max(mean.values())
