"""The benchmark of systems that are not linear: its worlds, its counts and its table."""

from __future__ import annotations

import importlib

import pytest

from jigsaw_crl.truth.simulate import SYSTEMS


@pytest.fixture
def nonlinear():
    """The benchmark as a module."""
    return importlib.import_module("nonlinear")


def test_a_world_is_measured_and_shown(nonlinear):
    cell = nonlinear.Cell(labels=5, hidden=2, rows=4_000)
    rows = [nonlinear.measure(cell, system, 3) for system in ("linear", "relu")]
    for row in rows:
        assert row["pairs"] == 20
        assert row["yes"] + row["no"] <= 20
        assert sum(row["in_bin"]) == 20
        assert row["wrong_yes"] <= row["yes"]
    shown = nonlinear.table(rows)
    assert "linear" in shown
    assert "relu" in shown
    assert "tanh" not in shown
    assert "stated" in nonlinear.calibration(rows)


def test_cells_have_the_sizes_that_they_name(nonlinear):
    assert set(nonlinear.SYSTEMS) == set(SYSTEMS)
    world = nonlinear.world_of(nonlinear.CELLS["eight"], "tanh", 1)
    assert (world.n_latent, world.n_clients) == (20, 8)
    assert all(len(view.nodes) == 10 for view in world.views)
    assert len(nonlinear.world_of(nonlinear.CELLS["large"], "linear", 1).view(0).nodes) == 16
