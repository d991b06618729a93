"""Assembly in passes over files gives what assembly of fragments in memory gives."""

from __future__ import annotations

import gc
from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly import hearing
from jigsaw_crl.assembly import panel as panels
from jigsaw_crl.assembly.pairwise import evidence_of
from jigsaw_crl.assembly.panel import read_fragments
from jigsaw_crl.assembly.posterior.doubts import INVISIBLE
from jigsaw_crl.assembly.posterior.rounds import VISIBLE_SHARES
from jigsaw_crl.assembly.posterior.weights import pool
from jigsaw_crl.assembly.said import Given
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.spool import Spool
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.packed import packable

from .clients import lab

WORLD = jc.simulate.random_world(16, 8, 0.5, 11)


def recovered(n_samples):
    return [
        packable(jc.recover_fragment(WORLD.client(k, n_samples=n_samples, seed=k)))
        for k in range(WORLD.n_clients)
    ]


@pytest.fixture(scope="module")
def pieces():
    return recovered(4_000)


@pytest.fixture(scope="module")
def exact():
    return recovered(None)


def written(fragments, folder):
    for k, piece in enumerate(reversed(fragments)):
        jc.save_fragment(piece, folder / f"{k}{('.bin', '.json')[k % 2]}")
    return folder


def assert_same_order(one, other):
    assert one.labels == other.labels
    assert np.array_equal(one.verdicts, other.verdicts)
    assert np.array_equal(one.probabilities, other.probabilities)
    assert one.client_weights == other.client_weights
    assert (one.notes, one.mode, one.rate) == (other.notes, other.mode, other.rate)
    a, d = one.labels[:2]
    assert str(one.explain(a, d)) == str(other.explain(a, d))


def test_files_give_what_fragments_in_memory_give(pieces, tmp_path):
    held, passed = jc.assemble(pieces), jc.assemble(written(pieces, tmp_path))
    assert_same_order(held, passed)
    assert isinstance(passed.fragments, Spool)


def test_exact_statements_and_algorithm_3_as_well(exact, tmp_path):
    paths = list(written(exact, tmp_path).iterdir())
    assert_same_order(jc.assemble(exact), jc.assemble(paths))
    assert jc.assemble(exact, method="paper").pairs() == jc.assemble(paths, method="paper").pairs()


def test_fragments_are_added_to_a_streamed_order(pieces, tmp_path):
    some = jc.assemble(written(pieces[:-1], tmp_path))
    assert_same_order(jc.assemble([pieces[-1]], start=some), jc.assemble(pieces))


def test_few_fragments_are_in_memory_at_once(pieces, tmp_path, monkeypatch):
    folder = written(pieces, tmp_path)
    alive, checked = [], panels.claims_of

    def count():
        gc.collect()
        return sum(isinstance(x, Fragment) for x in gc.get_objects())

    def counting(fragment, **given):
        alive.append(count() - before)
        return checked(fragment, **given)

    before = count()
    monkeypatch.setattr(panels, "claims_of", counting)
    jc.assemble(folder)
    assert max(alive) <= 2


def test_the_same_client_in_two_files_is_refused(pieces, tmp_path):
    for name in ("a.bin", "b.json"):
        jc.save_fragment(pieces[0], tmp_path / name)
    with pytest.raises(InputError, match="another file holds a fragment of the same client"):
        jc.assemble(tmp_path)


def test_a_folder_without_fragments_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="the folder has no fragments"):
        jc.assemble(tmp_path)


# -- many labels: every pair by its own evidence -------------------------------------------------


@pytest.fixture
def many(monkeypatch):
    """As if sixteen labels were too many to sample orders of."""
    monkeypatch.setattr(panels, "MOST_SAMPLED", 10)


def test_many_labels_from_files_as_from_memory(many, pieces, tmp_path):
    held, passed = jc.assemble(pieces), jc.assemble(written(pieces, tmp_path))
    assert_same_order(held, passed)
    assert "every pair is judged by its own evidence" in held.notes[0]
    assert np.array_equal(held.evidence, passed.evidence)


