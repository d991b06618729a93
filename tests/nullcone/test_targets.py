"""Regimes of few rows, and regimes that moved the mean alone."""

from dataclasses import replace
from functools import reduce
from itertools import combinations
from operator import add

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.client.white import whiten
from jigsaw_crl.nullcone.delta import statistics_of
from jigsaw_crl.nullcone.reading import see
from jigsaw_crl.nullcone.recovery import Recovery
from jigsaw_crl.truth.simulate import Intervention, random_world

from .readings import read

LATENTS, CONTROL_ROWS = 20, 2_000


def small_regimes(seed, least=10):
    """A client with 20 latents and a few rows in each regime."""
    protocol = Intervention("hard", shift=(2.0, 3.0))
    world = random_world(LATENTS, 1, 1.0, seed=84_000 + seed, intervention=protocol)
    rng = np.random.default_rng(seed)
    rows = {x: int(rng.integers(least, least + 6)) for x in world.truth(0).labels}
    return world, world.client(0, {"control": CONTROL_ROWS, **rows}, seed=seed)


def test_regimes_with_fewer_rows_than_latents_are_read_with_sound_errors():
    usable, scores = [], []
    for seed in range(6):
        world, client = small_regimes(seed)
        targets = see(whiten(client)).targets
        assert targets.means_fit
        usable.append(targets.usable.mean())
        i, j = (
            np.array(x) for x in zip(*combinations(np.flatnonzero(targets.usable), 2), strict=True)
        )
        found = statistics_of(targets, i, j)
        # The client has every latent, so that no two targets share a hidden cause.
        T, C = found.values[:, 0], found.covariance[:, 0]
        z = T / np.sqrt(np.einsum("kaa->ka", C))
        ancestor = world.order.restrict(client.labels).matrix
        scores += [z[:, 0], z[~ancestor[i, j], 1], z[~ancestor[j, i], 2]]
    z = np.concatenate(scores)
    assert np.mean(usable) > 0.9
    assert 0.8 < z.std() < 1.1
    assert np.mean(np.abs(z) > 4) < 0.002


def test_a_few_rows_decide_nothing_and_some_more_little_wrongly():
    def decided(least):
        for seed in range(6):
            world, client = small_regimes(seed, least)
            result = jc.recover([client])
            assert not any(f.severity == "error" for f in result.diagnostics)
            yield jc.metrics.verdict_counts(world.order, result.order, client.labels)

    assert all(counts.decided == 0 for counts in decided(10))
    total = reduce(add, decided(130))
    assert total.yes > 10
    # In 24 other worlds none of 211 wrong, and of "not ancestor" 69 of 1,924: a "not" excludes what
    # is above its bound.
    assert total.wrong_yes <= 0.05 * total.yes
    assert total.wrong_no <= 0.1 * total.no


@pytest.mark.parametrize("kind", ["shrink", "set"])
def test_an_effect_of_a_hub_does_not_pass_for_its_cause(kind):
    """Where interventions make targets vary less, both lines of an effect of the hub fit it."""

    def decided():
        for seed in range(6_000, 6_006):
            world = random_world(24, 1, 1.0, seed, graph="scale-free", intervention=kind)
            yield jc.metrics.verdict_counts(
                world.order, jc.recover(world.clients(3_000, seed=1)).order
            )

    total = reduce(add, decided())
    assert total.yes > 200
    # On other worlds 7 of 529.
    assert total.wrong_yes <= 0.05 * total.yes


def partly_mean_only(seed, n):
    """Clients where every second label was intervened on by a shift of its mean alone."""
    kinds = Intervention("additive", shift=1.0), Intervention("mean-only")
    world, shifts = (random_world(10, 4, 0.6, 84_200 + seed, intervention=kind) for kind in kinds)
    names = sorted({x for k in range(4) for x in world.truth(k).labels})
    only, clients = set(names[::2]), []
    for k in range(4):
        usual, shifted = world.client(k, n, seed=seed), shifts.client(k, n, seed=seed)
        regimes = {x: (shifted if x in only else usual).interventions[x] for x in usual.labels}
        clients.append(replace(usual, interventions=regimes))
    return world, clients, only


