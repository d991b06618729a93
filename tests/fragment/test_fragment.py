"""Fragments: what they say, their file, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.order import PartialOrder
from jigsaw_crl.evidence.priors import IN_DISTRICT, MISSED
from jigsaw_crl.fragment import BayesFactors, Fragment, Outcome, Statements

LABELS = ("a", "b", "c", "d")
BLOCKS = (frozenset("ab"), frozenset("c"), frozenset("d"))
ORDER = PartialOrder.from_pairs(BLOCKS, [(BLOCKS[0], BLOCKS[1]), (BLOCKS[1], BLOCKS[2])])
DISTRICTS = (frozenset("a"), frozenset("b"), frozenset("c"), frozenset("d"))


def evidence(seed=0, size=4):
    rng = np.random.default_rng(seed)
    ancestor, district = rng.normal(size=(2, size, size)) * 9, rng.normal(size=(size, size))
    ancestor[:, 0, 1] = np.nan
    for matrix in ancestor:
        np.fill_diagonal(matrix, np.nan)
    lean = np.abs(rng.normal(size=(size, size)))
    lean[0, 1] = lean[1, 0] = np.nan
    single = tuple(rng.random(size) < 0.5)
    return BayesFactors((0.5, 0.05), ancestor, district + district.T, lean + lean.T, single)


def statements():
    ancestor = np.zeros((4, 4), dtype=np.int8)
    ancestor[0, 2], ancestor[0, 1], ancestor[1, 0] = 1, -1, -1
    spouses = frozenset([frozenset("ab")])
    return Statements(ancestor, ((frozenset("ab"), "d"),), spouses)


def fragment(**changes):
    whole = {
        "client": "lab-1",
        "method": "null-cone",
        "labels": LABELS,
        "blocks": BLOCKS,
        "block_order": ORDER,
        "districts": DISTRICTS,
        "bayes": evidence(),
        "n_samples": {"control": 100, "a": 50},
        "findings": (
            Finding("weak", "warning", "seen", "do", 0.25, None, "lab-1", "a"),
            Finding("odd", "info", "seen", "", None, 3.0),
        ),
        "basis": np.arange(24.0).reshape(4, 6),
        **changes,
    }
    return Fragment(**whole)


def document(**changes):
    return {**json.loads(fragment().to_json()), **changes}


def same(one, two):
    assert one.to_json() == two.to_json()
    for name in ("client", "method", "labels", "outcome", "findings", "districts", "blocks"):
        assert getattr(one, name) == getattr(two, name)
    assert one.block_order == two.block_order
    assert np.array_equal(one.evidence, two.evidence, equal_nan=True)
    assert (one.n_samples is None) == (two.n_samples is None)
    assert dict(one.n_samples or {}) == dict(two.n_samples or {})


# -- what it says ---------------------------------------------------------------------------------


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


def test_the_paper_s_method_has_no_pairwise_evidence():
    f = fragment(method="paper", bayes=None, districts=None)
    assert np.isnan(f.evidence).all()
    assert f.districts is None


def test_evidence_rises_with_the_bayes_factor_and_a_district_takes_it_away():
    def summary(yes, district):
        ancestor = np.zeros((1, 2, 2))
        ancestor[0, 0, 1] = yes
        apart = np.full((2, 2), district)
        two = PartialOrder.from_pairs([frozenset("x"), frozenset("y")], [])
        f = Fragment(
            "k",
            "null-cone",
            ("x", "y"),
            two.elements,
            two,
            bayes=BayesFactors((1.0,), ancestor, apart),
        )
        return f.evidence[0, 1]

    assert summary(6, -9) > summary(2, -9) > 0 > summary(-6, -9)
    # Inside a district only the prior is left: one direction against the other and neither.
    assert summary(6, 30) == pytest.approx(np.log(IN_DISTRICT / (1 - IN_DISTRICT)), abs=0.01)


def test_a_line_that_may_lean_and_a_missed_direction_weaken_what_is_said():
    def summary(lean, single):
        ancestor, apart = np.zeros((1, 2, 2)), np.full((2, 2), -9.0)
        ancestor[0, 0, 1] = 6.0
        bayes = BayesFactors((1.0,), ancestor, apart, np.full((2, 2), lean), (True, single))
        return replace(fragment(), **{**two_labels, "bayes": bayes}).evidence[0, 1]

    two = PartialOrder.from_pairs([frozenset("x"), frozenset("y")], [])
    two_labels = {"labels": ("x", "y"), "blocks": two.elements, "block_order": two}
    two_labels |= {"districts": None, "basis": None}
    plain = summary(0.0, False)
    assert summary(20.0, False) < 0 < summary(3.0, False) < plain
    assert summary(0.0, True) == pytest.approx(plain + np.log(MISSED), abs=0.02)


def test_a_file_from_before_leaning_is_read_as_without():
    old = document()
    del old["bayes"]["lean"], old["bayes"]["single"]
    bayes = Fragment.from_json(json.dumps(old)).bayes
    assert not bayes.lean.any()
    assert not any(bayes.single)


def test_transform_is_the_product_with_the_basis():
    f, rows = fragment(), np.random.default_rng(0).normal(size=(7, 6))
    assert np.allclose(f.transform(rows), rows @ f.basis.T)
    with pytest.raises(InputError, match="6 features"):
        f.transform(rows[:, :5])
    with pytest.raises(InputError, match="6 features"):
        f.transform(rows[0])
    with pytest.raises(InputError, match="stays at the client"):
        f.without_basis().transform(rows)


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


# -- the file -------------------------------------------------------------------------------------

CASES = {
    "from samples": {},
    "exact": {"bayes": None, "statements": statements(), "n_samples": None},
    "spouses unknown": {
        "bayes": None,
        "statements": Statements(statements().ancestor),
        "n_samples": None,
    },
    "paper": {"method": "paper", "bayes": None, "districts": None},
    "stopped early": {"outcome": Outcome("budget", "The search stopped.", "Raise the budget.")},
}


@pytest.mark.parametrize("case", CASES)
def test_a_fragment_read_back_is_the_one_written(case):
    f = fragment(**CASES[case])
    again = Fragment.from_json(f.to_json())
    same(f, again)
    same(f, Fragment.from_json(f.to_json().encode()))
    if f.statements is not None:
        assert again.statements.one_of == f.statements.one_of
        assert again.statements.spouses == f.statements.spouses
        assert np.array_equal(again.statements.ancestor, f.statements.ancestor)


@st.composite
def fragments(draw):
    text = st.text(min_size=1, max_size=8).filter(lambda s: s.strip() and s.isprintable())
    labels = draw(st.lists(text, min_size=1, max_size=6, unique=True))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    group = rng.integers(0, len(labels), len(labels))
    blocks = tuple(
        frozenset(x for x, g in zip(labels, group, strict=True) if g == value)
        for value in np.unique(group)
    )
    relation = np.triu(rng.random((len(blocks),) * 2) < 0.5, 1)
    return Fragment(
        draw(text),
        "null-cone",
        tuple(labels),
        blocks,
        PartialOrder.from_matrix(blocks, relation),
        bayes=evidence(int(rng.integers(1e9)), len(labels)) if len(labels) > 1 else None,
    )


@given(fragments())
@settings(max_examples=60, deadline=None)
def test_any_fragment_survives_its_file(f):
    same(f, Fragment.from_json(f.to_json()))


def test_the_file_holds_no_basis_and_no_field_beyond_the_contract():
    written = json.loads(fragment().to_json())
    assert set(written) == {
        *("format", "version", "client", "method", "labels", "blocks", "block_covers"),
        *("districts", "n_samples", "outcome", "findings", "bayes", "statements"),
    }
    assert Fragment.from_json(fragment().to_json()).basis is None
    assert "NaN" not in fragment().to_json()


GARBAGE = {
    "not JSON": ("{", "not valid JSON"),
    "empty": ("", "not valid JSON"),
    "not text": (b"\xff\xfe\x00", "not valid JSON"),
    "too deep": ("[" * 200_000, "not valid JSON"),
    "a list": ("[]", "not a jigsaw-crl fragment"),
    "null": ("null", "not a jigsaw-crl fragment"),
    "another file": ('{"format": "other"}', "not a jigsaw-crl fragment"),
}


@pytest.mark.parametrize("case", GARBAGE)
def test_what_is_no_fragment_is_refused_in_one_line(case):
    text, says = GARBAGE[case]
    with pytest.raises(InputError, match=says) as caught:
        Fragment.from_json(text, path="in/lab-1.json")
    assert str(caught.value).startswith("file 'in/lab-1.json'")
    assert "\n" not in str(caught.value)


def wide(value):
    return [[value] * 4 for _ in range(4)]


BAD_DOCUMENTS = {
    "newer": ({"version": 2}, "Upgrade"),
    "older": ({"version": 0}, "Write the fragment again"),
    "unknown field": ({"rows": [[1, 2]]}, "'rows'"),
    "unknown method": ({"method": "guess"}, "'method'"),
    "no client": ({"client": ""}, "'client'"),
    "long client": ({"client": "x" * 501}, "'client'"),
    "labels not text": ({"labels": ["a", "b", "c", 4]}, "labels"),
    "no labels": ({"labels": []}, "'labels'"),
    "repeated label": ({"labels": ["a", "b", "c", "c"]}, "twice"),
    "blank label": ({"labels": ["a", "b", "c", " "]}, "empty"),
    "label out of range": ({"blocks": [[0, 1], [2], [9]]}, "hold together"),
    "negative label": ({"blocks": [[0, 1], [2], [-1]]}, "blocks"),
    "label by name": ({"blocks": [["a", "b"], ["c"], ["d"]]}, "blocks"),
    "missing label": ({"blocks": [[0, 1], [2]], "block_covers": []}, "partition"),
    "label in two blocks": ({"blocks": [[0, 1], [2], [2, 3]]}, "partition"),
    "empty block": ({"blocks": [[0, 1], [2], [3], []]}, "partition"),
    "cyclic order": ({"block_covers": [[0, 1], [1, 0]]}, "cycle"),
    "order of nothing": ({"block_covers": [[0, 7]]}, "hold together"),
    "district over blocks": ({"districts": [[0], [1, 2], [3]]}, "several blocks"),
    "missing district": ({"districts": [[0], [1], [2]]}, "partition"),
    "size zero": ({"n_samples": {"control": 0}}, "n_samples"),
    "size not whole": ({"n_samples": {"control": 1.5}}, "n_samples"),
    "size beyond counting": ({"n_samples": {"control": 10**30}}, "n_samples"),
    "evidence of wrong size": (
        {"bayes": {"scales": [0.5], "ancestor": [[[0.0]]], "district": [[0.0]]}},
        "wrong shape",
    ),
    "ragged evidence": (
        {"bayes": {"scales": [0.5], "ancestor": [[[0.0, 1.0], [0.0]]], "district": wide(0.0)}},
        "hold together",
    ),
    "district evidence not symmetric": (
        {
            "bayes": {
                "scales": [0.5],
                "ancestor": [wide(0.0)],
                "district": [[0.0, 1.0, 0.0, 0.0], *wide(0.0)[1:]],
            }
        },
        "not symmetric",
    ),
    "statement of unknown value": (
        {"statements": {"ancestor": wide(2), "one_of": [], "spouses": None}},
        "statements",
    ),
    "statement about itself": (
        {"statements": {"ancestor": wide(0), "one_of": [[[0, 1], 1]], "spouses": None}},
        "names a label",
    ),
    "own spouse": (
        {"statements": {"ancestor": wide(0), "one_of": [], "spouses": [[1, 1]]}},
        "spouse",
    ),
    "finding of unknown severity": (
        {
            "findings": [
                {
                    **dict.fromkeys(("value", "threshold", "client", "regime")),
                    **dict.fromkeys(("check", "message", "remedy"), ""),
                    "severity": "fatal",
                }
            ]
        },
        "severity",
    ),
}


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
def test_a_fragment_that_breaks_the_schema_is_refused_in_one_line(case):
    change, says = BAD_DOCUMENTS[case]
    with pytest.raises(InputError, match=says) as caught:
        Fragment.from_json(json.dumps(document(**change)), path="lab-1.json")
    assert "file 'lab-1.json'" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", sorted(document()))
def test_every_field_is_needed(field):
    short = document()
    del short[field]
    with pytest.raises(InputError):
        Fragment.from_document(short)


def test_numbers_that_json_does_not_have_are_refused():
    for word in ("NaN", "Infinity", "-Infinity"):
        text = json.dumps(document()).replace('"scales": [0.5', f'"scales": [{word}')
        with pytest.raises(InputError, match="scales"):
            Fragment.from_json(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
        ),
        max_leaves=8,
    ),
    st.sampled_from(sorted(document())),
)
@settings(max_examples=200, deadline=None)
def test_whatever_stands_in_a_field_it_is_read_or_refused(value, field):
    try:
        f = Fragment.from_document(document(**{field: value}))
    except InputError:
        return
    same(f, Fragment.from_json(f.to_json()))


# -- what cannot be made --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"labels": ()}, "labels"),
        ({"labels": ("a", "b", "c", "c")}, "repeated"),
        ({"blocks": BLOCKS[:2]}, "partition"),
        ({"block_order": PartialOrder.from_pairs(BLOCKS[:2], [])}, "order of the blocks"),
        ({"districts": DISTRICTS[:2]}, "partition"),
        ({"bayes": BayesFactors((1.0,), np.zeros((1, 3, 3)), np.zeros((3, 3)))}, "wrong shape"),
        ({"bayes": BayesFactors((1.0,), np.full((1, 4, 4), np.inf), np.eye(4))}, "not finite"),
        ({"statements": Statements(np.zeros((3, 3)))}, "wrong shape"),
        ({"statements": Statements(np.zeros((4, 4)), ((frozenset("z"), "a"),))}, "names a label"),
        ({"statements": Statements(np.zeros((4, 4)), (), frozenset([frozenset("az")]))}, "spouse"),
        ({"basis": np.zeros((3, 6))}, "one row per label"),
    ],
)
def test_a_fragment_that_contradicts_itself_cannot_be_made(change, says):
    with pytest.raises(InputError, match=says) as caught:
        fragment(**change)
    assert caught.value.client == "lab-1"
    with pytest.raises(InputError, match=says):
        replace(fragment(), **change)
