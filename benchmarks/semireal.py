"""Published linear-Gaussian networks, cut into fragments: a semi-real suite.

    pip install --no-deps pgmpy==1.0.0     (or the extra `semireal`, which brings torch along)
    python benchmarks/semireal.py          the table, as Markdown

Graphs, weights and noise are those of the networks that the package pgmpy carries: gene expression
of E. coli (ecoli70) and of Arabidopsis (arth150), wheat (magic-niab) and rice (magic-irri). The
clients, mixings and interventions are simulated. Every latent is measured in units of its own
noise, as the paper does; a client's mixing would absorb any other unit.
"""

from __future__ import annotations

import importlib.util
import json
import time
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from reporting import header, options, row
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc

NETWORKS = ("ecoli70", "magic-niab", "magic-irri", "arth150")
KINDS = ("paper", "hard-replace")


def network(name: str) -> tuple[list[str], npt.NDArray[np.float64]]:
    """Labels and the weights A in units of each node's noise: `A[i, j] σ_j / σ_i`."""
    # The files are read without importing pgmpy, which would need torch.
    found = importlib.util.find_spec("pgmpy")
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


def one_world(
    name: str,
    protocol: jc.simulate.Intervention,
    clients: int,
    coverage: float,
    n: int,
    seed: int,
    rank_one: Literal["no-ancestor", "unsure"],
) -> dict[str, float]:
    """Cut one network into clients, recover it, and compare with the truth."""
    labels, A = network(name)
    rng = np.random.default_rng([seed, 77])
    size = max(2, round(coverage * len(labels)))
    views = [rng.choice(len(labels), size=size, replace=False).tolist() for _ in range(clients)]
    world = jc.simulate.world_from_graph(A, views, None, seed, names=labels, intervention=protocol)
    data = world.clients(n_samples=n, seed=seed)
    start = time.perf_counter()
    order = jc.recover(data, rank_one=rank_one).order
    seconds = time.perf_counter() - start
    counts = jc.metrics.verdict_counts(world.order, order)
    return {
        "latents": len(labels),
        "ancestor pairs": counts.ancestors,
        "E1": jc.metrics.global_f1(world.order, order),
        "undetermined": 1 - counts.decided,
        "wrong yes": counts.wrong_yes / max(counts.yes, 1),
        "wrong no": counts.wrong_no / max(counts.no, 1),
        "seconds": seconds,
    }


def main() -> None:
    parser = options(__doc__, clients=15, coverage=0.5, seeds=2)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument(
        "--shift",
        type=float,
        nargs=2,
        default=(0.0, 0.0),
        metavar=("LOW", "HIGH"),
        help="range of the mean shifts, in standard deviations of the target's noise",
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rank-one", default="no-ancestor", choices=("no-ancestor", "unsure"))
    given = parser.parse_args()
    columns = ("network", "interventions", "rows", "latents", "ancestor pairs", "E1")
    header(*columns, "undetermined", "wrong yes", "wrong no", "seconds")
    for name, kind, n in product(given.networks, given.kinds, given.rows):
        protocol = jc.simulate.Intervention.named(kind, shift=tuple(given.shift))
        with threadpool_limits(1):
            worlds = [
                one_world(name, protocol, given.clients, given.coverage, n, seed, given.rank_one)
                for seed in range(given.seeds)
            ]
        mean = {key: float(np.mean([w[key] for w in worlds])) for key in worlds[0]}
        sizes = (round(mean.pop("latents")), round(mean.pop("ancestor pairs")))
        seconds = round(mean.pop("seconds"))
        row(name, kind, n, *sizes, *mean.values(), seconds)


if __name__ == "__main__":
    main()
