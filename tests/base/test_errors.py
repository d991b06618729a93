"""Errors say where, what and how to go on, in one line, and survive pickling."""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError, choose, import_optional
from jigsaw_crl.base.order import CycleError

places = st.fixed_dictionaries(
    {}, optional={key: st.none() | st.text(min_size=1) for key in ("client", "regime", "path")}
)


@given(st.text(), st.text(), places)
def test_every_message_is_one_line(what, remedy, place):
    text = str(InputError(what, remedy, **place))
    assert len(text.splitlines()) <= 1


@pytest.mark.parametrize("kind", [InputError, CycleError])
@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_copies_keep_type_message_and_place(kind, again):
    error = kind("it is wrong", "Correct it.", client="lab", regime="valve", path="lab.csv")
    twin = again(error)
    assert type(twin) is kind
    assert (
        str(twin)
        == str(error)
        == "file 'lab.csv', client 'lab', regime 'valve': it is wrong. Correct it."
    )
    assert vars(twin) == vars(error)


@given(places, places)
def test_a_located_error_keeps_what_the_new_place_does_not_say(first, second):
    error = InputError("it is wrong", "Correct it.", **first).located(**second)
    for key in ("client", "regime", "path"):
        given_last = second.get(key)
        assert getattr(error, key) == (first.get(key) if given_last is None else given_last)


def test_an_unknown_name_is_answered_with_the_known_ones():
    known = {"red": 1, "blue": 2}
    assert choose("blue", known, "colour") == 2
    with pytest.raises(InputError, match=r"there is no colour 'pink'. Choose one of red, blue\."):
        choose("pink", known, "colour")


def test_a_missing_package_is_answered_with_the_extra_that_installs_it():
    assert import_optional("json", "JSON", "text") is __import__("json")
    with pytest.raises(InputError, match=r"Paint is not installed. .*'\.\[art\]'"):
        import_optional("jigsaw_crl.no_such_module", "Paint", "art")
