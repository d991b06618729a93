"""Fragments read from files, and studies of more labels than orders are sampled of."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly import panel as panels
from jigsaw_crl.base.errors import InputError

WORLD = jc.simulate.random_world(16, 8, 0.5, 11)


def recovered(n_samples):
    return [
        jc.recover_fragment(WORLD.client(k, n_samples=n_samples, seed=k))
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
        jc.save_fragment(piece, folder / f"{k}.json")
    return folder


def assert_same_order(one, other):
    assert one.labels == other.labels
    assert np.array_equal(one.verdicts, other.verdicts)
    assert np.array_equal(one.probabilities, other.probabilities)
    assert one.client_weights == other.client_weights
    assert (one.notes, one.mode, one.use.rate) == (other.notes, other.mode, other.use.rate)
    a, d = one.labels[:2]
    assert str(one.explain(a, d)) == str(other.explain(a, d))


def test_exact_statements_and_algorithm_3_as_well(exact, tmp_path):
    paths = list(written(exact, tmp_path).iterdir())
    assert_same_order(jc.assemble(exact), jc.assemble(paths))
    assert jc.assemble(exact, method="paper").pairs() == jc.assemble(paths, method="paper").pairs()


def test_a_folder_without_fragments_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="the folder has no fragments"):
        jc.assemble(tmp_path)


# -- more labels than orders are sampled of ------------------------------------------------------


@pytest.fixture
def many(monkeypatch):
    """As if orders of more than twelve labels could not be sampled."""
    monkeypatch.setattr(panels, "MOST_LABELS", 12)


def island(prefix, seed, n_samples=2_000):
    """Three clients of a world whose labels no other world has."""
    world = jc.simulate.random_world(8, 3, 0.8, seed)
    out = []
    for k in range(3):
        document = jc.recover_fragment(world.client(k, n_samples=n_samples, seed=k)).to_document()
        text = jc.Fragment.from_document(document).to_json()
        for i in range(1, 9):
            text = text.replace(f'"z{i}"', f'"{prefix}{i}"')
        piece = jc.Fragment.from_json(text.replace(document["client"], f"{prefix}-{k}"))
        out.append(piece)
    return out


def test_too_many_labels_that_clients_share_are_refused(many, pieces):
    message = "there are 16 labels, and orders of 12 at most are sampled.*Leave labels out"
    with pytest.raises(InputError, match=message):
        jc.assemble(pieces)
    with pytest.raises(InputError, match="They fall into 2 groups that share no label"):
        jc.assemble(island("a", 1) + island("b", 2))


def test_algorithm_3_samples_nothing_and_takes_any_number(many, exact):
    assert jc.assemble(exact, method="paper").pairs()


def test_a_study_too_large_to_weigh_hidden_causes_says_so(pieces, monkeypatch):
    from jigsaw_crl.assembly.posterior import model

    said = "hidden common causes are not weighed"
    assert not any(said in note for note in jc.assemble(pieces).notes)
    monkeypatch.setattr(model, "MOST_WORK", 1.0)
    assert any(said in note for note in jc.assemble(pieces).notes)
