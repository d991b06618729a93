"""Plans: their scenarios and seeds."""

from math import inf

from jigsaw_crl.truth.experiments.plan import plan_of, printed


def test_a_replicate_has_the_same_world_at_every_n_and_other_samples():
    plan = plan_of("tables", quick=True)
    tasks = [*plan.tasks("evaluation"), *plan.tasks("calibration")]
    by_world = {}
    for task in tasks:
        place = task.scenario.key, task.phase, task.replicate
        by_world.setdefault(place, set()).add(task.seeds()[0])
    assert all(len(seeds) == 1 for seeds in by_world.values())
    assert len({min(seeds) for seeds in by_world.values()}) == len(by_world)
    assert len({task.seeds()[1] for task in tasks}) == len(tasks) == len(set(tasks))


def test_the_plans_cover_what_the_paper_shows():
    figures = plan_of("figures", quick=False)
    assert {s.key for s in figures.scenarios} == {
        f"{name}-{noise}" for name in "ABC" for noise in ("gaussian", "laplace")
    }
    assert {10**3, 10**4, 10**5, 10**6, inf} <= set(figures.sizes)
    tables = plan_of("tables", quick=False)
    assert {10**4, 10**6, inf} < set(tables.sizes)
    assert len(tables.scenarios) == tables.calibration_runs == len(tables.grid) == 10


def test_printed_numbers_are_found_by_world_metric_and_sample_size():
    numbers = printed()
    assert len(numbers) == 10 * (3 * 6 + 1) + 6 * 3
    assert numbers["p10-K15-q0.6-gaussian", "e1", 10**6] == 0.81
    assert numbers["p20-K15-q0.8-gaussian", "e3", 10**4] == 0.46
    assert numbers["p20-K20-q0.6-gaussian", "seconds", inf] == 0.49
    assert numbers["A-laplace", "e1", inf] == 1.0


def test_only_picks_a_figure_or_a_table():
    def keys(kind, *only):
        return [s.key for s in plan_of(kind, quick=False, only=only).scenarios]

    assert keys("figures", "B", "A-laplace") == ["A-laplace", "B-gaussian", "B-laplace"]
    assert keys("tables", "p") == [f"p{p}-K15-q0.6-gaussian" for p in (10, 20, 30, 40)]
    assert keys("tables", "p30-K15-q0.6") == ["p30-K15-q0.6-gaussian"]
    assert len(keys("tables", "p", "K", "q")) == len(keys("tables")) == 10
