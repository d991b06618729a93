"""A client that contradicts the others is trusted less, and named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl import Fragment, assemble
from jigsaw_crl.fragment import Statements
from jigsaw_crl.truth.simulate import Intervention, World, random_world

from .clients import lab, noisy, perfect, small_world, weighs
from .test_agreement import evidence_of


def spoil(world: World, fragment: Fragment, kind: str, rng: np.random.Generator) -> Fragment:
    assert fragment.statements is not None
    said = fragment.statements.ancestor
    if kind == "permuted":
        deal = rng.permutation(len(said))
        said = said[np.ix_(deal, deal)]
    elif kind == "reversed":
        said = said.T
    else:
        fake = random_world(world.n_latent, 1, 1.0, seed=9_999).order
        said = fake.restrict(fragment.labels).matrix.astype(np.int8)
    return replace(fragment, statements=Statements(said))


def test_what_is_true_of_a_target_is_paid_once_not_by_every_client():
    def evidence(ancestor: float, lean: float, n_clients: int) -> float:
        """Pooled log Bayes factor of x → y where the intervention on y moved one direction."""
        factors, apart = np.full((2, 2, 2), -4.0), np.full((2, 2), -50.0)
        factors[:, 0, 1] = ancestor
        more = {"lean": np.full((2, 2), lean), "single": (False, True), "rank_one": "no-ancestor"}
        given = [weighs(f"lab-{k:02d}", "xy", factors, apart, **more) for k in range(n_clients)]
        return float(assemble(given).table.evidence[0, 1])

    # Four clients are four times as sure of the factor. That all of them saw one direction counts
    # once for the label, in the order's prior, and not here: an ancestor is likely.
    for n_clients in (2, 4):
        assert evidence(3.0, 0.0, n_clients) == pytest.approx(3.0 * n_clients, abs=0.5)
    # A lean that explains as much as ancestry, or more, does not speak for it.
    for n_clients in (1, 4, 12):
        assert evidence(5.0, 5.0, n_clients) < 1.0
        assert evidence(3.0, 5.0, n_clients) < 0.0


def test_one_direction_at_all_clients_speaks_against_any_ancestor_more_with_each_client():
    def missed(n_clients: int, n_single: int, rank_one: str | None = "no-ancestor"):
        zeros = np.zeros((2, 2))
        singles = [(False, k < n_single) for k in range(n_clients)]
        given = [
            weighs(f"lab-{k:02d}", "xy", [zeros], zeros, single=single, rank_one=rank_one)
            for k, single in enumerate(singles)
        ]
        return evidence_of(given).missed

    once, often = missed(1, 1), missed(8, 8)
    assert often.ancestry[1] < once.ancestry[1] < 0.0
    # Unless noise alone may have changed.
    assert missed(8, 8, None).ancestry[1] == 0.0
    # A label that showed two directions once was missed at the others.
    some = missed(8, 3)
    assert some.ancestry[1] > 0.0
    assert some.chance[1] == 1.0
    assert some.share > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["permuted", "reversed", "colluding"])
def test_a_fifth_of_malicious_clients_is_named_and_two_fifths_are_said_to_disagree(kind):
    lost, named, slandered = [], 0, 0
    for seed in range(3):
        world = small_world(seed, n_latent=20, n_clients=15)
        rng = np.random.default_rng([seed, 3])
        given = perfect(world)
        bad = set(rng.choice(15, size=3, replace=False).tolist())
        mixed = [spoil(world, f, kind, rng) if k in bad else f for k, f in enumerate(given)]
        order = assemble(mixed)
        honest = assemble([f for k, f in enumerate(given) if k not in bad])
        scores = [jc.metrics.global_f1(world.order, x.best_guess()) for x in (honest, order)]
        lost.append(scores[0] - scores[1])
        low = {name for name, weight in order.client_weights.items() if weight < 0.5}
        culprits = {given[k].client for k in bad}
        named += len(low & culprits)
        slandered += len(low - culprits)
        assert all(name in " ".join(order.notes) for name in low)
        assert not order.disagreement
    assert np.mean(lost) < 0.02
    assert named >= 8
    assert slandered == 0
    rng = np.random.default_rng([0, 4])
    world = small_world(0, n_latent=20, n_clients=15)
    order = assemble(
        [spoil(world, f, kind, rng) if k % 5 < 2 else f for k, f in enumerate(perfect(world))]
    )
    assert order.disagreement
    assert any("clients disagree" in note for note in order.notes)


@pytest.mark.slow
def test_clients_that_err_as_often_as_they_say_keep_their_weight():
    weights = [
        w
        for seed in range(2)
        for w in assemble(noisy(small_world(seed, 20, 15), 0.2)).client_weights.values()
    ]
    assert np.mean(weights) > 0.9


def test_two_clients_cannot_outvote_each_other():
    labs = [
        lab("lab-1", "abc", yes=[("a", "b"), ("b", "c")]),
        lab("lab-2", "abc", yes=[("b", "a"), ("c", "b")]),
    ]
    assert set(assemble(labs).client_weights.values()) == {1.0}


def test_a_client_that_shares_no_pair_with_others_keeps_its_weight():
    labs = [
        lab("lab-1", "ab", yes=[("a", "b")]),
        lab("lab-2", "ab", no=[("a", "b")]),
        lab("lab-3", "ab", yes=[("a", "b")]),
        lab("lab-4", "xy", yes=[("x", "y")]),
    ]
    assert assemble(labs).client_weights["lab-4"] == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_sound_clients_with_hard_interventions_are_not_said_to_disagree(seed):
    # Evidence for both directions of a pair, against "unrelated", is no contradiction.
    intervention = Intervention("hard", shift=1.0)
    world = random_world(6, 4, 0.8, 910_003 + seed, intervention=intervention)
    order = jc.recover(world.clients(n_samples=3_000), interventions="hard").order
    assert not order.disagreement
    assert order.notes == ()