def district_pairs(districts):
    return {frozenset(pair) for group in districts for pair in combinations(group, 2)}


@pytest.mark.slow
@pytest.mark.parametrize("n", [None, 10_000])
def test_regimes_that_moved_the_mean_alone_leave_the_ancestors_of_their_labels_open(n):
    missed = found = 0
    for seed in range(6):
        world, clients, only = partly_mean_only(seed, n)
        for client in clients:
            recovery = Recovery.of(client)
            alone = {x for x, k in zip(client.labels, recovery.told.mean_alone, strict=True) if k}
            missed += len((only & set(client.labels)) - alone)
            found += len(alone)
        result = jc.recover(clients)
        frame = result.order.to_frame().query("verdict != 'undetermined'")
        for line in frame[frame.descendant.isin(only)].itertuples():
            is_so = world.order.is_ancestor(line.ancestor, line.descendant)
            assert (line.verdict == "ancestor") == is_so
        for client in clients:
            fragment = result.fragments[client.name]
            named = {f.regime for f in fragment.findings if f.check == "mean-only"}
            assert named == {x for x in client.labels if x in fragment.outcome.message} or (
                fragment.outcome.code != "ok"
            )
    assert found > 40
    assert missed <= 0.05 * found if n else missed == 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [None, 10_000])
def test_mean_shifts_alone_show_hidden_common_causes(n):
    right = wrong = missed = other = 0
    for seed in range(8):
        world = random_world(10, 4, 0.6, seed=84_700 + seed, intervention="mean-only")
        for k in range(4):
            fragment = jc.recover_fragment(world.client(k, n, seed=seed))
            other += "ancestry is not identified" not in fragment.outcome.message
            said = district_pairs(fragment.districts)
            true = district_pairs(world.truth(k).districts)
            right, wrong = right + len(said & true), wrong + len(said - true)
            missed += len(true - said)
    assert right > 40
    # From samples, chance may change a covariance: of about 200 labels, each has 1 in 1,000.
    assert other <= (0 if n is None else 1)
    if n is None:
        assert wrong == missed == 0
    else:
        # A district is what is more probable than not.
        assert wrong + missed <= 0.2 * right


@pytest.mark.parametrize("n", [None, 5_000])
def test_a_hard_intervention_that_changes_no_covariance_shows_a_target_without_parents(n):
    """The user's word that parents were cut makes an unchanged covariance informative."""
    kind = Intervention.named("hard-keep", shift=2.0)
    world = random_world(8, 1, 1.0, seed=84_900, intervention=kind)
    client = world.client(0, n)
    matrix = world.order.restrict(client.labels).matrix
    roots = {x for x, above in zip(client.labels, matrix.any(axis=0), strict=True) if not above}
    soft = Recovery.of(client)
    assert {x for x, k in zip(client.labels, soft.told.mean_alone, strict=True) if k} == roots
    hard = Recovery.of(replace(client, hard=frozenset(client.labels)))
    assert not hard.told.mean_alone.any()


def test_products_of_lines_are_as_uncertain_as_said_where_targets_share_a_cause():
    # The regimes of a star's leaves say nothing about the direction of its root. Were all
    # directions known as well, these scores would have a standard deviation of 1.17.
    scores = []
    for seed in range(24):
        protocol = Intervention.named("paper")
        world = random_world(12, 1, 1.0, 91_000 + seed, graph="star", intervention=protocol)
        found = read(world.clients(10_000, seed=seed)[0])
        s, lines = found.statistics, found.choice.reading
        chosen = np.arange(len(s.first)), 3 * lines[s.first] + lines[s.second]
        scores.append(s.values[*chosen, 0] / np.sqrt(s.covariance[*chosen, 0, 0]))
    assert 0.9 < np.std(np.concatenate(scores)) < 1.08
