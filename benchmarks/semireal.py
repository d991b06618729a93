"""Published linear-Gaussian networks, cut into fragments: a semi-real suite.

    pip install --no-deps pgmpy==1.0.0     (or the extra `semireal`, which brings torch along)
    python benchmarks/pages.py try --only semireal --worlds 2
    python benchmarks/pages.py run --only semireal

Graphs, weights and noise are those of the networks that the package pgmpy carries: gene expression
of E. coli (ecoli70) and of Arabidopsis (arth150), wheat (magic-niab) and rice (magic-irri). The
clients, mixings and interventions are simulated: fifteen clients with a random half of the latents
each. Every latent is measured in units of its own noise, as the paper does; a client's mixing would
absorb any other unit. A shift moves the mean of the target by 1 to 3 standard deviations of its
noise. The last line makes a table of docs/calibration.md.
"""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from records import Record, Table, by_cell
from reporting import markdown
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc
from jigsaw_crl.truth.metrics import VerdictCounts

# First seed of each family. No test, example or other benchmark uses seeds in these ranges.
SEEDS = {"choose": 7_400_000, "judge": 7_410_000}
# A package that not every environment has.
NEEDS = "pgmpy"
NETWORKS = ("ecoli70", "magic-niab", "magic-irri", "arth150")
CLIENTS = 15


@dataclass(frozen=True)
class Cell:
    """A network, its interventions, and the rows of each regime."""

    network: str
    kind: str = "paper"
    shifted: bool = False
    said: Literal["soft", "hard"] = "soft"
    rows: int = 10_000


def network(name: str) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Labels and the weights A in units of each node's noise: `A[i, j] σ_j / σ_i`."""
    # The files are read without importing pgmpy, which would need torch.
    found = importlib.util.find_spec(NEEDS)
    if found is None or not found.submodule_search_locations:
        raise SystemExit("pgmpy is missing: pip install --no-deps pgmpy==1.0.0")
    folder = Path(found.submodule_search_locations[0], "utils", "example_models")
    if not (folder / f"{name}.json").exists():
        raise SystemExit(f"{folder} has no {name}.json: pip install --no-deps pgmpy==1.0.0")
    document = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    labels = list(document["nodes"])
    position = {label: i for i, label in enumerate(labels)}
    A = np.zeros((len(labels), len(labels)))
    sigma = np.ones(len(labels))
    for label, law in document["cpds"].items():
        sigma[position[label]] = np.sqrt(law["variance"][0])
        for parent in law["parents"]:
            A[position[label], position[parent]] = law["coefficients"][parent][0]
    return labels, A * sigma / sigma[:, None]


def run_world(cell: Cell, family: str, number: int) -> Record:
    """Cut one network into clients, recover it, and compare with the truth."""
    seed = SEEDS[family] + number
    labels, A = network(cell.network)
    rng = np.random.default_rng([seed, 77])
    half = round(len(labels) / 2)
    views = [rng.choice(len(labels), size=half, replace=False).tolist() for _ in range(CLIENTS)]
    shift = (1.0, 3.0) if cell.shifted else (0.0, 0.0)
    protocol = jc.simulate.Intervention.named(cell.kind, shift=shift)
    world = jc.simulate.world_from_graph(A, views, None, seed, names=labels, intervention=protocol)
    with threadpool_limits(1):
        clients = world.clients(n_samples=cell.rows, seed=seed)
        order = jc.recover(clients, interventions=cell.said).order
    return {
        "cell": asdict(cell),
        "seeds": family,
        "world": number,
        "labels": len(labels),
        "E1": float(jc.metrics.global_f1(world.order, order)),
        "counts": asdict(jc.metrics.verdict_counts(world.order, order)),
    }


def network_table(records: list[Record]) -> str:
    """A row for each network, a column for each kind: E1, wrong "yes" and wrong "no"."""
    rows: dict[str, dict[str, str]] = {}
    for cell, found in by_cell(Cell, records).items():
        c = sum((VerdictCounts(**r["counts"]) for r in found), VerdictCounts())
        said = () if cell.kind == "paper" else (f"said {cell.said}",)
        kind = ", ".join([cell.kind, *(["shifted"] if cell.shifted else []), *said])
        e1 = f"{np.mean([r['E1'] for r in found]):.2f}"
        name = f"{cell.network} ({found[0]['labels']})"
        wrong = f"{c.wrong_yes}/{c.yes:,}, {c.wrong_no}/{c.no:,}"
        rows.setdefault(name, {})[kind] = f"{e1}, {wrong}"
    kinds = dict.fromkeys(kind for own in rows.values() for kind in own)
    lines = [(name, *(own.get(kind, "–") for kind in kinds)) for name, own in rows.items()]
    return markdown(("network (latents)", *kinds), lines)


PAGE = tuple(
    (Cell(name, *kind), 2)
    for kind in (
        ("paper",),
        ("hard-replace", True, "hard"),
        ("hard-replace", False, "hard"),
        ("hard-replace", False, "soft"),
    )
    for name in NETWORKS
)
PUBLISHED = (Table("networks", "docs/calibration.md", PAGE, network_table),)
