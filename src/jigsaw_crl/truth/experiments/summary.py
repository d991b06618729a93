"""Means and standard errors of replicates."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import fsum, sqrt
from pathlib import Path
from typing import Any

from jigsaw_crl.base.files import write_text

__all__ = ["METRICS", "Cell", "Cells", "Mean", "summarise", "write_csv"]

METRICS = ("e1", "e2", "e3", "seconds")
COLUMNS = (
    *("scenario", "n", "replicate", "method", "tau", "e1", "e2", "e3"),
    *("clients", "stopped", "seconds"),
)


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
        >>> from jigsaw_crl.truth.experiments.summary import Mean
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


def write_csv(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Every replicate, one line per method; n is `inf` in the population."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(
            "inf" if name == "n" and row["n"] is None else row[name] for name in COLUMNS
        )
    write_text(path, text.getvalue())
