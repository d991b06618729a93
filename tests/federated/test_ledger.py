"""The hash-chained log of used fragments, and what follows from it."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.ledger import Ledger

from ..fragment.examples import assert_one_line


def received(serial, digest=None, site="lab-1"):
    """What the log needs of a fragment."""
    digest = f"d{serial}" if digest is None else digest
    return SimpleNamespace(site=site, serial=serial, digest=digest, envelope=None)


def used(path, *serials, round_name="r", **more):
    """The log after a round has used fragments."""
    log = Ledger.read(path).having([received(s, **more) for s in serials], round_name, "s")
    log.save()
    return Ledger.read(path)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.jsonl"


def test_the_log_holds_what_was_used_in_order_and_once(path):
    log = used(path, 0, 1, 2, 3)
    assert [line.digest for line in log.lines] == ["d0", "d1", "d2", "d3"]
    assert used(path, 2).text == log.text
    assert Ledger.read(path.with_name("none")).lines == ()


@given(st.data())
def test_no_line_can_be_changed_removed_or_swapped(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    hashes = used(path, 0, 1, 2, 3).hashes
    lines = path.read_bytes().splitlines(keepends=True)
    which = data.draw(st.integers(0, 3))
    kind = data.draw(st.sampled_from(["change", "remove", "swap", "cut"]))
    if kind == "change":
        lines[which] = lines[which].replace(b':"d', b':"x')
    elif kind == "remove":
        del lines[which]
    elif kind == "swap":
        other = data.draw(st.integers(0, 3).filter(lambda i: i != which))
        lines[which], lines[other] = lines[other], lines[which]
    else:
        lines = lines[:which] or [b"\n"]
    path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"altered|cut off or written anew|not valid") as caught:
        Ledger.read(path).check(4, hashes[-1])
    assert_one_line(caught.value)


@pytest.mark.parametrize("second", [-4, 4, 5, 6, 10**30])
def test_after_a_fragment_was_used_no_older_one_is_accepted(path, second):
    log = used(path, 5, digest="d")
    log.check_new(received(1, site="lab-2"))
    if second >= 5:
        log.check_new(received(second))
        return
    with pytest.raises(InputError, match="stale") as caught:
        log.check_new(received(second))
    assert_one_line(caught.value)


@pytest.mark.parametrize("text", ["", "{}", "[", '{"format": "jigsaw-crl/log", "version": 4}'])
def test_an_unreadable_log_is_not_taken_for_an_empty_one(text, path):
    path.write_text(text)
    with pytest.raises(InputError, match="log of used fragments") as caught:
        Ledger.read(path)
    assert_one_line(caught.value)
