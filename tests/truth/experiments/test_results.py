"""The results file, and results that are put together."""

from __future__ import annotations

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.experiments.results import (
    METRICS,
    Cell,
    Mean,
    Results,
    read_results,
    write_results,
)

from .tiny_plan import tiny


def cell(mean, replicates=2):
    means = dict.fromkeys(METRICS, Mean(mean, None if replicates == 1 else 0.1))
    return Cell(replicates, 5 * replicates, 1, 0.05, means)


PAPER = Results(
    tiny(),
    {"paper": "2026-01-01"},
    {("A-gaussian", 1000, "paper"): cell(0.5), ("A-gaussian", None, "paper"): cell(1.0, 1)},
)


def test_a_results_file_is_read_as_it_was_written(tmp_path):
    read = read_results(write_results(PAPER, tmp_path / "results.jsonl"))
    assert (read.plan, read.dates, read.cells) == (PAPER.plan, PAPER.dates, PAPER.cells)


def test_new_cells_take_the_place_of_old_ones_and_others_stay():
    old = PAPER.updated(
        Results(
            tiny(methods=("null-cone",), sizes=(5000, None), budget=7),
            {"null-cone": "2026-01-02"},
            {("A-gaussian", 5000, "null-cone"): cell(0.8)},
        )
    )
    assert old.plan == tiny(methods=("paper", "null-cone"), sizes=(1000, 5000, None))
    new = Results(
        tiny(methods=("null-cone",)),
        {"null-cone": "2026-01-03"},
        {("A-gaussian", 5000, "null-cone"): cell(0.9)},
    )
    both = old.updated(new)
    assert both.dates == {"paper": "2026-01-01", "null-cone": "2026-01-03"}
    assert both.cells["A-gaussian", 5000, "null-cone"].means["e1"].mean == 0.9
    assert PAPER.cells.items() <= both.cells.items()


def test_the_spread_of_a_run_includes_the_error_of_our_mean():
    # Two runs with a standard error of 0.1 have a standard deviation of 0.1 √2.
    assert cell(0.5).spread("e1") ** 2 == pytest.approx(0.1**2 * 2 + 0.1**2)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"plan": {"kind": "figures"}, "dates": {}}'])
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "results.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match="not a results file"):
        read_results(path)
