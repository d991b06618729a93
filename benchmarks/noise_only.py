"""Interventions that change noise alone, beside others that change weights: what is said then?

    python benchmarks/noise_only.py --worlds 20 --first 7000

In every world some labels, drawn at random, have the paper's interventions, and all others change
noise alone. The table has the verdicts by kind of graph and by the share of labels whose
interventions change weights.
"""

from __future__ import annotations

import numpy as np
from reporting import header, mean_and_error, options, row

import jigsaw_crl as jc
from jigsaw_crl.truth.metrics import VerdictCounts

# Graph, labels, sites, and the probability that a site has a label.
CELLS = (("chain", 4, 3, 1.0), ("er", 8, 6, 0.7), ("tree", 8, 6, 0.7))
SHARES = (0.25, 0.5, 0.75, 1.0)


def study(
    cell: tuple[str, int, int, float], share: float, seed: int, n: int
) -> tuple[jc.simulate.World, list[jc.Client]]:
    """A world and its clients; `share` of the labels have interventions that change weights."""
    graph, n_labels, n_sites, coverage = cell
    weights, noise = (
        jc.simulate.random_world(
            n_labels, n_sites, coverage, seed=seed, graph=graph, intervention=kind
        )
        for kind in ("paper", "noise-only")
    )
    labels = sorted(weights.labels)
    drawn = np.random.default_rng(seed).permutation(labels)
    changing = set(drawn[: max(1, round(share * len(labels)))].tolist())
    clients = []
    for k in range(weights.n_clients):
        (control, changed), (_, louder) = (w.rows(k, n, seed=seed + 1) for w in (weights, noise))
        regimes = {x: (changed if x in changing else louder)[x] for x in changed}
        clients.append(
            jc.Client.from_samples(f"site-{k}", observational=control, interventions=regimes)
        )
    return weights, clients


def main() -> None:
    parser = options(__doc__, worlds=20, first=7000, rows=10_000)
    given = parser.parse_args()
    header("graph", "weights change", "E1", "decided", "yes", "wrong", "no", "wrong")
    for cell in CELLS:
        for share in SHARES:
            scores, counts = [], VerdictCounts()
            for seed in range(given.first, given.first + given.worlds):
                world, clients = study(cell, share, seed, given.rows)
                order = jc.recover(clients).order
                scores.append(jc.metrics.global_f1(world.order, order))
                counts += jc.metrics.verdict_counts(world.order, order)
            said = counts.yes, counts.wrong_yes, counts.no, counts.wrong_no
            row(cell[0], share, mean_and_error(scores), counts.decided, *said)


if __name__ == "__main__":
    main()
