"""What is true of a label counts once, and clients that disagree are told from sound ones."""

from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl import assemble
from jigsaw_crl.fragment.fragment import Statements
from jigsaw_crl.truth.simulate import Intervention, random_world

from .clients import perfect, small_world, weighs
from .test_agreement import evidence_of


def test_what_is_true_of_a_target_is_paid_once_not_by_every_client():
    def evidence(ancestor, lean, n_clients):
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
    def missed(n_clients, n_single, rank_one="no-ancestor"):
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


@pytest.mark.parametrize("seed", range(4))
def test_sound_clients_with_hard_interventions_are_not_said_to_disagree(seed):
    # Evidence for both directions of a pair, against "unrelated", is no contradiction.
    intervention = Intervention("hard", shift=1.0)
    world = random_world(6, 4, 0.8, 910_003 + seed, intervention=intervention)
    order = jc.recover(world.clients(n_samples=3_000), interventions="hard").order
    assert not order.use.disagreement
    assert order.notes == ()


def test_sites_of_which_two_fifths_turn_every_statement_are_said_to_disagree():
    given = perfect(small_world(0, n_latent=20, n_clients=15))
    turned = [Statements(f.statements.ancestor.T) for f in given]
    order = assemble(
        [
            replace(f, statements=s) if k % 5 < 2 else f
            for k, (f, s) in enumerate(zip(given, turned, strict=True))
        ]
    )
    assert order.use.disagreement
    assert any("clients disagree" in note for note in order.notes)
