"""Closed documents: what is refused, and how it is said."""

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
        ([], "this is not a jigsaw-crl parcel. Wrap"),
        ({"format": "letter", "version": 9}, "this is not a jigsaw-crl parcel. Wrap"),
        ({"format": "parcel"}, "no field 'version'. Wrap"),
        ({**HEAD, "version": 3}, "this program reads 2. Upgrade"),
        ({**HEAD, "version": 1}, "this program reads 2. Wrap"),
        ({**HEAD, "rows": []}, "an unknown field 'rows'. Wrap"),
        ({**HEAD, "part": {"size": 1.0, "rows": []}}, "an unknown field 'part.rows'. Wrap"),
        ({**HEAD, "count": "3"}, "'count' of the parcel is not valid"),
        ({**HEAD, "part": {"size": float("inf")}}, "'part.size' of the parcel is not valid"),
    ],
)
def test_the_first_fault_is_named_with_the_remedy(document, says):
    with pytest.raises(InputError) as caught:
        Parcel.from_document(document)
    assert says in str(caught.value)


def test_the_file_and_the_client_are_named(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"format": "parcel", "client": "lab-1", "version": 2}')
    with pytest.raises(InputError, match=r"a\.json', client 'lab-1': the parcel has an unknown"):
        Parcel.from_file(path)


@given(st.text(st.characters()) | st.binary() | st.just("[" * 100_000))
def test_any_text_is_refused(text):
    with pytest.raises(InputError):
        Parcel.from_text(text)


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
