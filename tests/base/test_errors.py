"""Errors say where, what and how to go on, in one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError, choose, import_optional

places = st.fixed_dictionaries(
    {}, optional={key: st.none() | st.text(min_size=1) for key in ("client", "regime", "path")}
)


@given(st.text(), st.text(), places)
def test_every_message_is_one_line(what, remedy, place):
    """So that no other test of an error need look for a second one."""
    text = str(InputError(what, remedy, **place))
    assert len(text.splitlines()) <= 1


def test_an_unknown_name_is_answered_with_the_known_ones():
    known = {"red": 1, "blue": 2}
    assert choose("blue", known, "colour") == 2
    with pytest.raises(InputError, match=r"there is no colour 'pink'. Choose one of red, blue\."):
        choose("pink", known, "colour")


def test_a_missing_package_is_answered_with_the_extra_that_installs_it():
    assert import_optional("json", "JSON", "text") is __import__("json")
    with pytest.raises(InputError, match=r"Paint is not installed. .*'\.\[art\]'"):
        import_optional("jigsaw_crl.no_such_module", "Paint", "art")
