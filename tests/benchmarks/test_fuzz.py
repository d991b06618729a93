"""A small part of the fuzz run: broken files are read or refused in one line."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fuzz"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["fuzz"]


@pytest.fixture(scope="module")
def kinds(fuzz, tmp_path_factory):
    return fuzz.kinds(tmp_path_factory.mktemp("fuzz"))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("fragment", 600),
        ("envelope", 200),
        ("npz", 200),
        ("moments", 100),
        ("csv", 100),
    ],
)
def test_broken_files_are_read_or_refused_in_one_line(name, count, fuzz, kinds):
    (tally,) = fuzz.run({name: kinds[name]}, count, seed=1).values()
    assert tally.failures == []
    assert tally.inputs == count
    assert tally.refused > count // 2


@pytest.mark.parametrize("name", ["fragment", "envelope", "npz", "moments", "csv"])
def test_the_files_that_are_broken_are_read_as_they_are(name, kinds):
    for seed in kinds[name].seeds:
        kinds[name].read(seed)


def test_a_defect_is_found(fuzz, kinds):
    def defect(_: bytes) -> None:
        raise KeyError("X")

    kind = fuzz.Kind(kinds["csv"].seeds, kinds["csv"].change, defect, 1.0)
    (tally,) = fuzz.run({"csv": kind}, 3).values()
    assert tally.failures[0] == "csv 0: KeyError: 'X'"


def test_a_run_ends_after_its_time(fuzz, kinds):
    assert sum(t.inputs for t in fuzz.run(kinds, 10**6, seconds=0.2).values()) < 10**5
