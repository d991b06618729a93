"""The paper's experiments: resumable, the same on any number of workers, and well presented."""

from __future__ import annotations

import json

import pytest

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.truth.experiments import reproduce, scenarios
from jigsaw_crl.truth.experiments.methods import METHODS
from jigsaw_crl.truth.experiments.published import SAMPLE_SIZES, TABLES
from jigsaw_crl.truth.experiments.scenarios import plan_of

from .tiny_plan import numbers, silent, tiny


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    return out, reproduce.run_plan(tiny(), out, progress=silent)


def test_the_numbers_do_not_depend_on_the_number_of_workers(finished, tmp_path):
    _, alone = finished
    together = reproduce.run_plan(tiny(), tmp_path, workers=2, progress=silent)
    assert numbers(together) == numbers(alone)
    assert together.markdown.read_text() == alone.markdown.read_text()


def test_a_killed_run_goes_on_where_it_stopped(finished, tmp_path, monkeypatch):
    _, whole = finished
    plan, run_task, done = tiny(), reproduce.run_task, []

    def dies_after_five(*arguments):
        if len(done) == 5:
            raise KeyboardInterrupt
        done.append(arguments[1].key)
        return run_task(*arguments)

    monkeypatch.setattr(reproduce, "run_task", dies_after_five)
    with pytest.raises(KeyboardInterrupt):
        reproduce.run_plan(plan, tmp_path, progress=silent)
    kept = {path.stem for path in (tmp_path / "figures" / "replicates").iterdir()}
    assert kept == set(done)

    again = []

    def counted(*arguments):
        again.append(arguments[1].key)
        return run_task(*arguments)

    monkeypatch.setattr(reproduce, "run_task", counted)
    resumed = reproduce.run_plan(plan, tmp_path, progress=silent)
    assert not set(again) & set(done)
    assert len(again) + len(done) == len(plan.calibrations()) + len(plan.evaluations())
    assert numbers(resumed) == numbers(whole)


def test_a_finished_run_does_nothing_and_a_broken_file_is_done_again(finished, monkeypatch):
    out, whole = finished
    before, called = numbers(whole), []
    run_task = reproduce.run_task

    def counted(*arguments):
        called.append(arguments[1].key)
        return run_task(*arguments)

    monkeypatch.setattr(reproduce, "run_task", counted)
    reproduce.run_plan(tiny(), out, progress=silent)
    assert called == []
    folder = out / "figures" / "replicates"
    (folder / "A-gaussian-n1000-e0001.json").write_text('{"task": "A-gau')
    (folder / "A-gaussian-ninf-e0000.json").write_text("[]")
    assert numbers(reproduce.run_plan(tiny(), out, progress=silent)) == before
    assert sorted(called) == ["A-gaussian-n1000-e0001", "A-gaussian-ninf-e0000"]


def test_results_of_another_plan_are_not_mixed_in(finished, monkeypatch):
    out, _ = finished
    record = json.loads((out / "figures/replicates/A-gaussian-ninf-e0000.json").read_text())
    assert record["fingerprint"] == tiny().fingerprint
    assert tiny(budget=499).fingerprint != tiny().fingerprint
    assert tiny(grid=(0.05,)).fingerprint != tiny().fingerprint
    # More replicates, sizes or scenarios go on from what is there.
    assert tiny(replicates=9).fingerprint == tiny().fingerprint
    assert tiny(sizes=(5000, None)).fingerprint == tiny().fingerprint


def test_progress_counts_every_piece_of_work(tmp_path):
    seen = []
    plan = tiny(replicates=1, calibration_runs=1)
    reproduce.run_plan(plan, tmp_path, progress=lambda done, total: seen.append((done, total)))
    total = len(plan.calibrations()) + len(plan.evaluations())
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_figures_have_a_picture_per_scenario_and_the_population_is_exact(finished):
    _, result = finished
    assert [p.name for p in result.pictures] == ["A-gaussian.png", "A-laplace.png"]
    for picture in result.pictures:
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    text, page = result.markdown.read_text(), result.html.read_text()
    assert "![Setting A, Gaussian noise](A-gaussian.png)" in text
    assert text.count("| E1 | ∞ | 1.00 | 1.00 ± 0.00 (2) | +0.00 | – |") == 2
    assert page.count("data:image/png;base64,") == 2
    assert "<script" not in page
    assert "http" not in page


