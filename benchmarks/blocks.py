"""Are the blocks and the bases of the clients right once the order is assembled?

    python benchmarks/pages.py try --only blocks --worlds 2
    python benchmarks/pages.py run --only blocks

One line per kind of world, noise and number of rows: E1 of the order, E2 of the bases (the distance
of the blocks' row spaces from the true ones), and the share of clients whose blocks are the true
ones. Settings A to C are the paper's; the others are its random worlds with 15 clients.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from records import Record, Table, by_cell
from reporting import markdown
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc

# First seed of each family. No test, example or other benchmark uses seeds in these ranges.
SEEDS = {"choose": 8_300_000, "judge": 8_350_000}
WORLDS = 6


@dataclass(frozen=True)
class Cell:
    """A setting by its letter, or random worlds by their number of latents."""

    kind: str | int
    noise: str
    rows: int

    def world(self, seed: int) -> jc.simulate.World:
        if isinstance(self.kind, str):
            return jc.simulate.setting(self.kind, seed)
        return jc.simulate.random_world(self.kind, 15, 0.6, seed=seed)

    def clients(self, world: jc.simulate.World, seed: int) -> list[jc.Client]:
        """Its clients; moments of Gaussian rows show all that the rows do."""
        if self.noise == "gaussian":
            return world.clients(self.rows, self.noise, seed)
        drawn = (world.sample(k, self.rows, self.noise, seed) for k in range(world.n_clients))
        return [rows.to_client() for rows in drawn]


SETTINGS: list[tuple[str | int, str]] = [
    *((letter, noise) for letter in "ABC" for noise in ("gaussian", "laplace")),
    *((p, "gaussian") for p in (10, 20, 40)),
]
CELLS = [Cell(*x, rows) for x in SETTINGS for rows in (1_000, 10_000, 100_000)]


def run_world(cell: Cell, family: str, number: int) -> Record:
    """E1, E2 and the share of right blocks of one world."""
    seed = SEEDS[family] + number
    world = cell.world(seed)
    with threadpool_limits(1):
        result = jc.recover(cell.clients(world, seed))
    truths = [world.truth(k) for k in range(world.n_clients)]
    found = [result.fragments[truth.client] for truth in truths]
    right = sum(set(f.blocks) == set(t.blocks) for f, t in zip(found, truths, strict=True))
    return {
        "cell": asdict(cell),
        "seeds": family,
        "world": number,
        "E1": jc.metrics.global_f1(world.order, result.order),
        "E2": float(jc.metrics.subspace_error(truths, found)),
        "blocks": right / len(truths),
    }


def blocks_table(records: list[Record]) -> str:
    """One line a kind of world: E2, and the share of right blocks, for each number of rows."""
    sizes = sorted({r["cell"]["rows"] for r in records})
    groups: dict[str, dict[int, list[Record]]] = {}
    for cell, found in by_cell(Cell, records).items():
        name = f"p = {cell.kind}" if isinstance(cell.kind, int) else f"{cell.kind}, {cell.noise}"
        groups.setdefault(name, {})[cell.rows] = found
    rows = [
        (
            name,
            *(
                "/".join(f"{np.mean([r[x] for r in found[n]]):.2f}" for x in ("E2", "blocks"))
                if n in found
                else "–"
                for n in sizes
            ),
        )
        for name, found in groups.items()
    ]
    titles = (f"E2/right blocks, n = {n:,}" for n in sizes)
    return markdown(("worlds", *titles), rows)


PUBLISHED = (
    Table(
        "blocks",
        "docs/calibration.md",
        tuple((c, 24 if isinstance(c.kind, str) else WORLDS) for c in CELLS),
        blocks_table,
    ),
)
