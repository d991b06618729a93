"""The null-cone method from client to fragment: exact moments, samples, and unusual clients."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.fragment.fragment import CANNOT_SAY, YES
from jigsaw_crl.nullcone import Recovery
from jigsaw_crl.truth.simulate import FAMILIES, INTERVENTIONS, Intervention

from ..study.tables import client_of
from .readings import relations


def recover_fragment(client, **options):
    """The fragment without checks and findings."""
    return Recovery.of(client, **options).fragment()


def same_structure(fragment, truth):
    return (
        set(fragment.blocks) == set(truth.blocks)
        and fragment.block_order == truth.block_order
        and set(fragment.districts) == set(truth.districts)
    )


@pytest.mark.parametrize("p", [6, 14, 24])
@pytest.mark.parametrize("kind", ["paper", "weak", "shrink", "hard-replace"])
def test_exact_moments_give_structure_basis_and_true_statements_of_every_client(p, kind):
    said = inside = 0
    for seed in range(2):
        world = jc.simulate.random_world(p, 4, 0.6, seed=52_000 + seed, intervention=kind)
        for k in range(world.n_clients):
            fragment, truth = recover_fragment(world.client(k)), world.truth(k)
            assert same_structure(fragment, truth)
            assert jc.metrics.subspace_error(truth, fragment) < 1e-10
            assert jc.metrics.support_leakage(truth, fragment) == 0.0
            same, ancestor = relations(truth, fragment.labels)
            told = fragment.statements.ancestor
            assert (ancestor == (told == YES))[told != CANNOT_SAY].all()
            assert ((told == CANNOT_SAY) <= same).all()
            off = same & ~np.eye(len(same), dtype=bool)
            inside += int(off.sum())
            said += int((told[off] != CANNOT_SAY).sum())
    # Zeros inside a district exclude some ancestors there too.
    assert p == 6 or said > 0.05 * inside


def turned(client, turn, labels):
    """The client whose features are `turn` times these."""

    def moments(m):
        return jc.Moments(m.n, turn @ m.mean, turn @ m.covariance @ turn.T)

    return jc.Client.from_moments(
        client.name,
        control=moments(client.control),
        interventions={x: [moments(m) for m in client.interventions[x]] for x in labels},
        n_latent=client.n_latent,
    )


def a_world(n_latent, coverage, graph, intervention, seed):
    kind = {"graph": graph, "intervention": intervention}
    return jc.simulate.random_world(n_latent, 1, coverage, seed, **kind)


WORLDS = st.builds(
    a_world,
    st.integers(2, 14),
    st.sampled_from([0.5, 0.7, 1.0]),
    st.sampled_from(sorted(FAMILIES)),
    st.sampled_from(sorted(INTERVENTIONS)),
    st.integers(0, 2**32 - 1),
)


def shuffled_labels(client, rng):
    return [client.labels[i] for i in rng.permutation(len(client.labels))]


# The shift of the mean names the line of q, up to rounding; rounding in two dimensions.
@example(a_world(4, 0.5, "chain", "knock-down", 1), None)
@example(a_world(2, 0.5, "root-hub", "strong", 646), None)
@given(WORLDS, st.sampled_from([None, 300, 4_000, 50_000]))
def test_the_fragment_does_not_depend_on_label_order_feature_order_or_rotation(world, rows):
    client = world.client(0, rows, seed=1)
    rng, d = np.random.default_rng(0), client.n_features
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0][rng.permutation(d)]
    before = recover_fragment(client)
    after = recover_fragment(turned(client, turn, shuffled_labels(client, rng)))
    assert set(before.blocks) == set(after.blocks)
    assert before.block_order == after.block_order
    assert set(before.districts) == set(after.districts)
    # Evidence has four decimals, and pooling stops within a fraction of the sampling error.
    np.testing.assert_allclose(
        by_label(after.evidence, after, before), before.evidence, rtol=1e-4, atol=1e-3
    )


@example(a_world(4, 0.5, "chain", "knock-down", 1))
@example(a_world(3, 0.7, "dense", "hard-replace", 3879))
@given(WORLDS)
def test_another_mixing_of_exact_moments_leaves_open_only_what_it_rounds_away(world):
    client = world.client(0)
    rng, d = np.random.default_rng(0), client.n_features
    mixing = rng.normal(size=(d + 2, d))
    mixed = turned(client, mixing, shuffled_labels(client, rng))
    one, other = sorted(
        (Recovery.of(client), Recovery.of(mixed)), key=lambda x: -x.reading.targets.white.n[0]
    )
    exact, rounded = one.fragment(), other.fragment()
    assert set(exact.blocks) == set(rounded.blocks)
    assert exact.block_order == rounded.block_order
    assert set(exact.districts) == set(rounded.districts)
    said = by_label(rounded.statements.ancestor, rounded, exact)
    told = said != CANNOT_SAY
    np.testing.assert_array_equal(exact.statements.ancestor[told], said[told])


def by_label(matrix, fragment, like):
    """A matrix of one fragment, in the order of another one's labels."""
    order = [fragment.index(x) for x in like.labels]
    return matrix[np.ix_(order, order)]


