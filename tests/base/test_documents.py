"""Closed documents: what is refused, and how it is said."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.documents import Closed, Document, Number, WholeNumber
from jigsaw_crl.base.errors import InputError


class Part(Closed):
    size: Number


class Parcel(Document):
    kind = "parcel"
    remedy = "Wrap it again."

    format: Literal["parcel"]
    version: Literal[2]
    count: WholeNumber = 0
    part: Part | None = None


HEAD = {"format": "parcel", "version": 2}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "this is not a jigsaw-crl parcel. Wrap it again."),
        ({}, "this is not a jigsaw-crl parcel. Wrap it again."),
        ({"format": "letter", "version": 9}, "this is not a jigsaw-crl parcel. Wrap it again."),
        ({"format": "parcel"}, "the parcel has no field 'version'. Wrap it again."),
        (
            {**HEAD, "version": 3},
            "the parcel has format version 3, this program reads 2. Upgrade jigsaw-crl.",
        ),
        (
            {**HEAD, "version": 1},
            "the parcel has format version 1, this program reads 2. Wrap it again.",
        ),
        ({**HEAD, "rows": []}, "the parcel has an unknown field 'rows'. Wrap it again."),
        (
            {**HEAD, "part": {"size": 1.0, "rows": []}},
            "the parcel has an unknown field 'part.rows'. Wrap it again.",
        ),
        (
            {**HEAD, "count": "3"},
            "the field 'count' of the parcel is not valid: Input should be a valid integer. "
            "Wrap it again.",
        ),
        (
            {**HEAD, "part": {"size": float("inf")}},
            "the field 'part.size' of the parcel is not valid: Input should be a finite number. "
            "Wrap it again.",
        ),
    ],
)
def test_the_first_fault_is_named_with_the_remedy(document, says):
    with pytest.raises(InputError) as caught:
        Parcel.from_document(document)
    assert str(caught.value) == says


def test_the_file_and_the_client_are_named(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"format": "parcel", "client": "lab-1", "version": 2}')
    with pytest.raises(InputError, match=r"a\.json', client 'lab-1': the parcel has an unknown"):
        Parcel.from_file(path)


@given(st.text(st.characters()) | st.binary() | st.just("[" * 100_000))
def test_any_text_is_read_or_refused_in_one_line(text):
    with pytest.raises(InputError) as caught:
        Parcel.from_text(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "parcel", "version": 2, "count": 1, "count": 2}',
        '{"format": "parcel", "version": 2, "part": {"size": 1.0, "size": 1.0}}',
    ],
)
def test_a_field_that_occurs_twice_is_refused(text):
    with pytest.raises(InputError, match="a field occurs twice"):
        Parcel.from_text(text)


def test_names_of_fields_inside_texts_are_no_fields():
    more = r'"a\"": ":", "b": [1, {"c": "\\"}, [{}, {"d\"\n:": 1}]]'
    text = f'{{"format": "parcel", "version": 2, {more}}}'
    with pytest.raises(InputError, match="unknown field"):
        Parcel.from_text(text)


def test_a_long_name_is_quoted_in_part():
    with pytest.raises(InputError) as caught:
        Parcel.from_document({**HEAD, "x" * 10_000: 1})
    assert len(str(caught.value)) < 200
