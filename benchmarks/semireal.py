"""Published linear-Gaussian networks, cut into fragments: a semi-real suite.

    pip install --no-deps pgmpy==1.0.0     (or the extra `semireal`, which brings torch along)
    python benchmarks/semireal.py          the table, as Markdown

Graphs, weights and noise are those of the networks that the package pgmpy carries: gene expression
of E. coli (ecoli70) and of Arabidopsis (arth150), wheat (magic-niab) and rice (magic-irri). The
clients, mixings and interventions are simulated. Every latent is measured in units of its own
noise, as the paper does; a client's mixing would absorb any other unit.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc

NETWORKS = ("ecoli70", "magic-niab", "magic-irri", "arth150")
KINDS = ("paper", "hard-replace")


def network(name: str) -> tuple[list[str], np.ndarray]:
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


def row(
    name: str, kind: str, clients: int, coverage: float, n: int, seed: int, rank_one: str
) -> dict[str, float]:
    """One world: cut, recover, compare."""
    labels, A = network(name)
    rng = np.random.default_rng([seed, 77])
    views = [
        rng.choice(len(labels), size=max(2, round(coverage * len(labels))), replace=False)
        for _ in range(clients)
    ]
    world = jc.simulate.world_from_graph(
        A, [v.tolist() for v in views], None, seed, names=labels, intervention=kind
    )
    data = world.clients(n_samples=n, seed=seed)
    start = time.perf_counter()
    order = jc.recover(data, rank_one=rank_one).order
    seconds = time.perf_counter() - start
    truth = np.array([[a != d and world.order.is_ancestor(a, d) for d in order.labels]
                      for a in order.labels])  # fmt: skip
    off = ~np.eye(len(truth), dtype=bool)
    yes, no = order.verdicts == 1, (order.verdicts == 0) & off
    return {
        "latents": len(labels),
        "ancestor pairs": float(truth.sum()),
        "E1": jc.metrics.global_f1(world.order, order),
        "undetermined": ((order.verdicts < 0) & off).sum() / off.sum(),
        "wrong yes": (yes & ~truth).sum() / max(yes.sum(), 1),
        "wrong no": (no & truth).sum() / max(no.sum(), 1),
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS), choices=NETWORKS)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--clients", type=int, default=15)
    parser.add_argument("--coverage", type=float, default=0.5)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rank-one", default="no-ancestor", choices=("no-ancestor", "unsure"))
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    columns = ("network", "interventions", "rows", "latents", "ancestor pairs", "E1")
    print("|", " | ".join((*columns, "undetermined", "wrong yes", "wrong no", "seconds")), "|")
    print("|" + "---|" * 10, flush=True)
    for name in given.networks:
        for kind in given.kinds:
            for n in given.rows:
                with threadpool_limits(1):
                    rows = [
                        row(name, kind, given.clients, given.coverage, n, seed, given.rank_one)
                        for seed in range(given.seeds)
                    ]
                m = {key: float(np.mean([r[key] for r in rows])) for key in rows[0]}
                print(
                    f"| {name} | {kind} | {n} | {m['latents']:.0f} | {m['ancestor pairs']:.0f} | "
                    f"{m['E1']:.2f} | {m['undetermined']:.3f} | {m['wrong yes']:.3f} | "
                    f"{m['wrong no']:.3f} | {m['seconds']:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
