"""A small federation of generated fragments: written, assembled and scored."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from jigsaw_crl.assembly import panel as panels

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "federation.py"


@pytest.fixture(scope="module")
def federation():
    spec = importlib.util.spec_from_file_location("federation", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_fragments_are_assembled_pair_by_pair(federation, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(panels, "MOST_SAMPLED", 30)
    size = ["--sites", "60", "--labels", "50", "--size", "15", "--out", str(tmp_path / "sites")]
    monkeypatch.setattr(sys, "argv", ["federation.py", *size])
    found = []
    for _ in range(2):  # the second run takes the fragments that are there
        federation.main()
        found.append(json.loads(capsys.readouterr().out))
    first, second = found
    assert "writing" in first
    assert "writing" not in second
    assert len(list((tmp_path / "sites").glob("*.bin"))) == 60
    for run in found:
        assert run["yes"] > 0.2 * run["true pairs"]
        assert run["wrong yes"] <= 0.05 * run["yes"] + 1
        assert run["wrong no"] <= 0.05 * run["no"]
    assert first["yes"] == second["yes"]
