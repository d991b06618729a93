"""The paper's experiments: resumable, the same on any number of workers, and their pages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.experiments import reproduce
from jigsaw_crl.truth.experiments.replicate import METHODS
from jigsaw_crl.truth.experiments.results import read_results

from .tiny_plan import numbers, silent, tiny


def page(result):
    """The page without the day of the run."""
    lines = result.page.read_text().splitlines()
    return [line for line in lines if "Last run:" not in line]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    seen = []
    result = reproduce.run_plan(tiny(), out, progress=lambda *counts: seen.append(counts))
    total = len(tiny().calibrations()) + len(tiny().evaluations())
    assert seen[-1] == (total, total)
    assert seen == sorted(seen)
    return out, result


@pytest.fixture
def called(monkeypatch):
    """The tasks that are run from now on."""
    tasks, run_task = [], reproduce.run_task

    def counted(*arguments):
        tasks.append(arguments[1])
        return run_task(*arguments)

    monkeypatch.setattr(reproduce, "run_task", counted)
    return tasks


@pytest.mark.slow
def test_the_numbers_do_not_depend_on_the_number_of_workers(finished, tmp_path):
    _, alone = finished
    together = reproduce.run_plan(tiny(), tmp_path, workers=2, progress=silent)
    assert numbers(together) == numbers(alone)
    assert page(together) == page(alone)


@pytest.mark.slow
def test_an_interrupted_run_resumes(finished, tmp_path, called, monkeypatch):
    _, whole = finished
    counted = reproduce.run_task

    def dies_after_five(*arguments):
        if len(called) == 5:
            raise KeyboardInterrupt
        return counted(*arguments)

    monkeypatch.setattr(reproduce, "run_task", dies_after_five)
    with pytest.raises(KeyboardInterrupt):
        reproduce.run_plan(tiny(), tmp_path, progress=silent)
    kept = {path.stem for path in (tmp_path / "figures" / "replicates").iterdir()}
    assert kept == {task.key for task in called}
    monkeypatch.setattr(reproduce, "run_task", counted)
    resumed = reproduce.run_plan(tiny(), tmp_path, progress=silent)
    # Every task once.
    every = [*tiny().calibrations(), *tiny().evaluations()]
    assert sorted(task.key for task in called) == sorted(task.key for task in every)
    assert numbers(resumed) == numbers(whole)


@pytest.mark.slow
def test_a_finished_run_repeats_only_tasks_whose_file_is_broken(finished, called):
    out, whole = finished
    before = numbers(whole)
    reproduce.run_plan(tiny(), out, progress=silent)
    assert called == []
    folder = out / "figures" / "replicates"
    (folder / "A-gaussian-n1000-paper-e0001.json").write_text('{"task": "A-gau')
    (folder / "A-gaussian-ninf-paper-e0000.json").write_text("[]")
    assert numbers(reproduce.run_plan(tiny(), out, progress=silent)) == before
    assert sorted(task.key for task in called) == [
        "A-gaussian-n1000-paper-e0001",
        "A-gaussian-ninf-paper-e0000",
    ]


def test_figures_have_a_picture_per_scenario_and_the_population_is_exact(finished):
    _, result = finished
    assert [p.name for p in result.pictures] == ["A-gaussian.png", "A-laplace.png"]
    for picture in result.pictures:
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    text = result.page.read_text()
    assert "![Setting A, Gaussian noise](A-gaussian.png)" in text
    assert text.count("| E1 | ∞ | 1.00 | 1.00 ± 0.00 (2) | +0.00 | – | – | – | 0 |") == 2


@pytest.mark.slow
def test_tables_show_our_mean_and_the_printed_number(tmp_path):
    result = reproduce.run_plan(tiny("tables"), tmp_path, progress=silent)
    text = result.page.read_text()
    # The world is in Table 1 only.
    assert [picture.name for picture in result.pictures] == ["table-1.png"]
    assert "## Table 1: sensitivity to p" in text
    assert "## Table 2" not in text
    lines = [line for line in text.splitlines() if line.startswith("| 10 | ")]
    # Table 1, p = 10: three metrics at six sizes and a runtime.
    (population,) = (line for line in lines if line.startswith("| 10 | E1 | ∞ | 1.00 |"))
    assert "(2)" in population
    assert [line for line in lines if "Runtime (s) | ∞ | 0.17 |" in line]
    rows = numbers(result)
    assert {row["n"] for row in rows} == {"10000", "inf"}
    assert all(float(row["e2"]) < 1e-10 for row in rows if row["n"] == "inf")
    assert all(row["tau"] in ("0.05", "0.1") for row in rows if row["n"] != "inf")


def test_every_method_gets_the_same_data(tmp_path, monkeypatch):
    seen = []
    paper = METHODS["paper"]

    def spy(clients, tau, budget):
        seen.append([c.control.covariance.sum() for c in clients])
        return paper(clients, 0.05, budget)

    monkeypatch.setitem(METHODS, "paper", spy)
    monkeypatch.setitem(METHODS, "null-cone", spy)
    plan = tiny(replicates=1, calibration_runs=0, methods=("paper", "null-cone"), sizes=(1000,))
    result = reproduce.run_plan(plan, tmp_path, progress=silent)
    rows = numbers(result)
    assert [row["method"] for row in rows] == ["paper", "null-cone"] * 2
    assert seen[-1] == seen[-2]
    assert rows[0]["e1"] == rows[1]["e1"]
    assert "null-cone: mean ± s.e. (runs)" in result.page.read_text()


@pytest.mark.slow
def test_a_method_is_added_to_a_finished_run_without_running_the_others_again(
    finished, tmp_path, called
):
    _, alone = finished
    reproduce.run_plan(tiny(), tmp_path, progress=silent)
    called.clear()
    both = reproduce.run_plan(tiny(methods=("paper", "null-cone")), tmp_path, progress=silent)
    assert {task.method for task in called} == {"null-cone"}
    assert [row for row in numbers(both) if row["method"] == "paper"] == numbers(alone)


def test_the_page_is_made_from_the_results_file_alone(finished, tmp_path):
    _, result = finished
    again = reproduce.write_pages(read_results(result.results), tmp_path)
    for old, new in ((result.results, again.results), (result.page, again.page)):
        assert new.read_bytes() == old.read_bytes()


def test_the_page_says_which_cells_were_not_run(finished, tmp_path):
    _, result = finished
    whole = read_results(result.results)
    assert "Not run:" not in result.page.read_text()
    cells = {place: cell for place, cell in whole.cells.items() if place[:2] != ("A-laplace", 1000)}
    made = reproduce.write_pages(replace(whole, cells=cells), tmp_path)
    text = made.page.read_text()
    assert "Not run: A-laplace by paper at n = 10³." in text
    assert "| E1 | 10³ | – | – | – | – | – | – | – |" in text


def test_the_summary_counts_the_cells_that_differ_from_a_printed_number(finished):
    _, result = finished
    lines = result.page.read_text().splitlines()
    start = lines.index("## Summary")
    assert "Means over 2 families of worlds." in lines[start + 2]
    (population,) = (line for line in lines[start:] if line.startswith("| E1 | ∞ | 1.00 | 1.00 | "))
    assert population == "| E1 | ∞ | 1.00 | 1.00 | 0 of 2 |"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda out: reproduce.run("pictures", out), "nothing to reproduce"),
        (lambda out: reproduce.run("figures", out, methods=("guess",)), "no method 'guess'"),
        (lambda out: reproduce.run("figures", out, methods=()), "no method is given"),
        (lambda out: reproduce.run("tables", out, only=["A"]), "no part of the tables 'A'"),
    ],
)
def test_an_unknown_experiment_or_method_is_refused(call, says, tmp_path):
    with pytest.raises(InputError, match=says):
        call(tmp_path)
