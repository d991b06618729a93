"""The hash-chained log of used fragments, and what follows from it."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.ledger import Ledger

from ..fragment.examples import assert_one_line


def used(path, *serials):
    """The log after a round has used fragments."""
    about = {"site": "lab-1", "envelope": None}
    received = [SimpleNamespace(serial=s, digest=f"d{s}", **about) for s in serials]
    Ledger.read(path).having(received, "r", "s").save()
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


@pytest.mark.parametrize("text", ["", "{}", "[", '{"format": "jigsaw-crl/log", "version": 4}'])
def test_an_unreadable_log_is_not_taken_for_an_empty_one(text, path):
    path.write_text(text)
    with pytest.raises(InputError, match="log of used fragments") as caught:
        Ledger.read(path)
    assert_one_line(caught.value)
