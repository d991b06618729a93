"""The record of the fragments that were used."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.ledger import Head
from jigsaw_crl.federated.seen import LastUsed, Seen
from jigsaw_crl.federated.signing import Signed

from ..fragment.examples import assert_one_line, fragment


def signed(serial, digest="d"):
    when = datetime.now(UTC)
    return Signed(fragment(), "lab-1", "key", "study", "first", when, serial, digest, "")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("seen") / "site-keys.seen.json"


@given(
    st.dictionaries(
        st.text(), st.builds(LastUsed, serial=st.integers(-(2**70), 2**70), digest=st.text())
    ),
    st.dictionaries(st.text(), st.text()),
    st.builds(Head, entries=st.integers(0, 9), hash=st.text()),
)
def test_a_record_read_back_is_the_one_saved(path, last, rounds, head):
    record = Seen(path, last, rounds, head)
    record.save()
    assert Seen.at(path) == record
    assert Seen.beside(path.with_name("site-keys.toml")) == path


def test_a_record_that_does_not_exist_is_empty(tmp_path):
    assert Seen.at(tmp_path / "seen.json").last == {}


@given(st.integers(), st.integers())
def test_after_a_fragment_was_used_only_newer_ones_are_accepted(first, second):
    record = Seen(Path("seen.json"), {}).updated([signed(first)], "r")
    if second > first:
        record.check(signed(second))
        return
    for again in (False, True):
        with pytest.raises(InputError, match="replayed") as caught:
            record.check(signed(second, "another"), again=again)
        assert_one_line(caught.value)


def test_the_last_fragment_used_is_accepted_again_on_request():
    one = signed(5)
    record = Seen(Path("seen.json"), {}).updated([one], "r")
    record.check(one, again=True)
    with pytest.raises(InputError, match="a result was made with it already"):
        record.check(one)


def test_sites_do_not_affect_each_other():
    record = Seen(Path("seen.json"), {}).updated([signed(5)], "r")
    record.check(replace(signed(1), site="lab-2"))


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[",
        '{"format": "jigsaw-crl/seen", "version": 3, "sites": {}}',
        '{"format": "jigsaw-crl/seen", "version": 2, "sites": {"a": {"serial": "1"}}}',
    ],
)
def test_an_unreadable_record_is_not_taken_for_an_empty_one(text, tmp_path):
    (tmp_path / "seen.json").write_text(text)
    with pytest.raises(InputError, match="record of used fragments") as caught:
        Seen.at(tmp_path / "seen.json")
    assert_one_line(caught.value)
