"""Hard interventions at a client: effects, latents and their errors (T8)."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.nullcone.effects import Gradient, reveal, total_effect
from jigsaw_crl.truth.simulate import Intervention

from .readings import read


def hard_world(seed, p=10, clients=5, shift=1.0, kind="hard"):
    intervention = Intervention(kind, shift=shift)
    return jc.simulate.random_world(p, clients, 0.6, seed, intervention=intervention)


@pytest.mark.parametrize("seed", range(8))
def test_exact_moments_give_exact_effects_latents_and_ancestry(seed):
    # Clients lack four of ten latents, so that most have districts, cliques included.
    world = hard_world(710_000 + seed, clients=2)
    for k in range(2):
        client = world.client(k)
        fragment = jc.recover_fragment(client, interventions="hard")
        labels = fragment.labels
        found, true = fragment.hard.total.value, world.effects(labels).total
        off = ~np.eye(len(labels), dtype=bool)
        assert np.abs(found - true)[off].max() < 1e-8
        ancestor = world.order.restrict(labels).matrix
        assert np.array_equal(fragment.statements.ancestor == 1, ancestor)
        assert (fragment.statements.ancestor[off] != -1).all()
        # A latent of standard deviation 1: reading G z gives z itself.
        nodes = [world.node(label) for label in labels]
        sd = np.sqrt(np.diag(world.sem.covariance()))[nodes]
        sign = np.array([np.sign(world.change(k, label).mean) for label in labels])
        read = fragment.basis @ world.views[k].mixing
        assert np.allclose(read * sd[None, :], np.diag(sign), atol=1e-7)


@pytest.mark.parametrize("seed", [6_100_001, 6_100_170])
def test_effects_as_small_as_a_c_do_not_draw_the_wrong_line(seed):
    # Without a shift, a line and its c change places. Effects on a label whose c is short are then
    # large beside it: they must not count as evidence for the wrong line.
    world = hard_world(seed, shift=0.0)
    result = jc.recover(world.clients(), interventions="hard")
    counts = jc.metrics.verdict_counts(world.order, result.order)
    assert counts.wrong_yes + counts.wrong_no == 0
    for fragment in result.fragments.values():
        true = np.abs(world.effects(fragment.labels).total)
        off = ~np.eye(len(true), dtype=bool)
        assert np.abs(np.abs(fragment.hard.total.value) - true)[off].max() < 1e-8
        assert not any(f.check == "not-hard" for f in fragment.findings)


def test_direct_effects_of_exact_moments_are_the_graph_of_the_world():
    world = hard_world(711_000, clients=12)
    result = jc.recover(world.clients(), interventions="hard")
    assert result.order.mode == "exact"
    direct, labels = world.effects().direct, world.effects().labels
    edges = {(labels[a], labels[d]): abs(direct[a, d]) for a, d in np.argwhere(direct != 0)}
    assert set(result.graph.edges) == set(edges)
    for pair, weight in edges.items():
        assert abs(result.graph.edges[pair]["weight"]) == pytest.approx(weight, abs=1e-8)
        assert result.graph.edges[pair]["verdict"] == "direct"


@pytest.mark.parametrize(("n", "shift"), [(1_000, 3.0), (10_000, 1.0)])
def test_intervals_cover_effects_of_every_size(n, shift):
    inside, zero = [], []
    for seed in range(3):
        world = hard_world(712_000 + seed, shift=shift)
        for k in range(world.n_clients):
            fragment = jc.recover_fragment(
                world.client(k, n_samples=n, seed=seed), interventions="hard"
            )
            frame, true = fragment.effects, world.effects(fragment.labels).total
            index = {label: i for i, label in enumerate(fragment.labels)}
            a, d = frame.cause.map(index), frame.effect.map(index)
            inside += ((frame.low < true[a, d]) & (true[a, d] < frame.high)).tolist()
            zero += (true[a, d] == 0).tolist()
    inside, zero = np.array(inside), np.array(zero)
    for part in (inside[zero], inside[~zero]):
        # Pairs of a client share errors; four errors of independent ones.
        assert abs(part.mean() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / len(part)) + 0.01


def test_soft_interventions_called_hard_are_caught_and_read_as_soft():
    caught = 0
    for seed in range(6):
        world = hard_world(713_000 + seed, kind="additive", shift=1.0)
        for k in range(2):
            client = world.client(k, n_samples=10_000)
            claimed = jc.recover_fragment(client, interventions="hard")
            named = {f.regime for f in claimed.findings if f.check == "not-hard"}
            given = claimed.effects
            assert not named & set(given.effect)
            caught += bool(named)
    assert caught >= 6


def test_effects_need_a_hard_intervention_on_the_affected_label():
    world = hard_world(716_000)
    client = world.client(0, n_samples=5_000)
    half = dict.fromkeys(client.labels[::2], "hard")
    fragment = jc.recover_fragment(client, interventions=half)
    assert set(fragment.effects.effect) <= set(half)
    assert jc.recover_fragment(client).effects is None
    applied = fragment.hard.applied
    assert applied.known[:, ::2].any()
    assert not applied.known[:, 1::2].any()


@pytest.mark.parametrize("seed", range(2))
def test_a_claim_excludes_lines_and_prefers_none(seed):
    # Without a shift a line can be taken for its c. The effects that follow from this look real, so
    # that a claim only excludes lines with which effects would run both ways: here, none is chosen.
    world = jc.simulate.random_world(20, 2, 0.6, 718_000 + seed, intervention="hard")
    for k in range(2):
        client = world.client(k, n_samples=10_000)
        soft, hard = (
            read(client, hard=np.full(len(client.labels), said)) for said in (False, True)
        )
        assert np.array_equal(soft.choice.reading, hard.choice.reading)
        assert (hard.choice.margin > soft.choice.margin - 1e-6).all()


@pytest.mark.parametrize("seed", [8_810_233, 8_810_183])
def test_exchanged_lines_are_no_reason_to_doubt_a_claim(seed):
    # Children of a hidden cause: exchanged lines fit all pairs a little better.
    world = jc.simulate.random_world(8, 4, 0.7, seed, graph="star", intervention="hard")
    for k in range(world.n_clients):
        client = world.sample(k, 10_000, seed=seed).to_client()
        fragment = jc.recover_fragment(client, interventions="hard")
        assert not any(f.check == "not-hard" for f in fragment.findings)


def test_the_error_of_a_new_effect_follows_from_its_gradient():
    # The square of the total effect, by the chain rule.
    def square(K, g_i, g_j):
        f = total_effect(K, g_i, g_j)
        by_u, by_c = (2 * f.value * x for x in (f.by_u, f.by_c))
        return Gradient(f.value**2, 2 * f.value * f.ratio, by_u, by_c)

    client = hard_world(713_000).client(0, 10_000, seed=1)
    reading = read(client, hard=np.ones(len(client.labels), dtype=bool))
    revealed = reveal(reading)
    known = np.flatnonzero(revealed.known)
    i, j = (known[x] for x in np.triu_indices(len(known), 1))
    value, error = revealed.effects(i, j, total_effect)
    squared, of_squared = revealed.effects(i, j, square)
    np.testing.assert_allclose(squared, value**2)
    np.testing.assert_allclose(of_squared, 2 * np.abs(value) * error)


def test_labels_of_interventions_follow_the_rule_for_labels():
    client = jc.simulate.setting("A", 0).client(0)
    label = client.labels[0]
    assert client.with_interventions({f" {label}": "hard"}).hard == {label}
    study = jc.Study("one", (client,))
    wide = "".join(chr(ord(c) + 0xFEE0) for c in label)
    assert study.with_interventions({wide: "hard"}).clients[0].hard == {label}
    with pytest.raises(jc.InputError, match="twice, with two kinds"):
        study.with_interventions({label: "soft", f"{label} ": "hard"})
    with pytest.raises(jc.InputError, match="interventions is a list"):
        study.with_interventions([label])
