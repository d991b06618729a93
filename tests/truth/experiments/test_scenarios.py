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


def test_the_key_of_a_scenario_names_its_world_and_noise():
    assert Scenario("gaussian", None, 20, 15, 0.6).key == "p20-K15-q0.6-gaussian"
    assert Scenario("laplace", "B").key == "B-laplace"


def test_the_fingerprint_changes_with_what_changes_the_numbers():
    assert tiny(budget=499).fingerprint != tiny().fingerprint
    assert tiny(grid=(0.05,)).fingerprint != tiny().fingerprint
    # Finished results stay valid when replicates, sizes or scenarios are added.
    assert tiny(replicates=9).fingerprint == tiny().fingerprint
    assert tiny(sizes=(5000, None)).fingerprint == tiny().fingerprint
