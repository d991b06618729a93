"""The fragment's file: what is written, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.fragment.fragment import Fragment, Outcome, Statements

from .examples import (
    JSON_VALUES,
    assert_one_line,
    assert_same,
    document,
    fragment,
    fragments,
    statements,
)

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
    assert_same(f, again)
    assert_same(f, Fragment.from_json(f.to_json().encode()))
    if f.statements is not None:
        assert again.statements.one_of == f.statements.one_of
        assert again.statements.spouses == f.statements.spouses
        assert np.array_equal(again.statements.ancestor, f.statements.ancestor)


@given(fragments())
def test_any_fragment_survives_its_file(f):
    assert_same(f, Fragment.from_json(f.to_json()))


def wide(value):
    return [[value] * 4 for _ in range(4)]


EVIDENCE, FINDING = document()["bayes"], document()["findings"][0]


def bayes(**changes):
    """Evidence of one scale, with a change."""
    whole = {"scales": [0.5], "ancestor": [wide(0.0)], "district": wide(0.0), "lean": wide(0.0)}
    return {"bayes": {**whole, "single": [], "settled": [], **changes}}


def stated(**changes):
    return {"statements": {"ancestor": wide(0), "one_of": [], "spouses": None, **changes}}


def found(**changes):
    return {"findings": [FINDING | changes]}


def labelled(last):
    return {"labels": ["a", "b", "c", last]}


TOUCHED = "control characters"
BAD_DOCUMENTS = {
    "no client": ({"client": ""}, "'client'"),
    "long client": ({"client": "x" * 501}, "'client'"),
    "no labels": ({"labels": []}, "'labels'"),
    "too many labels": ({"labels": [f"l{i}" for i in range(5001)]}, "at most 5000"),
    "repeated label": (labelled("c"), "twice"),
    "blank label": (labelled(" "), "empty"),
    "label out of range": ({"blocks": [[0, 1], [2], [9]]}, "hold together"),
    "negative label": ({"blocks": [[0, 1], [2], [-1]]}, "blocks"),
    "missing label": ({"blocks": [[0, 1], [2]], "block_covers": []}, "partition"),
    "label in two blocks": ({"blocks": [[0, 1], [2], [2, 3]]}, "partition"),
    "cyclic order": ({"block_covers": [[0, 1], [1, 0]]}, "cycle"),
    "order of nothing": ({"block_covers": [[0, 7]]}, "hold together"),
    "district over blocks": ({"districts": [[0], [1, 2], [3]]}, "several blocks"),
    "missing district": ({"districts": [[0], [1], [2]]}, "partition"),
    "size zero": ({"n_samples": {"control": 0}}, "n_samples"),
    "evidence of wrong size": (bayes(ancestor=[[[0.0]]], district=[[0.0]]), "wrong shape"),
    "district not symmetric": (bayes(district=[[0, 1.0, 0, 0], *wide(0.0)[1:]]), "not symmetric"),
    "statement of unknown value": (stated(ancestor=wide(2)), "statements"),
    "statement about itself": (stated(one_of=[[[0, 1], 1]]), "names a label"),
    "own spouse": (stated(spouses=[[1, 1]]), "spouse"),
    "scale below zero": ({"bayes": {**EVIDENCE, "scales": [-0.5, 0.05]}}, "bayes.scales.0"),
    "statement that is a truth value": (stated(ancestor=wide(True)), "statements.ancestor.0.0"),
    "label that is not in normal form": (labelled("\ufb01"), "NFKC"),
    "labels that differ by case": (labelled("A"), "'a' and 'A' differ only"),
    "client with a line break": ({"client": "lab\n1"}, "U.000A"),
    "regime with a zero-width space": ({"n_samples": {"a\u200b": 3}}, "U.200B"),
    "finding about another client": (found(client="lab-2"), "'lab-2'"),
    "finding with an escape sequence": (found(message="\x1b]0;mine\x07"), TOUCHED),
    "outcome with an escape sequence": (
        {"outcome": {"code": "partial", "message": "\x1b[2J", "remedy": ""}},
        TOUCHED,
    ),
    "more findings than labels allow": ({"findings": [FINDING] * 201}, "at most 200"),
    "too few single labels": ({"bayes": {**EVIDENCE, "single": [True]}}, "wrong shape"),
}


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
@pytest.mark.slow
def test_a_fragment_that_breaks_the_schema_is_refused_in_one_line(case):
    change, says = BAD_DOCUMENTS[case]
    with pytest.raises(InputError, match=says) as caught:
        Fragment.from_json(json.dumps(document(**change)), path="lab-1.json")
    assert "file 'lab-1.json'" in str(caught.value)
    assert_one_line(caught.value)


@pytest.mark.parametrize("field", sorted(document()))
def test_every_field_is_needed(field):
    short = document()
    del short[field]
    with pytest.raises(InputError):
        Fragment.from_json(json.dumps(short))


def test_numbers_that_json_does_not_have_are_refused():
    for word in ("NaN", "Infinity", "-Infinity"):
        text = json.dumps(document()).replace('"scales": [0.5', f'"scales": [{word}')
        with pytest.raises(InputError, match="is not valid"):
            Fragment.from_json(text)


def test_a_finding_without_a_client_is_about_the_fragments_own():
    one = Fragment.from_json(json.dumps(document(findings=[FINDING | {"client": None}])))
    assert [f.client for f in one.findings] == ["lab-1"]


@given(JSON_VALUES, st.sampled_from(sorted(document())))
def test_any_value_of_a_field_is_read_or_refused_in_one_line(value, field):
    try:
        f = Fragment.from_json(json.dumps(document(**{field: value})))
    except InputError as error:
        assert_one_line(error)
        return
    assert_same(f, Fragment.from_json(f.to_json()))
