"""Methods for observed variables on the worlds of docs/nonlinear.md, given the true latents.

    pip install lingam    # MIT; for this comparison only
    python benchmarks/nonlinear_peers.py --worlds 8 --seed 93000

No method for nonlinear systems reads unknown mixtures of different latents. So peers get what ours
must find: the latents themselves, as rows of the control. DirectLiNGAM is made for linear systems
with noise that is not Gaussian, RESIT for nonlinear ones with additive noise; both for systems
without hidden causes, of which these worlds have four. RESIT compares all rows with one another and
gets 500. F1 is that of ancestor pairs.
"""

from __future__ import annotations

import argparse
import warnings

import lingam
import numpy as np
from nonlinear import SYSTEMS, Cell, f1, world_of
from sklearn.ensemble import GradientBoostingRegressor


def ancestors(adjacency: np.ndarray) -> np.ndarray:
    """`[a, d]`: there is a path from a to d; `adjacency[d, a]` is the edge from a to d."""
    edges = np.nan_to_num(adjacency).T != 0
    steps = np.linalg.matrix_power(np.eye(len(edges)) + edges, len(edges)) > 0
    return np.asarray(steps & ~np.eye(len(edges), dtype=bool))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=SYSTEMS)
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=53_000, help="of the first world")
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    print("system          DirectLiNGAM, 10,000 rows  RESIT, 500 rows")
    for system in given.systems:
        scores: dict[str, list[float]] = {"direct": [], "resit": []}
        wrong = dict.fromkeys(scores, 0)
        stated = dict.fromkeys(scores, 0)
        for seed in range(given.seed, given.seed + given.worlds):
            cell = Cell(system)
            world = world_of(cell, seed)
            view = world.view(0)
            control, _ = world.rows(0, cell.rows, seed=seed)
            Z = np.asarray(control) @ np.linalg.pinv(view.mixing).T
            labels = [world.names[i] for i in view.nodes]
            pairs = world.order.pairs()
            true = np.array([[(a, d) in pairs for d in labels] for a in labels])
            peers = {
                "direct": (lingam.DirectLiNGAM(), Z),
                "resit": (lingam.RESIT(GradientBoostingRegressor(n_estimators=30)), Z[:500]),
            }
            for name, (method, rows) in peers.items():
                found = ancestors(method.fit(rows).adjacency_matrix_)
                right = int((found & true).sum())
                scores[name].append(f1(right, int(found.sum() + true.sum())))
                wrong[name] += int(found.sum()) - right
                stated[name] += int(found.sum())
        cells = (f"{np.mean(scores[k]):.2f}, {wrong[k]} of {stated[k]} wrong" for k in scores)
        print(f"{system:15} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
