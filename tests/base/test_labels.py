"""One rule for labels: what is refused, which spellings are the same, and safe printing."""

import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.labels import label_fault, label_key, normal_label, safe_text

from ..study.tables import client_of


@pytest.mark.parametrize(
    ("label", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("x" * 501, "500"),
        ("a\nb", "U+000A"),
        ("a\x7fb", "U+007F"),
        ("a\x9bb", "U+009B"),
        ("\x1b[31mred", "U+001B"),
        ("a\u200bb", "ZERO WIDTH SPACE"),
        ("a\u202eb", "RIGHT-TO-LEFT OVERRIDE"),
        ("a\u2066b", "LEFT-TO-RIGHT ISOLATE"),
        ("a\u2028b", "LINE SEPARATOR"),
        ("a\ufe0f", "VARIATION SELECTOR-16"),
        ("a\u3164", "HANGUL FILLER"),
        (" a", "space"),
        ("a ", "space"),
        ("ﬁ", "NFKC, which is 'fi'"),
        ("e\u0301", "NFKC"),
    ],
)
def test_what_is_wrong_with_a_label_is_said(label, says):
    assert says in label_fault(label)


@pytest.mark.parametrize(
    "label", ["pump", "5 μM", "Größe", "水泵", "مضخة", "z1|*", "a b", "=x", "😀"]
)
def test_ordinary_labels_of_any_script_are_accepted(label):
    assert label_fault(label) == ""
    assert normal_label(label) == label


@given(st.text(max_size=12))
def test_the_normal_form_is_stable_and_has_no_fault_that_it_could_mend(text):
    normal = normal_label(text)
    assert normal_label(normal) == normal
    fault = label_fault(normal)
    assert "NFKC" not in fault
    assert "space" not in fault or "SPACE" in fault


@given(st.text(max_size=12))
def test_spellings_that_look_alike_have_one_key(text):
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert label_key(unicodedata.normalize(form, text)) == label_key(text)
    assert label_key(text.replace(" ", "  ")) == label_key(text)


@given(st.text(st.characters(), max_size=20))
def test_printed_text_holds_no_command_for_a_terminal_and_json_keeps_its_meaning(text):
    for character in safe_text(text):
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
        assert unicodedata.bidirectional(character) not in (
            "RLO",
            "LRO",
            "RLE",
            "LRE",
            "RLI",
            "LRI",
        )
    assert json.loads(safe_text(json.dumps(text, ensure_ascii=False))) == text


def test_a_client_brings_its_labels_and_its_name_into_normal_form():
    rng = np.random.default_rng(0)
    labels = ("control", " 5 \N{MICRO SIGN}M", "Gro\u0308ße")
    rows = {label: rng.normal(size=(40, 3)) for label in labels}
    client = client_of(rows, "Lab\N{NO-BREAK SPACE}1 ")
    assert client.labels == ("5 \N{GREEK SMALL LETTER MU}M", "Größe")
    assert client.name == "Lab 1"


def test_numbers_of_17_digits_are_told_apart():
    assert label_key("12345678901234567") != label_key("12345678901234568")
    assert label_key("12345678901234567") == label_key("12345678901234567.0")
    assert label_key("0.10") == label_key("1e-1")
