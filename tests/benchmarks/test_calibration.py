"""The calibration benchmark, on tiny worlds: its records, its table, and that it resumes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.truth.metrics import VerdictCounts

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "calibration.py"
TINY = ["--latent", "5", "--clients", "2", "--coverage", "1", "--n", "1e3", "--jobs", "1"]


def calibrate(out, *options):
    """The printed tables; records go to `out`."""
    command = [sys.executable, str(SCRIPT), *TINY, "--out", str(out), *options]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The lines and tables of a run of two kinds and two worlds."""
    out = tmp_path_factory.mktemp("calibration") / "worlds.jsonl"
    tables = calibrate(out, "--kind", "paper", "hard", "--worlds", "2")
    return out.read_text().splitlines(keepends=True), tables


@pytest.mark.slow
def test_every_world_is_one_line_and_every_cell_one_row(finished):
    lines, tables = finished
    records = [json.loads(line) for line in lines]
    told = [(r["cell"]["kind"], r["world"]) for r in records]
    assert told == [("paper", 0), ("hard", 0), ("paper", 1), ("hard", 1)]
    for r in records:
        assert r["counts"]["pairs"] == sum(pairs for pairs, _, _ in r["bins"]) == 20
    for kind in ("paper", "hard"):
        assert tables.count(f"| {kind}, shift 0, n = 1,000") == 1


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_missing_worlds(finished, tmp_path):
    lines, tables = finished
    out = tmp_path / "worlds.jsonl"
    out.write_text("".join(lines[:3]) + lines[3][:40])
    again = calibrate(out, "--kind", "paper", "hard", "--worlds", "2")
    assert again == tables
    assert out.read_text().startswith("".join(lines[:3]) + lines[3][:40] + "\n")
    assert len(out.read_text().splitlines()) == 5


@pytest.fixture
def calibration():
    """The benchmark as a module."""
    return importlib.import_module("calibration")


@pytest.mark.slow
def test_a_fast_part_of_the_page_is_as_good_as_the_page_says(calibration, tmp_path):
    # The page's means are .97–.99 for E1 and for the share decided; single worlds spread by .03.
    cells = [calibration.Cell(*x) for x in (("paper", 0.0), ("hard", 1.0), ("mild", 0.3))]
    assert set(cells) <= set(calibration.PAGE["Kinds of interventions"])
    tasks = [(cell, 1) for cell in cells]
    records = calibration.run(
        calibration.Cell, calibration.run_world, tasks, "choose", 1, tmp_path / "part.jsonl"
    )
    counts = sum((VerdictCounts(**r["counts"]) for r in records), VerdictCounts())
    assert np.mean([r["E1"] for r in records]) > 0.93
    assert counts.decided > 0.93
    assert counts.wrong_yes <= 0.01 * counts.yes
    assert counts.wrong_no <= 0.015 * counts.no
    assert all(r["above"] <= r["counts"]["wrong_no"] for r in records)
    assert sum(r["above"] for r in records) <= 0.005 * counts.no


def test_a_wrong_no_is_above_its_bound_or_below_it(calibration):
    world = calibration.Cell(latent=8, clients=6).world(calibration.SEEDS["choose"])
    order = jc.recover(world.clients(2_000)).order
    shares = calibration.true_shares(world)
    assert set(shares) <= world.order.pairs()
    assert all(0 < share < 1 + 1e-9 for share in shares.values())
    assert calibration.above_bound(world, order) == 0
    # Say "no" everywhere: an ancestor above its bound is then a wrong "no" above its bound.
    denied = replace(order, verdicts=np.zeros_like(order.verdicts))
    beyond = {p for p in world.order.pairs() if not shares.get(p, 2.0) <= order.bound(*p)}
    assert calibration.above_bound(world, denied) == len(beyond)
    assert 0 < len(beyond) < len(world.order.pairs())


@pytest.mark.slow
def test_pictures_and_the_report_follow_the_records(calibration, finished, tmp_path):
    lines, _ = finished
    pictures, report = tmp_path / "docs" / "pictures", tmp_path / "src" / "jigsaw_crl" / "report"
    pictures.mkdir(parents=True)
    report.mkdir(parents=True)
    calibration.write_more([json.loads(line) for line in lines], tmp_path)
    for name in ("reliability", "e1"):
        assert "<svg" in (pictures / f"calibration-{name}.svg").read_text()
    assert "hard,2,1000,0.0," in (report / "simulations.csv").read_text()
