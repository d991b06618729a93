"""A small part of the fuzz run: broken files are read or refused in one line."""

import fuzz
import pytest


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    return fuzz.kinds(tmp_path_factory.mktemp("fuzz"))


COUNTS = {
    "fragment": 600,
    "envelope": 200,
    "npz": 200,
    "moments": 100,
    "csv": 100,
    "parquet": 100,
    "manifest": 60,
    "keys": 100,
    "answer": 100,
    "log": 100,
    "settings": 100,
    "result": 40,
}


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_broken_files_are_read_or_refused_in_one_line(name, count, kinds):
    """The files before they are broken are read as they are."""
    assert kinds.keys() == COUNTS.keys()
    for seed in kinds[name].seeds:
        kinds[name].read(seed)
    (tally,) = fuzz.run({name: kinds[name]}, count, seed=1).values()
    assert tally.failures == []
    assert tally.inputs == count
    assert tally.refused > count // 2


def test_a_defect_is_found(kinds):
    def defect(_):
        raise KeyError("X")

    kind = fuzz.Kind(kinds["csv"].seeds, kinds["csv"].change, defect, 1.0)
    (tally,) = fuzz.run({"csv": kind}, 3).values()
    assert tally.failures[0] == "csv 0: KeyError: 'X'"
