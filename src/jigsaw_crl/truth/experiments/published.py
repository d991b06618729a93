"""The numbers that the paper prints.

Tables 1 to 3 are one run each and carry no standard error. The figures are pictures without
printed numbers; the text states their values in the population (`POPULATION`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

# Columns of the tables; infinity is the population.
SAMPLE_SIZES = (10_000, 50_000, 100_000, 500_000, 1_000_000, inf)

# "In the population case we obtain E1 = 1 and E2 = E3 = 0", all six scenarios.
POPULATION = {"e1": 1.0, "e2": 0.0, "e3": 0.0}


@dataclass(frozen=True)
class Row:
    """One row of a table: p, K and q, the runtime at n = ∞, and metrics over `SAMPLE_SIZES`."""

    n_latent: int
    n_clients: int
    coverage: float
    seconds: float
    e1: tuple[float, ...]
    e2: tuple[float, ...]
    e3: tuple[float, ...]

    def value(self, metric: str, n: float) -> float:
        """The printed number of a metric at a sample size."""
        found: tuple[float, ...] = getattr(self, metric)
        return found[SAMPLE_SIZES.index(n)]

    def changed(self, what: str) -> float:
        """p, K or q of this row."""
        return {"p": self.n_latent, "K": self.n_clients, "q": self.coverage}[what]


@dataclass(frozen=True)
class Table:
    """One sensitivity table: what varies, and its rows."""

    number: int
    varies: str
    rows: tuple[Row, ...]


# fmt: off
# This world is in all three tables, with the same numbers.
SHARED = Row(20, 15, 0.6, 0.44,
    (0.17, 0.49, 0.50, 0.62, 0.85, 0.93),
    (0.45, 0.28, 0.27, 0.18, 0.10, 0.00),
    (0.48, 0.38, 0.27, 0.14, 0.04, 0.01))

TABLES = (
    Table(1, "p", (
        Row(10, 15, 0.6, 0.17,
            (0.19, 0.45, 0.56, 0.58, 0.81, 1.00),
            (0.32, 0.30, 0.24, 0.14, 0.00, 0.00),
            (0.57, 0.39, 0.25, 0.18, 0.07, 0.00)),
        SHARED,
        Row(30, 15, 0.6, 2.67,
            (0.17, 0.38, 0.47, 0.55, 0.71, 0.82),
            (0.49, 0.38, 0.30, 0.11, 0.08, 0.03),
            (0.50, 0.42, 0.31, 0.09, 0.05, 0.01)),
        Row(40, 15, 0.6, 4.23,
            (0.13, 0.41, 0.45, 0.55, 0.69, 0.77),
            (0.38, 0.34, 0.25, 0.20, 0.07, 0.05),
            (0.49, 0.37, 0.24, 0.14, 0.06, 0.02)),
    )),
    Table(2, "K", (
        Row(20, 5, 0.6, 0.25,
            (0.13, 0.18, 0.19, 0.24, 0.32, 0.34),
            (0.42, 0.34, 0.22, 0.18, 0.10, 0.00),
            (0.58, 0.48, 0.34, 0.11, 0.00, 0.00)),
        Row(20, 10, 0.6, 0.37,
            (0.15, 0.44, 0.46, 0.55, 0.76, 0.81),
            (0.36, 0.28, 0.27, 0.14, 0.10, 0.00),
            (0.48, 0.39, 0.28, 0.13, 0.08, 0.00)),
        SHARED,
        Row(20, 20, 0.6, 0.49,
            (0.18, 0.52, 0.54, 0.67, 0.92, 1.00),
            (0.50, 0.29, 0.21, 0.14, 0.05, 0.00),
            (0.47, 0.36, 0.25, 0.17, 0.04, 0.00)),
    )),
    Table(3, "q", (
        Row(20, 15, 0.5, 0.53,
            (0.12, 0.46, 0.46, 0.57, 0.75, 0.82),
            (0.55, 0.36, 0.29, 0.15, 0.08, 0.00),
            (0.47, 0.39, 0.18, 0.10, 0.08, 0.00)),
        SHARED,
        Row(20, 15, 0.7, 0.82,
            (0.18, 0.54, 0.54, 0.73, 0.91, 1.00),
            (0.44, 0.29, 0.22, 0.14, 0.10, 0.00),
            (0.49, 0.36, 0.26, 0.15, 0.00, 0.00)),
        Row(20, 15, 0.8, 0.77,
            (0.17, 0.52, 0.59, 0.69, 0.94, 1.00),
            (0.41, 0.32, 0.27, 0.18, 0.10, 0.00),
            (0.46, 0.38, 0.27, 0.09, 0.00, 0.00)),
    )),
)
# fmt: on
