"""The record of the fragments that were used."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.seen import Seen
from jigsaw_crl.federated.signing import Signed

from ..fragment.examples import assert_one_line, fragment


def signed(serial, digest="d"):
    when = datetime.now(UTC)
    return Signed(fragment(), "lab-1", "key", "study", "first", when, serial, digest, "")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "site-keys.seen.json"


def accepted(path, round_name, *serials, digest="d"):
    """Log fragments of lab-1 that a round accepts."""
    for serial in serials:
        Seen(path).ledger.append(
            study=None, round_name=round_name, site="lab-1", serial=serial, digest=digest
        )


def used(path, round_name, *serials):
    """The record after a round has used fragments of lab-1."""
    accepted(path, round_name, *serials)
    Seen.at(path).save(round_name)
    return Seen.at(path)


def test_what_was_used_follows_from_the_log_of_rounds_with_a_result(path):
    accepted(path, "failed", 9)
    record = used(path, "first", 5)
    assert (set(record.rounds), record.last["lab-1"].serial) == ({"first"}, 5)
    accepted(path, "first", 7)
    assert Seen.at(path).last["lab-1"].serial == 5
    assert used(path, "second", 6).last["lab-1"].serial == 7
    assert Seen.beside(path.with_name("site-keys.toml")) == path


def test_a_record_that_does_not_exist_is_empty(tmp_path):
    assert Seen.at(tmp_path / "seen.json").last == {}


@pytest.mark.parametrize("second", [-4, 4, 5, 6, 10**30])
def test_after_a_fragment_was_used_only_newer_ones_are_accepted(path, second):
    record = used(path, "r", 5)
    if second > 5:
        record.check(signed(second))
        return
    for again in (False, True):
        with pytest.raises(InputError, match="replayed") as caught:
            record.check(signed(second, "another"), again=again)
        assert_one_line(caught.value)


def test_the_last_fragment_used_is_accepted_again_on_request(path):
    record = used(path, "r", 5)
    record.check(signed(5), again=True)
    with pytest.raises(InputError, match="a result was made with it already"):
        record.check(signed(5))


def test_sites_do_not_affect_each_other(path):
    used(path, "r", 5).check(replace(signed(1), site="lab-2"))


def test_a_log_that_was_cut_off_is_refused(path):
    ledger = used(path, "r", 5, 6).ledger
    ledger.path.write_bytes(ledger.path.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(InputError, match="cut off"):
        Seen.at(path)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[",
        '{"format": "jigsaw-crl/seen", "version": 4, "rounds": {}}',
        '{"format": "jigsaw-crl/seen", "version": 3, "rounds": {"a": 1}}',
    ],
)
def test_an_unreadable_record_is_not_taken_for_an_empty_one(text, tmp_path):
    (tmp_path / "seen.json").write_text(text)
    with pytest.raises(InputError, match="record of used fragments") as caught:
        Seen.at(tmp_path / "seen.json")
    assert_one_line(caught.value)
