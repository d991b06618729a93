"""The benchmark of systems that are not linear: its worlds, its counts and its tables."""

import importlib

import pytest

from jigsaw_crl.truth.simulate import SYSTEMS


@pytest.fixture
def nonlinear():
    """The benchmark as a module."""
    return importlib.import_module("nonlinear")


def test_a_world_is_measured_and_shown(nonlinear):
    rows = [
        nonlinear.run_world(nonlinear.Cell(system), "choose", 3) for system in ("linear", "relu")
    ]
    for row in rows:
        counts = row["counts"]
        assert counts["pairs"] == 56
        assert counts["yes"] + counts["no"] <= 56
        assert sum(pairs for pairs, _, _ in row["bins"]) == 56
        assert sum(true for _, _, true in row["bins"]) == counts["ancestors"]
    shown = nonlinear.score_table(rows)
    assert "| linear | 1.00, 0/" in shown
    assert "tanh" not in shown
    # Bins are those of the system that is not linear.
    bins, _ = nonlinear.stated_table(rows).split("\n\n")
    assert bins == nonlinear.stated_table(rows[1:]).split("\n\n")[0]
    assert "mean stated" in bins


def test_what_is_missed_is_in_bold(nonlinear):
    none = {"pairs": 56, "ancestors": 9, "yes": 9, "wrong_yes": 0, "no": 20, "wrong_no": 0}

    def record(system, F1, **counts):
        cell = {"system": system}
        return {"cell": cell, "F1": F1, "counts": none | counts, "bins": [], "findings": {}}

    shown = nonlinear.score_table(
        [record("linear", 0.99), record("tanh", 0.9), record("relu", 1.0, wrong_yes=1)]
    )
    bold = [line.split(" ")[1] for line in shown.splitlines() if "**" in line]
    assert bold == ["tanh", "relu"]
    assert shown.endswith("0 of 3 studies were refused.")


def test_cells_have_the_sizes_that_they_name(nonlinear):
    assert set(nonlinear.SYSTEMS) == set(SYSTEMS)
    eight, large = nonlinear.cells_of(("eight", "large"), ("tanh",))
    world = nonlinear.world_of(eight, 1)
    assert (world.n_latent, world.n_clients) == (20, 8)
    assert all(len(view.nodes) == 10 for view in world.views)
    assert len(nonlinear.world_of(large, 1).view(0).nodes) == 16
