"""The calibration benchmark, on tiny worlds: its records, its table, and that it resumes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "calibration.py"
TINY = ["--latent", "5", "--clients", "2", "--coverage", "1", "--n", "1e3", "--jobs", "1"]


def calibrate(out, *options):
    """The printed tables; records go to `out`."""
    command = [sys.executable, str(SCRIPT), *TINY, "--out", str(out), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def without_times(table):
    """The tables without their last column."""
    return [line.rsplit("|", 2)[0] for line in table.splitlines()]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The lines and tables of a run of two kinds and two worlds."""
    out = tmp_path_factory.mktemp("calibration") / "worlds.jsonl"
    tables = calibrate(out, "--kind", "paper", "hard", "--worlds", "2")
    return out.read_text().splitlines(keepends=True), tables


def test_every_world_is_one_line_and_every_cell_one_row(finished):
    lines, tables = finished
    records = [json.loads(line) for line in lines]
    kinds = ["paper", "paper", "hard", "hard"]
    assert [(r["cell"]["kind"], r["world"]) for r in records] == list(
        zip(kinds, [0, 1, 0, 1], strict=True)
    )
    for r in records:
        assert r["counts"]["pairs"] == sum(pairs for pairs, _, _ in r["bins"]) == 20
    assert tables.count("| paper, shift 0, n = 1,000") == 2
    assert tables.count("| hard, shift 0, n = 1,000") == 2


def test_a_killed_run_resumes_with_the_missing_worlds(finished, tmp_path):
    lines, tables = finished
    out = tmp_path / "worlds.jsonl"
    out.write_text("".join(lines[:3]) + lines[3][:40])
    again = calibrate(out, "--kind", "paper", "hard", "--worlds", "2")
    assert without_times(again) == without_times(tables)
    assert out.read_text().startswith("".join(lines[:3]) + lines[3][:40] + "\n")
    assert len(out.read_text().splitlines()) == 5


def test_the_two_families_of_seeds_have_different_worlds(finished, tmp_path):
    lines, _ = finished
    out = tmp_path / "worlds.jsonl"
    calibrate(out, "--seeds", "judge", "--worlds", "2")
    judged, chosen = (
        [json.loads(line)["bins"] for line in source]
        for source in (out.read_text().splitlines(), lines[:2])
    )
    assert len(judged) == 2
    assert not any(bins in chosen for bins in judged)
