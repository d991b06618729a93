"""Means and standard errors of replicates, and the results file: a plan and its cells.

The file has JSON lines. The first one holds the plan and the day on which each method ran; every
other line is a cell. The pages are made from this file alone.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from math import fsum, sqrt
from pathlib import Path
from typing import Any

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import readable, write_text
from jigsaw_crl.truth.experiments.scenarios import Plan, Scenario

__all__ = [
    "METRICS", "Cell", "Cells", "Mean", "Results", "read_results", "summarise", "write_results",
]  # fmt: skip

# Decimals in the file: two more than a page shows.
DECIMALS = 4
METRICS = ("e1", "e2", "e3", "seconds")


@dataclass(frozen=True)
class Mean:
    """Mean of a metric over replicates.

    Parameters
    ----------
    mean : float
    error : float or None
        Standard error of the mean; None for a single replicate.
    """

    mean: float
    error: float | None

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """Mean and standard error; exact sums, so that the order of the values does not matter.

        Examples
        --------
        >>> from jigsaw_crl.truth.experiments.results import Mean
        >>> Mean.of([1.0, 3.0])
        Mean(mean=2.0, error=1.0)
        """
        x = list(values)
        mean = fsum(x) / len(x)
        if len(x) < 2:
            return cls(mean, None)
        variance = fsum((v - mean) ** 2 for v in x) / (len(x) - 1)
        return cls(mean, sqrt(variance / len(x)))

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.error is None else f"{self.mean:.2f} ± {self.error:.2f}"


@dataclass(frozen=True)
class Cell:
    """The results of one method on the replicates of one scenario and sample size.

    Parameters
    ----------
    replicates : int
    clients, stopped : int
        Clients of all replicates, and how many of their recoveries ended with an outcome other
        than ok.
    tau : float or None
    means : mapping of metric to Mean
        A key for each of `METRICS`.
    """

    replicates: int
    clients: int
    stopped: int
    tau: float | None
    means: Mapping[str, Mean]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Cell:
        """The cell of some replicates, which have τ in common."""
        found = list(rows)
        return cls(
            replicates=len(found),
            clients=sum(row["clients"] for row in found),
            stopped=sum(row["stopped"] for row in found),
            tau=found[0]["tau"],
            means={m: Mean.of(float(row[m]) for row in found) for m in METRICS},
        )

    def spread(self, metric: str) -> float:
        """Standard deviation of the difference between our mean and one further run."""
        return (self.means[metric].error or 0.0) * sqrt(self.replicates + 1)


# (scenario, n, method) to its cell.
Cells = Mapping[tuple[str, int | None, str], Cell]


def summarise(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int | None, str], Cell]:
    """The cell of every scenario, size and method."""
    groups: dict[tuple[str, int | None, str], list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[row["scenario"], row["n"], row["method"]].append(row)
    return {place: Cell.of(found) for place, found in groups.items()}


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
