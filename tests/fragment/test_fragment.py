"""The type `Fragment`: its statements, its checks and its copies."""

from dataclasses import replace

import numpy as np
import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.evidence.factors import BayesFactors
from jigsaw_crl.evidence.priors import MISSED
from jigsaw_crl.fragment.fragment import Statements

from .examples import BLOCKS, fragment, statements


def test_a_block_is_an_ancestor_of_those_below_it_only():
    f = fragment()
    assert f.is_block_ancestor("a", "d")
    assert f.is_block_ancestor("b", "c")
    assert not f.is_block_ancestor("d", "a")
    assert not f.is_block_ancestor("a", "b")
    assert f.block_of("b") == frozenset("ab")
    with pytest.raises(InputError, match="no label 'z'"):
        f.block_of("z")


def test_exact_statements_are_infinite_evidence():
    f = fragment(bayes=None, statements=statements())
    assert f.evidence[0, 2] == np.inf
    assert f.evidence[3, 0] == -np.inf
    assert np.isnan(f.evidence[0, 1])
    assert np.isnan(np.diagonal(f.evidence)).all()


def test_a_line_that_may_lean_and_a_missed_direction_weaken_what_is_said():
    def summary(lean, single, rank_one="no-ancestor"):
        ancestor, apart = np.zeros((1, 2, 2)), np.full((2, 2), -9.0)
        ancestor[0, 0, 1] = 6.0
        bayes = BayesFactors((1.0,), ancestor, apart, np.full((2, 2), lean), (True, single))
        piece = replace(fragment(), **{**two_labels, "bayes": bayes}, rank_one=rank_one)
        return piece.evidence[0, 1]

    two = PartialOrder.from_pairs([frozenset("x"), frozenset("y")], [])
    two_labels = {"labels": ("x", "y"), "blocks": two.elements, "block_order": two}
    two_labels |= {"districts": None, "basis": None}
    plain = summary(0.0, False)
    assert summary(20.0, False) < 0 < summary(3.0, False) < plain
    assert summary(0.0, True) == pytest.approx(plain + np.log(MISSED), abs=0.02)
    assert np.isnan(summary(0.0, True, None))


def test_arrays_are_read_only_copies():
    basis = np.ones((4, 6))
    f = fragment(basis=basis)
    basis[:] = 0
    assert f.basis.all()
    for array in (f.basis, f.evidence, f.bayes.ancestor, f.bayes.district):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    sizes = {"control": 9}
    held = fragment(n_samples=sizes)
    sizes["control"] = 1
    assert held.n_samples["control"] == 9


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"labels": ()}, "labels"),
        ({"block_order": PartialOrder.from_pairs(BLOCKS[:2], [])}, "order of the blocks"),
        ({"bayes": BayesFactors((1.0,), np.full((1, 4, 4), np.inf), np.eye(4))}, "not finite"),
        ({"statements": Statements(np.zeros((3, 3)))}, "wrong shape"),
        ({"basis": np.zeros((3, 6))}, "one row per label"),
    ],
)
def test_what_no_file_can_hold_is_refused_in_a_fragment_too(change, says):
    """What a file can hold is in test_file.py: it is checked by the same constructor."""
    with pytest.raises(InputError, match=says) as caught:
        fragment(**change)
    assert caught.value.client == "lab-1"
    with pytest.raises(InputError, match=says):
        replace(fragment(), **change)
