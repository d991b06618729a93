"""Sequences in a temporary file."""

from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.spool import Mapped, Spool, kept_like


def test_items_come_back_as_they_were_in_any_order():
    spool = Spool({"n": n} for n in range(5))
    assert list(spool) == [{"n": n} for n in range(5)]
    assert spool[-1] == {"n": 4}
    assert list(spool[1:3]) == [{"n": 1}, {"n": 2}]
    assert list(spool.arranged([3, 0])) == [{"n": 3}, {"n": 0}]
    assert spool[2] is not spool[2]  # read again
    with pytest.raises(IndexError):
        spool[5]


def test_one_item_is_in_memory_at_a_time():
    tracemalloc.start()
    spool = Spool(np.full(100_000, n) for n in range(50))  # 800 kB each
    total = sum(int(item[0]) for item in spool)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total == sum(range(50))
    assert peak < 5e6


def test_copies_are_tuples():
    spool = Spool([1, 2])
    assert pickle.loads(pickle.dumps(spool)) == (1, 2)
    assert copy.deepcopy(spool) == (1, 2)


def test_what_is_made_from_a_spool_is_kept_like_one():
    assert isinstance(kept_like(Spool([1]), iter([2])), Spool)
    assert kept_like([1], iter([2])) == (2,)


def test_mapped_items_are_made_when_asked_for():
    made = []
    items = Mapped(lambda x: made.append(x) or 10 * x, [1, 2, 3])
    assert made == []
    assert (len(items), items[1], list(items[1:])) == (3, 20, [20, 30])


def test_a_full_disk_is_said_in_one_line(monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    with pytest.raises(InputError, match=r"no room for temporary files .* Set TMPDIR"):
        Spool([1])
