"""Plans: their scenarios, seeds and fingerprints."""

from __future__ import annotations

from jigsaw_crl.truth.experiments.published import SAMPLE_SIZES
from jigsaw_crl.truth.experiments.scenarios import Scenario, plan_of

from .tiny_plan import tiny


def test_a_replicate_has_the_same_world_at_every_n():
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
    assert len(samples) == len({(t.scenario, t.n, t.phase, t.replicate) for t in tasks})


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


def test_the_key_of_a_scenario_names_its_world_and_noise():
    assert Scenario("gaussian", None, 20, 15, 0.6).key == "p20-K15-q0.6-gaussian"
    assert Scenario("laplace", "B").key == "B-laplace"


def test_only_picks_a_figure_or_a_table():
    def keys(kind, *only):
        return [s.key for s in plan_of(kind, quick=False, only=only).scenarios]

    assert keys("figures", "A-laplace") == ["A-laplace"]
    assert keys("figures", "B", "A-laplace") == ["A-laplace", "B-gaussian", "B-laplace"]
    assert keys("tables", "p") == [f"p{p}-K15-q0.6-gaussian" for p in (10, 20, 30, 40)]
    assert keys("tables", "p30-K15-q0.6") == ["p30-K15-q0.6-gaussian"]
    assert len(keys("tables", "p", "K", "q")) == len(keys("tables")) == 10


def test_large_clients_try_only_the_largest_candidates_for_tau():
    plan = plan_of("tables", quick=False)
    tried = {s.key.removesuffix("-gaussian"): plan.candidates(s) for s in plan.scenarios}
    assert tried["p20-K15-q0.6"] == plan.grid
    large = {"p20-K15-q0.7", "p20-K15-q0.8", "p30-K15-q0.6", "p40-K15-q0.6"}
    assert {key for key, grid in tried.items() if grid == (0.08, 0.09, 0.1)} == large
    assert all(plan.candidates(s) == plan.grid for s in plan_of("figures", quick=False).scenarios)


def test_the_fingerprint_of_a_method_changes_with_what_changes_its_numbers():
    def fingerprints(**changes):
        plan = tiny(**changes)
        return plan.fingerprint("paper"), plan.fingerprint("null-cone")

    paper, null_cone = fingerprints()
    assert paper != null_cone
    # τ and the budget are of the paper's method.
    for changes in ({"budget": 499}, {"grid": (0.05,)}, {"calibration_runs": 1}):
        assert fingerprints(**changes)[0] != paper
        assert fingerprints(**changes)[1] == null_cone
    # Finished results stay valid when replicates, sizes or methods are added.
    for changes in ({"replicates": 9}, {"sizes": (5000, None)}, {"methods": ("null-cone",)}):
        assert fingerprints(**changes) == (paper, null_cone)
