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

__all__ = ["METRICS", "Cell", "Cells", "summarise", "write_csv"]

METRICS = ("e1", "e2", "e3", "seconds")
COLUMNS = (
    *("scenario", "n", "replicate", "method", "tau", "e1", "e2", "e3"),
    *("clients", "stopped", "seconds"),
)


@dataclass(frozen=True)
class Cell:
    """Mean of a metric over replicates.

    Parameters
    ----------
    mean : float
    error : float or None
        Standard error of the mean; None for a single replicate.
    replicates : int
    """

    mean: float
    error: float | None
    replicates: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Cell:
        """Mean and standard error; exact sums, so that the order of the values does not matter.

        Examples
        --------
        >>> from jigsaw_crl.truth.experiments.summary import Cell
        >>> Cell.of([1.0, 3.0])
        Cell(mean=2.0, error=1.0, replicates=2)
        """
        x = list(values)
        mean = fsum(x) / len(x)
        if len(x) < 2:
            return cls(mean, None, len(x))
        variance = fsum((v - mean) ** 2 for v in x) / (len(x) - 1)
        return cls(mean, sqrt(variance / len(x)), len(x))

    def __str__(self) -> str:
        return f"{self.mean:.2f}" if self.error is None else f"{self.mean:.2f} ± {self.error:.2f}"


# (scenario, n, method, metric) to its mean.
Cells = Mapping[tuple[str, int | None, str, str], Cell]


def summarise(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int | None, str, str], Cell]:
    """Every metric of every scenario, size and method."""
    values: dict[tuple[str, int | None, str, str], list[float]] = defaultdict(list)
    for row in rows:
        for metric in (*METRICS, "stopped"):
            place = (row["scenario"], row["n"], row["method"], metric)
            values[place].append(float(row[metric]))
    return {place: Cell.of(found) for place, found in values.items()}


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