def test_the_global_order_tells_which_of_two_lines_is_a_targets_own():
    world = jc.simulate.setting("A", 7_054)
    recovery = Recovery.of(world.clients(10_000, seed=7_054)[1])
    alone = recovery.fragment()
    informed = recovery.refined(alone, world.order)
    before, after = (jc.metrics.subspace_error(world.truth(1), f) for f in (alone, informed))
    assert before > 0.1
    assert after < 0.001


def test_a_client_that_intervenes_on_some_latents_settles_the_pairs_of_those():
    for seed in range(5):
        world = jc.simulate.random_world(14, 1, 0.8, seed=57_000 + seed)
        truth = world.truth(0)
        labels = truth.labels[: len(truth.labels) // 2 + 1]
        fragment = recover_fragment(world.client(0, labels=labels))
        assert set(fragment.labels) == set(labels)
        same, ancestor = relations(truth, fragment.labels)
        told = ~same & ~np.isnan(fragment.evidence)
        assert ((fragment.evidence > 0) == ancestor)[told].all()


@pytest.mark.parametrize(
    "kind", ["noise-only", "mean-only", Intervention("noise-only", shift=(2.0, 3.0))]
)
@pytest.mark.parametrize("n", [None, 10_000])
def test_interventions_on_noise_or_mean_alone_leave_ancestry_undetermined_and_say_so(kind, n):
    world = jc.simulate.random_world(10, 3, 0.7, seed=60_000, intervention=kind)
    clients = [world.client(k, n, seed=4) for k in range(3)]
    for client in clients:
        fragment = recover_fragment(client)
        assert fragment.outcome.code == "not-identified"
        assert "not identified" in fragment.outcome.message
        assert np.isnan(fragment.evidence).all()
    assert jc.metrics.verdict_counts(world.order, jc.recover(clients).order).decided == 0


@pytest.mark.parametrize(
    ("n", "rank_one", "says"),
    [
        (None, None, True),
        (None, "unsure", False),
        (9_000, None, False),
        (9_000, "no-ancestor", True),
    ],
)
def test_a_single_direction_says_that_there_is_no_ancestor_only_if_weights_change(
    n, rank_one, says
):
    client = jc.simulate.random_world(10, 1, 0.8, seed=61_000).client(0, n)
    single = Recovery.of(client).told.single
    fragment = recover_fragment(client, rank_one=rank_one)
    assert single.any()
    silent = np.isnan(fragment.evidence[:, single]).all(axis=0)
    assert (~silent if says else silent).all()
    assert fragment.outcome.ok
    assert ("ancestors stay open" in fragment.outcome.message) != says
    assert ("no-ancestor" in fragment.outcome.remedy) != says


def test_a_hard_intervention_that_moves_a_single_direction_says_that_there_is_no_ancestor():
    world = jc.simulate.random_world(8, 1, 1.0, seed=62_000, intervention="hard")
    client = world.client(0, 10_000).with_interventions("hard")
    single = Recovery.of(client).told.single
    assert single.any()
    assert not np.isnan(recover_fragment(client).evidence[:, single]).all(axis=0).any()


def where_others_change_noise_alone(changing, *world, seed, rows_seed=0, **kind):
    """What is decided if only the interventions on these labels change weights."""
    weights, noise = (
        jc.simulate.random_world(*world, seed=seed, intervention=name, **kind)
        for name in ("paper", "noise-only")
    )
    clients = []
    for k in range(weights.n_clients):
        changed, louder = (w.sample(k, 10_000, seed=rows_seed).regimes for w in (weights, noise))
        own = {x: rows for x, rows in changed.items() if x in changing | {"control"}}
        clients.append(client_of(louder | own, f"s{k}"))
    return jc.metrics.verdict_counts(weights.order, jc.recover(clients).order, weights.labels)


@pytest.mark.parametrize("graph", ["chain", "tree", "er"])
def test_interventions_on_noise_alone_beside_others_lead_to_no_wrong_no(graph):
    said = 0
    for seed in range(63_000, 63_002):
        one = {f"z{seed % 5 + 1}"}
        counts = where_others_change_noise_alone(one, 5, 3, 1.0, seed=seed, graph=graph)
        assert counts.wrong_no == 0
        said += counts.no
    assert said > 0


@pytest.mark.parametrize(
    ("seed", "changing"),
    [
        (18_000_004, {"z3", "z4", "z5", "z6"}),
        # At one site chance shows a faint second direction of a label.
        (19_100_029, {"z1", "z8"}),
    ],
)
def test_where_causes_are_hidden_noise_alone_makes_no_effect_an_ancestor(seed, changing):
    # Six sites with most of the labels.
    six = {"seed": seed, "rows_seed": seed + 1}
    counts = where_others_change_noise_alone(changing, 8, 6, 0.7, **six)
    assert (counts.wrong_yes, counts.wrong_no) == (0, 0)
    assert counts.yes > 1


def test_without_confounding_no_district_has_two_members():
    world = jc.simulate.world_from_graph(
        np.array(jc.simulate.setting("A", 0).sem.A), [range(5)], [8], seed=7
    )
    for n in (None, 20_000):
        fragment = recover_fragment(world.client(0, n, seed=7), confounding="none")
        assert all(len(d) == 1 for d in fragment.districts)
        assert all(len(b) == 1 for b in fragment.blocks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "best"),
        ({"tau": 0.05}, "paper"),
        ({"method": "paper", "confounding": "none"}, "null-cone"),
    ],
)
def test_options_that_are_unknown_or_of_the_other_method_are_refused(options, message):
    client = jc.simulate.setting("A", 0).client(0)
    with pytest.raises(jc.InputError, match=message):
        jc.recover_fragment(client, **options)