def test_tables_set_our_mean_beside_each_printed_number(tmp_path):
    result = reproduce.run_plan(tiny("tables"), tmp_path, progress=silent)
    text = result.markdown.read_text()
    assert result.pictures == ()
    for table in TABLES:
        assert f"## Table {table.number}: sensitivity to {table.varies}" in text
    lines = [line for line in text.splitlines() if line.startswith("| 10 | ")]
    # Table 1, p = 10: three metrics at six sizes and a runtime.
    (population,) = (line for line in lines if line.startswith("| 10 | E1 | ∞ | 1.00 |"))
    assert "(2)" in population
    assert [line for line in lines if "Runtime (s) | ∞ | 0.17 |" in line]
    rows = numbers(result)
    assert {row["n"] for row in rows} == {"10000", "inf"}
    assert all(float(row["e2"]) < 1e-10 for row in rows if row["n"] == "inf")
    assert all(row["tau"] in ("0.05", "0.1") for row in rows if row["n"] != "inf")


def test_the_same_data_goes_to_every_method(tmp_path, monkeypatch):
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
    assert "null-cone: mean ± s.e. (replicates)" in result.markdown.read_text()


def test_a_replicate_s_world_is_the_same_at_every_n_and_new_for_every_replicate():
    plan = plan_of("tables", quick=True)
    tasks = [*plan.evaluations(), *plan.calibrations()]
    assert len({task.key for task in tasks}) == len(tasks)
    by_world = {}
    for task in tasks:
        place = task.scenario.key, task.phase, task.replicate
        by_world.setdefault(place, set()).add(task.seeds()[0])
    assert all(len(seeds) == 1 for seeds in by_world.values())
    assert len({min(seeds) for seeds in by_world.values()}) == len(by_world)
    samples = {task.seeds()[1] for task in tasks}
    assert len(samples) == len(tasks)


def test_the_plans_cover_what_the_paper_shows():
    figures = plan_of("figures", quick=False)
    assert {s.key for s in figures.scenarios} == {
        f"{name}-{noise}" for name in "ABC" for noise in ("gaussian", "laplace")
    }
    assert {10**3, 10**4, 10**5, 10**6, None} <= set(figures.sizes)
    tables = plan_of("tables", quick=False)
    assert tables.sizes == SAMPLE_SIZES
    assert len(tables.scenarios) == 10
    assert tables.calibration_runs == 10
    assert len(tables.grid) == 10


def test_the_tables_agree_where_they_print_the_same_world():
    (a, b, c) = (
        next(r for r in t.rows if (r.n_latent, r.n_clients, r.coverage) == (20, 15, 0.6))
        for t in TABLES
    )
    assert a == b == c
    for table in TABLES:
        for row in table.rows:
            assert len(row.e1) == len(row.e2) == len(row.e3) == len(SAMPLE_SIZES)
            assert all(0 <= x <= 1 for x in (*row.e1, *row.e2, *row.e3))
    assert TABLES[0].rows[0].value("e1", 10**6) == 0.81
    assert TABLES[2].rows[3].value("e3", 10**4) == 0.46
    assert TABLES[1].rows[3].seconds == 0.49


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda out: reproduce.run("pictures", out), "nothing to reproduce"),
        (lambda out: reproduce.run("figures", out, methods=("guess",)), "no method 'guess'"),
        (lambda out: reproduce.run("figures", out, methods=()), "no method is given"),
    ],
)
def test_what_cannot_be_reproduced_is_refused(call, says, tmp_path):
    with pytest.raises(InputError, match=says):
        call(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused_in_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        reproduce.run_plan(tiny(), tmp_path / "file", progress=silent)


def test_scenarios_are_found_by_their_key():
    assert scenarios.Scenario("gaussian", None, 20, 15, 0.6).key == "p20-K15-q0.6-gaussian"
    assert scenarios.Scenario("laplace", "B").key == "B-laplace"
