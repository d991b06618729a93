"""A plan small enough for tests, and what is compared about its results."""

import csv
from dataclasses import replace
from math import inf

from jigsaw_crl.truth.experiments.plan import Plan, Scenario


def tiny(kind="figures", **changes):
    worlds = {
        "figures": (Scenario("gaussian", "A"), Scenario("laplace", "A")),
        "tables": (Scenario("gaussian", None, 10, 15, 0.6),),
    }
    plan = Plan(
        kind=kind,
        scenarios=worlds[kind],
        sizes=(1000, inf) if kind == "figures" else (10_000, inf),
        replicates=2,
        calibration_runs=2,
        grid=(0.05, 0.1),
        budget=500,
        methods=("paper",),
    )
    return replace(plan, **changes)


def numbers(result):
    """Every replicate without its runtime."""
    with (result.page.parent / "replicates.csv").open(newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