@pytest.mark.parametrize("seed", range(6))
def test_an_effect_does_not_pass_for_a_cause_whose_own_intervention_does_not_show(seed):
    # Weights change and noise does not, so that the root's own regime is the control.
    world = jc.simulate.random_world(9, 1, 1.0, 7300 + seed, graph="star", intervention="mild")
    stated = jc.recover(world.clients(10_000, seed=seed)).order.pairs()
    assert set(stated) <= set(world.order.pairs())


def test_several_strengths_of_one_label_agree_with_the_truth():
    for seed in range(4):
        world = jc.simulate.random_world(10, 1, 0.8, seed=58_000 + seed)
        client = world.client(0, doses=3)
        assert all(len(ms) == 3 for ms in client.interventions.values())
        assert same_structure(recover_fragment(client), world.truth(0))


def test_lines_that_contradict_the_order_are_not_conditioned_on_it():
    # At one client, products that should vanish are hundreds of standard errors: the solver
    # diverged there, and recovery ended with an error.
    hard = Intervention.named("hard", shift=2.0)
    world = jc.simulate.random_world(20, 15, 0.6, 3_000_005, intervention=hard)
    result = jc.recover(world.clients(1_000, seed=3_000_005))
    for fragment in result.fragments.values():
        assert np.isfinite(fragment.basis).all()
