"""The results file: a plan and its cells, as JSON lines.

The first line holds the plan and the day on which each method ran; every other line is a cell. The
pages are made from this file alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, write_text
from jigsaw_crl.truth.experiments.scenarios import Plan, Scenario
from jigsaw_crl.truth.experiments.summary import METRICS, Cell, Cells, Mean

__all__ = ["Results", "read_results", "write_results"]

# Decimals in the file: two more than a page shows.
DECIMALS = 4


@dataclass(frozen=True, eq=False)
class Results:
    """A finished plan.

    Parameters
    ----------
    plan : Plan
    dates : mapping of method to str
        The day of its last replicate, as YYYY-MM-DD.
    cells : mapping of (scenario, n, method) to Cell
    """

    plan: Plan
    dates: Mapping[str, str]
    cells: Cells

    def updated(self, new: Results) -> Results:
        """These results, with the cells of `new` added or put in place of their own."""
        ours, theirs = self.plan, new.plan
        sizes = {*ours.sizes, *theirs.sizes}
        plan = replace(
            theirs if "paper" in theirs.methods else ours,  # τ and the budget that were used
            scenarios=(
                *ours.scenarios,
                *(s for s in theirs.scenarios if s not in ours.scenarios),
            ),
            sizes=(*sorted(n for n in sizes if n is not None), *({None} & sizes)),
            methods=(*ours.methods, *(m for m in theirs.methods if m not in ours.methods)),
        )
        return Results(plan, {**self.dates, **new.dates}, {**self.cells, **new.cells})


def write_results(results: Results, path: Path) -> Path:
    """Write a results file; numbers are rounded."""
    lines = [{"plan": asdict(results.plan), "dates": dict(results.dates)}]
    for (scenario, n, method), cell in results.cells.items():
        line: dict[str, Any] = {"scenario": scenario, "n": n, "method": method, "tau": cell.tau}
        line |= {"replicates": cell.replicates, "clients": cell.clients, "stopped": cell.stopped}
        for metric, found in cell.means.items():
            error = None if found.error is None else round(found.error, DECIMALS)
            line[metric] = [round(found.mean, DECIMALS), error]
        lines.append(line)
    return write_text(path, "".join(json.dumps(line) + "\n" for line in lines))


def read_results(path: Path) -> Results:
    """Read a results file."""
    with readable(path):
        text = path.read_text(encoding="utf-8")
    try:
        head, *lines = [json.loads(line) for line in text.splitlines()]
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in head["plan"].items()
        }
        fields["scenarios"] = tuple(Scenario(**scenario) for scenario in fields["scenarios"])
        plan = Plan(**fields)
        cells = {
            (line["scenario"], line["n"], line["method"]): Cell(
                replicates=line["replicates"],
                clients=line["clients"],
                stopped=line["stopped"],
                tau=line["tau"],
                means={metric: Mean(*line[metric]) for metric in METRICS},
            )
            for line in lines
        }
        return Results(plan, head["dates"], cells)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"it is not a results file ({type(error).__name__}: {error})",
            "Pass a results.jsonl that `jigsaw reproduce` wrote.",
            path=path,
        ) from None
