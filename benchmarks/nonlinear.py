"""Hard interventions in systems that need not be linear: the tables of docs/nonlinear.md.

    python benchmarks/pages.py try --only nonlinear --worlds 2
    python benchmarks/pages.py run --only nonlinear

Sizes: `one` (one client with 8 labels and 4 hidden latents, 10⁴ rows, shift 1), `rows` (2·10³
rows), `shift` (shift .3), `large` (16 labels and 8 hidden latents, Laplace noise), `eight` (eight
clients with half of 20 labels each). Graphs are random (1.5 edges per latent), chains, trees, hubs,
layers and scale-free, in turns. Weights have sizes from Unif[.5, 1.5] and either sign; an
intervention sets its target to a mean of `shift` and a standard deviation of .7 standard
deviations. The first line prints the tables from worlds for choosing constants (`--where
system=relu` those of one system); the second one makes those of the page, from worlds that nothing
was chosen on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import numpy as np
from records import Record, Table, by_cell
from reporting import markdown
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.truth.metrics import VerdictCounts
from jigsaw_crl.truth.simulate import Intervention, World, world_from_graph
from jigsaw_crl.truth.simulate.graphs import FAMILIES

# First seed of each family. Constants were chosen on worlds below 100,000.
SEEDS = {"choose": 61_000, "mend": 101_000, "judge": 104_000}
GRAPHS = ("er", "chain", "tree", "hubs", "layered", "scale-free")
SYSTEMS = ("linear", "tanh", "saturating", "relu", "noise", "products", "sine", "mixed", "squares")
# Edges of the bins of stated probability.
BINS = (0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 1.0)
# What is asked of each size: F1 of the stated pairs, and the largest share of wrong verdicts.
ASKED = {
    "one": {**dict.fromkeys(SYSTEMS, 0.96), "linear": 0.98, "mixed": 0.95, "squares": 0.85},
    "rows": dict.fromkeys(SYSTEMS, 0.92),
    "shift": {"tanh": 0.93, "saturating": 0.93},
    "large": dict.fromkeys(SYSTEMS, 0.93),
    "eight": dict.fromkeys(SYSTEMS, 0.96),
}
WRONG = 0.01


@dataclass(frozen=True)
class Cell:
    """A system, and the sizes of a world and of its samples."""

    system: str = "linear"
    labels: int = 8
    hidden: int = 4
    clients: int = 1
    rows: int = 10_000
    shift: float = 1.0
    noise: str = "gaussian"


SIZES = {
    "one": Cell(),
    "rows": Cell(rows=2_000),
    "shift": Cell(shift=0.3),
    "large": Cell(labels=16, hidden=8, noise="laplace"),
    "eight": Cell(labels=20, hidden=0, clients=8),
}


def edges_of(graph: str, p: int, rng: np.random.Generator) -> BoolArray:
    """`[i, j]`: j is a cause of i, for j > i; shape (p, p). Two "hubs" cause most others."""
    if graph != "hubs":
        return FAMILIES[graph](p, rng)
    edges = np.zeros((p, p), dtype=bool)
    hubs = rng.choice(np.arange(p // 2, p), 2, replace=False)
    edges[:, hubs] = rng.random((p, 2)) < 0.7
    edges[hubs] |= rng.random((2, p)) < 0.2
    return np.asarray(np.triu(edges, 1))


def world_of(cell: Cell, seed: int) -> World:
    """A world of the cell, graphs in turns; several clients access half of the latents each."""
    rng = np.random.default_rng([seed, 1])
    p = cell.labels + cell.hidden
    edges = edges_of(GRAPHS[seed % len(GRAPHS)], p, rng)
    A = np.where(edges, rng.choice([-1.0, 1.0], (p, p)) * rng.uniform(0.5, 1.5, (p, p)), 0.0)
    size = cell.labels if cell.clients == 1 else p // 2
    sets = [sorted(rng.choice(p, size, replace=False).tolist()) for _ in range(cell.clients)]
    protocol = Intervention("set", shift=cell.shift)
    return world_from_graph(A, sets, None, seed, intervention=protocol, system=cell.system)


def f1(right: int, stated_and_true: int) -> float:
    """F1 of stated pairs; 1 if there are none and none is true."""
    return 2 * right / stated_and_true if stated_and_true else 1.0


def run_world(cell: Cell, family: str, number: int) -> Record:
    """Verdicts of one world against the truth; a study that is refused states no pair."""
    seed = SEEDS[family] + number
    world = world_of(cell, seed)
    record: Record = {"cell": asdict(cell), "seeds": family, "world": number, "findings": {}}
    labels = sorted({x for k in range(world.n_clients) for x in world.truth(k).labels})
    true = world.order.restrict(labels).pairs()
    none = VerdictCounts(len(labels) * (len(labels) - 1), len(true))
    record |= {"F1": f1(0, len(true)), "counts": asdict(none), "bins": []}
    with threadpool_limits(1):
        try:
            clients = world.clients(cell.rows, cell.noise, seed)
            result = jc.recover(clients, interventions="hard")
        except jc.InputError as refusal:
            return record | {"refused": str(refusal)}
    counts = jc.metrics.verdict_counts(world.order, result.order, labels)
    frame = result.order.to_frame()
    is_true = np.array([p in true for p in zip(frame.ancestor, frame.descendant, strict=True)])
    bins = np.digitize(frame.probability.to_numpy(), BINS[1:-1])
    own = [bins == b for b in range(len(BINS) - 1)]
    return record | {
        "F1": f1(counts.yes - counts.wrong_yes, counts.yes + len(true)),
        "counts": asdict(counts),
        "bins": [
            [int(x.sum()), float(frame.probability[x].sum()), int(is_true[x].sum())] for x in own
        ],
        "findings": dict(Counter(f.check for f in result.diagnostics)),
    }


@dataclass(frozen=True)
class Score:
    """The worlds of a cell together: F1 of the stated pairs, and the verdicts."""

    F1: float
    counts: VerdictCounts

    @classmethod
    def of(cls, records: Iterable[Record]) -> Score:
        found = list(records)
        counts = sum((VerdictCounts(**r["counts"]) for r in found), VerdictCounts())
        return cls(float(np.mean([r["F1"] for r in found])), counts)

    def __str__(self) -> str:
        c = self.counts
        return f"{self.F1:.2f}, {c.wrong_yes}/{c.yes}, {c.wrong_no}/{c.no}"

    def missed(self, asked: float) -> bool:
        """F1 is lower than what is asked for, or too many verdicts are wrong."""
        c = self.counts
        wrong = c.wrong_yes > WRONG * c.yes or c.wrong_no > WRONG * c.no
        return wrong or asked > self.F1


def sizes_of(records: Iterable[Record]) -> dict[str, dict[str, list[Record]]]:
    """The records of each size and system."""
    groups = by_cell(Cell, records)
    names = {size: name for name, size in SIZES.items()}
    sizes: dict[str, dict[str, list[Record]]] = {}
    for cell, found in groups.items():
        sizes.setdefault(names[replace(cell, system="linear")], {})[cell.system] = found
    return sizes


def score_table(records: list[Record]) -> str:
    """F1, wrong "yes" and "no"; a line for each system, a column for each size.

    What does not reach what is asked for is in bold.
    """
    sizes = sizes_of(records)
    systems = dict.fromkeys(system for own in sizes.values() for system in own)

    def cell(size: str, system: str) -> str:
        if system not in sizes[size]:
            return "–"
        score = Score.of(sizes[size][system])
        return f"**{score}**" if score.missed(ASKED[size].get(system, 0.0)) else str(score)

    rows = [(system, *(cell(size, system) for size in sizes)) for system in systems]
    refused = sum("refused" in r for r in records)
    table = markdown(("system", *sizes), rows)
    return f"{table}\n\n{refused} of {len(records)} studies were refused."


def stated_table(records: list[Record]) -> str:
    """Stated probabilities against the share that is true, in the systems that are not linear."""
    found = [r for r in records if r["bins"] and r["cell"]["system"] != "linear"]
    rows = []
    for b, (low, high) in enumerate(pairwise(BINS)):
        n, stated, true = np.sum([r["bins"][b] for r in found], axis=0)
        if n:
            rows.append((f"{low:g} to {high:g}", f"{int(n):,}", stated / n, true / n))
    counts = Score.of(found).counts
    alarms = sum("not-hard" in r["findings"] for r in records)
    return (
        f"{markdown(('stated', 'pairs', 'mean stated', 'true'), rows)}\n\n"
        f"{counts.wrong_yes} of {counts.yes:,} *yes* and {counts.wrong_no} of {counts.no:,} *no* "
        f"are wrong; `not-hard` is said in {alarms} of all {len(records)} studies."
    )


def cells_of(sizes: Iterable[str], systems: Iterable[str]) -> list[Cell]:
    """Every system at every size."""
    return [replace(SIZES[size], system=system) for size in sizes for system in systems]


SMALL = tuple((cell, 12) for cell in cells_of(("one", "rows", "shift"), SYSTEMS))
LARGE = tuple((cell, 8) for cell in cells_of(("large", "eight"), SYSTEMS))
PUBLISHED = tuple(
    Table(f"nonlinear: {name}", "docs/nonlinear.md", SMALL + LARGE, show)
    for name, show in (("scores", score_table), ("stated", stated_table))
)
