"""A plan small enough for tests, and what is compared about its results."""

import csv
from dataclasses import replace
from math import inf

from jigsaw_crl.truth.experiments.plan import Plan, Scenario


def tiny(**changes):
    plan = Plan(
        kind="figures",
        scenarios=(Scenario("gaussian", "A"), Scenario("laplace", "A")),
        sizes=(1000, inf),
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