def test_numbered_pairs_are_pooled_as_tables_are(many, pieces):
    panel = read_fragments(pieces)
    weights = np.linspace(0.2, 1.0, len(pieces))
    shares = [*(v * (1.0 - INVISIBLE) for v in VISIBLE_SHARES), INVISIBLE]
    dense = pool(panel, weights, 0.01).log_odds(shares, panel.missed.leans)
    found = evidence_of(panel, weights, 0.01, None)
    likely = (dense > 1.0).any(axis=0)
    dense = dense + np.where(likely, 0.0, np.minimum(panel.missed.ancestry, 0.0))
    spoken = pool(panel, weights, 0.01).n_clients > 0
    assert np.allclose(found[spoken], dense[spoken], atol=1e-4)
    assert (found[~spoken] == 0).all()


def test_verdicts_of_many_labels_fit_together_and_the_truth(many, pieces):
    order = jc.assemble(pieces)
    yes, no = order.verdicts == 1, order.verdicts == 0
    assert yes.any()
    assert no.any()
    closed = order.best_guess()
    assert order.pairs() <= closed.pairs()
    assert not (yes & yes.T).any()
    wrong = order.pairs() - WORLD.order.pairs()
    assert len(wrong) <= 0.05 * len(order.pairs()) + 1
    denied = {
        (order.labels[a], order.labels[d]) for a, d in np.argwhere(no).tolist() if a != d
    } & WORLD.order.pairs()
    assert len(denied) <= 0.05 * no.sum()


def test_a_client_that_contradicts_the_others_is_trusted_less_among_many_labels(many, pieces):
    bad = pieces[0].to_document()
    bad["bayes"]["ancestor"] = [
        np.array(m, dtype=object).T.tolist() for m in bad["bayes"]["ancestor"]
    ]
    turned = jc.Fragment.from_document(bad)
    order = jc.assemble([turned, *pieces[1:]])
    weights = dict(order.client_weights)
    assert weights.pop(bad["client"]) < min(weights.values())


def test_copies_count_as_one_client_among_many_labels(many, pieces):
    twins = [
        jc.Fragment.from_document(
            {**pieces[0].to_document(), "client": name, "findings": [], "n_samples": None}
        )
        for name in ("twin-1", "twin-2")
    ]
    order = jc.assemble([*twins, *pieces[1:]])
    assert any("sent the same evidence" in note for note in order.notes)
    assert order.client_weights["twin-1"] <= 0.5


@pytest.mark.parametrize("spooled", [False, True])
def test_what_the_others_say_is_without_a_client_and_its_copies(pieces, spooled, monkeypatch):
    monkeypatch.setattr(hearing, "PART", 1)  # every client is a part of its own
    stating = lab("stating", ["z1", "z2", "z3"], yes=[("z1", "z2")], no=[("z3", "z1")])
    twin = replace(pieces[3], client="twin")
    given = [*pieces, stating, twin]
    panel = read_fragments(Spool(given) if spooled else given)
    heard = hearing.Here(panel)
    (copies,) = heard.copies
    weights, rate = np.linspace(0.3, 1.0, len(given)), 0.02
    twins = {k: [j for j in copies if j != k] for k in copies}
    about = Given(weights, rate, twins)
    total = heard.pooled(about)
    for k, claims in enumerate(panel.claims):
        left = np.where(np.isin(np.arange(len(given)), [k, *twins.get(k, ())]), 0.0, weights)
        dense = pool(panel, left, rate).of(claims.members).log_odds()[claims.says]
        assert np.allclose(heard._block.rest(total, k, about), dense, atol=1e-3)


def test_copies_are_found_by_a_part_of_their_numbers(pieces, monkeypatch):
    from jigsaw_crl.assembly import copies

    twin = jc.Fragment.from_document({**pieces[0].to_document(), "client": "twin", "findings": []})
    given = [*pieces, twin]
    monkeypatch.setattr(copies, "MOST_COMPARED", 60)
    assert copies.find_copies(given) == [(0, len(pieces))]


def test_the_reason_for_no_verdict_among_many_labels_is_said(many, pieces):
    order = jc.assemble(pieces)
    seen = order.evidence != 0
    a, d = np.argwhere((order.verdicts == -1) & seen)[0]
    said = str(order.explain(order.labels[a], order.labels[d]))
    assert "every pair is judged by its own evidence alone" in said
    again = evidence_of(order.panel, order._trust, order.rate, None)
    assert np.allclose(again, order.evidence)
    yes = next(iter(order.pairs()))
    assert order.explain(*yes).verdict is jc.Verdict.ANCESTOR


def test_effects_of_many_labels_are_not_bounded(many, pieces):
    with pytest.raises(InputError, match="effects are bounded for"):
        jc.assemble(pieces, smallest_effect=0.1)
