"""Whole studies that are wrong, and findings raised in sound ones.

    python benchmarks/pages.py run --only never_wrong
    python benchmarks/pages.py try --only never_wrong --worlds 20 --seeds mend

Four parts, each with a table. `studies`: families of graphs with the paper's interventions, 20
labels, 15 clients; how many verdicts of the worst study are wrong. `weak`: interventions that
change little, without a shift. `sensors`: six hard labels at one client with hardly more sensors,
which round or are noisy. `alarms`: sound studies of 8 labels and 4 clients, whose rows are
read; how often each finding is raised. Worlds are those of `calibration.py`. The first line makes
tables of `docs/calibration.md`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

import calibration
from calibration import Cell, pooled_table, total
from records import Record, Table
from reporting import markdown

SEEDS = calibration.SEEDS
ROWS = (1_000, 10_000, 100_000)
GRAPHS = ("er", "chain", "tree", "star", "two-stars", "bipartite", "dense", "layered", "scale-free")
KINDS: tuple[tuple[str, float, Literal["soft", "hard"]], ...] = (
    ("paper", 0.0, "soft"),
    ("hard", 0.0, "hard"),
    ("hard", 1.0, "hard"),
)
SMALL: dict[str, Any] = {"latent": 8, "clients": 4, "coverage": 0.7, "read": "rows"}
ONE: dict[str, Any] = {"clients": 1, "coverage": 1.0}
SIX: dict[str, Any] = {"latent": 6, "claim": "hard", **ONE}
# Findings in fewer than this share of the sound studies have one column together.
RARE = 0.005
# The cells of each part, and how many worlds a cell has.
PARTS = {
    "studies": [
        *((Cell(graph="star", n=n), 67) for n in ROWS),
        *(
            (Cell(graph=graph, n=n), 34)
            for graph in ("two-stars", "bipartite", "scale-free", "dense")
            for n in ROWS
        ),
    ],
    "weak": [
        (Cell(kind, n=n, **few), 24)
        for kind in ("mild", "hard-keep", "hard")
        for n in (1_000, 10_000)
        for few in ({}, ONE)
    ],
    "sensors": [
        (Cell("hard", 2.0, features=1.0, read="rounded", **SIX), 20),
        *(
            (Cell("hard", 2.0, features=sensors / 6, sensor_noise=noise, **SIX), 5)
            for sensors in range(6, 11)
            for noise in (0.01, 0.05, 0.1, 0.2)
        ),
    ],
    "alarms": [
        (Cell(kind, shift, n, graph=graph, claim=claim, **SMALL), 67 if n < 100_000 else 22)
        for n in ROWS
        for kind, shift, claim in KINDS
        for graph in GRAPHS
    ],
}


def run_world(cell: Cell, family: str, number: int) -> Record:
    """The world of `calibration.py`, without bins of probability."""
    record = calibration.run_world(cell, family, number)
    return {name: value for name, value in record.items() if name != "bins"}


def alarm_table(records: list[Record]) -> str:
    """How many sound studies have each finding, by family, by rows, and in all."""
    groups: dict[str, list[Record]] = {}
    for field, name in (("graph", "{}"), ("n", "n = {:,}")):
        for record in records:
            groups.setdefault(name.format(record["cell"][field]), []).append(record)
    every = Counter(name for r in records for name in r["findings"])
    often = sorted(name for name, n in every.items() if n >= RARE * len(records))
    rows = []
    for group, found in (*groups.items(), ("all", records)):
        seen, counts = Counter(name for r in found for name in r["findings"]), total(found)
        wrong = (f"{counts.wrong_yes}/{counts.yes:,}", f"{counts.wrong_no}/{counts.no:,}")
        others = sum(n for name, n in seen.items() if name not in often)
        rows.append((group, len(found), *(seen[x] for x in often), others, *wrong))
    findings = (*(f"`{name}`" for name in often), "all others")
    return markdown(("worlds", "studies", *findings, "wrong yes", "wrong no"), rows)


# The part "sensors" is for looking at, and on no page.
SHOWN = ("studies", "weak", "alarms")
PUBLISHED = tuple(
    Table(
        f"never wrong: {part}",
        "docs/calibration.md",
        tuple(PARTS[part]),
        alarm_table if part == "alarms" else pooled_table,
        "fresh",
    )
    for part in SHOWN
)
