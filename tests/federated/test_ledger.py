"""The hash-chained log of accepted fragments."""

from __future__ import annotations

import json
from multiprocessing import get_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.ledger import Head, Ledger

from ..fragment.examples import assert_one_line


def add(ledger, number, site="lab-1"):
    ledger.append(study="s", round_name="r", site=site, serial=number, digest=f"d{number}")


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "log.jsonl")
    for number in range(4):
        add(made, number)
    return made


def test_the_log_holds_what_was_accepted_in_order(ledger):
    lines = [line for line, _ in ledger.lines()]
    assert [line.number for line in lines] == [1, 2, 3, 4]
    assert [line.digest for line in lines] == ["d0", "d1", "d2", "d3"]
    assert ledger.head().entries == 4


def test_a_fragment_that_is_accepted_again_is_logged_once(ledger):
    before = ledger.path.read_bytes()
    add(ledger, 2)
    assert ledger.path.read_bytes() == before


def test_a_log_that_does_not_exist_is_empty(tmp_path):
    assert Ledger(tmp_path / "none").head() == Head()


@given(st.data())
def test_no_line_can_be_changed_removed_or_swapped(tmp_path_factory, data):
    ledger = Ledger(tmp_path_factory.mktemp("log") / "log.jsonl")
    for number in range(4):
        add(ledger, number)
    head = ledger.head()
    lines = ledger.path.read_bytes().splitlines(keepends=True)
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
        lines = lines[:which]
    ledger.path.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"altered|cut off or written anew") as caught:
        ledger.check(head)
    assert_one_line(caught.value)


def test_a_log_that_grew_still_begins_as_it_was_known(ledger):
    known = ledger.head()
    add(ledger, 9)
    ledger.check(known)


def test_a_line_that_was_cut_off_when_the_coordinator_was_killed_is_written_again(ledger):
    whole = ledger.path.read_bytes()
    for cut in (1, 20, 60):
        ledger.path.write_bytes(whole[:-cut])
        assert ledger.head().entries == 3
        add(ledger, 3)
        assert [json.loads(x)["digest"] for x in ledger.path.read_text().splitlines()] == [
            "d0", "d1", "d2", "d3",
        ]  # fmt: skip
        assert ledger.head().entries == 4


def test_the_head_of_a_round_does_not_change_when_the_log_grows(ledger):
    head = ledger.head_of("r", {"lab-1": "d2"})
    assert head.entries == 3
    add(ledger, 9)
    assert ledger.head_of("r", {"lab-1": "d2"}) == head


def _write_many(path, site):
    for number in range(10):
        add(Ledger(path), number, site)


def test_two_processes_write_one_unbroken_log(tmp_path):
    path = tmp_path / "log.jsonl"
    context = get_context("spawn")
    writers = [context.Process(target=_write_many, args=(path, site)) for site in ("a", "b")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    assert Ledger(path).head().entries == 20
