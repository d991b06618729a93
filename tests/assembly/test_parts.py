"""Fragments read from files, and studies of more labels than orders are sampled of."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly import panel as panels
from jigsaw_crl.assembly.posterior import model
from jigsaw_crl.base.errors import InputError

from .clients import lab, noisy, perfect, small_world
from .strategies import assert_same


def test_fragments_are_read_from_a_folder_and_from_paths(tmp_path):
    exact = perfect(small_world(11))
    for k, piece in enumerate(reversed(exact)):
        jc.save_fragment(piece, tmp_path / f"{k}.json")
    assert_same(jc.assemble(exact), jc.assemble(tmp_path))
    paths = list(tmp_path.iterdir())
    assert jc.assemble(exact, method="paper").pairs() == jc.assemble(paths, method="paper").pairs()


def test_too_many_labels_are_refused(monkeypatch):
    monkeypatch.setattr(panels, "MOST_LABELS", 5)
    one, other = lab("lab-1", "abc"), lab("lab-2", "xyz")
    message = "there are 6 labels, and orders of 5 at most are sampled.*Leave labels out"
    with pytest.raises(InputError, match=message):
        jc.assemble([one, other])
    # Algorithm 3 samples nothing.
    assert not jc.assemble([one, other], method="paper").pairs()


def test_a_study_too_large_to_weigh_hidden_causes_says_so(monkeypatch):
    pieces, said = noisy(small_world(3, n_clients=3), 0.05), "hidden common causes are not weighed"
    assert not any(said in note for note in jc.assemble(pieces).notes)
    monkeypatch.setattr(model, "MOST_WORK", 1.0)
    order = jc.assemble(pieces)
    assert any(said in note for note in order.notes)
    assert np.isfinite(order.table.evidence).all()
