"""The light tunnel through neighbouring packages, measured directly and mixed.

pip install gies causal-learn
python benchmarks/peers.py
"""

from __future__ import annotations

from importlib import import_module

import numpy as np
from reporting import header, row

import jigsaw_crl as jc
from jigsaw_crl.truth.datasets import LIGHT_TUNNEL_EDGES, VARIABLES, light_tunnel

TRUE = set(LIGHT_TUNNEL_EDGES)


def main() -> None:
    tables = {regime: table.to_numpy() for regime, table in light_tunnel().items()}
    header("method", "columns", "true edges of 5", "false", "undirected")
    mixing = np.random.default_rng(0).normal(size=(5, 5))
    for columns, mixed in (("measured directly", np.eye(5)), ("mixed", mixing)):
        rows = [tables[regime] @ mixed for regime in ("control", *VARIABLES)]
        # Entry [i, j]: an edge from i to j; both ways where it has no direction.
        found, _ = import_module("gies").fit_bic(rows, [[], *([i] for i in range(5))])
        _told("gies", columns, np.asarray(found) != 0)
        pc = import_module("causallearn.search.ConstraintBased.PC").pc
        _told("causal-learn, PC", columns, pc(rows[0], 0.01, show_progress=False).G.graph == -1)
    control, *moved = rows
    regimes = dict(zip(VARIABLES, moved, strict=True))
    table = jc.Client.from_samples("one", observational=control, interventions=regimes, hard=True)
    for name, clients in (
        ("four clients", jc.datasets.light_tunnel_study()),
        ("the peers' own mixed table", [table]),
    ):
        graph = jc.recover(clients).graph
        edges = {(a, d) for a, d, about in graph.edges(data=True) if about["verdict"] == "direct"}
        row(f"jigsaw-crl, {name}", "mixed", len(edges & TRUE), len(edges - TRUE), 0)
    print("ancestors if no cause is hidden:", jc.recover([table], confounding="none").order.pairs())


def _told(method: str, columns: str, edge: np.ndarray) -> None:
    both = edge & edge.T
    found = {(VARIABLES[i], VARIABLES[j]) for i, j in np.argwhere(edge & ~both).tolist()}
    row(method, columns, len(found & TRUE), len(found - TRUE), int(both.sum()) // 2)


if __name__ == "__main__":
    main()
