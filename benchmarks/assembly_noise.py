"""Assembly of statements that are wrong at a known or unknown rate: F1 and decided pairs.

python benchmarks/assembly_noise.py --worlds 100
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from assembly_corruption import decided, f1, flipped, perfect, weighed

import jigsaw_crl as jc


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--latent", type=int, default=20)
    parser.add_argument("--clients", type=int, default=15)
    parser.add_argument("--rates", type=float, nargs="*", default=[0.01, 0.05, 0.1, 0.2])
    options = parser.parse_args()
    print("| rate | log-odds | F1 | F1 Algorithm 3 | decided | of these wrong | converged | s |")
    print("|---|---|---|---|---|---|---|---|")
    for rate in options.rates:
        for known in (True, False):
            rows, baseline, counts, agreed, spent = [], [], np.zeros(3), 0, 0.0
            for seed in range(options.worlds):
                world = jc.simulate.random_world(options.latent, options.clients, 0.6, seed=seed)
                rng = np.random.default_rng([seed, 5])
                spoilt = [flipped(f, rate, rng) for f in perfect(world)]
                given = [weighed(f, rate) for f in spoilt] if known else spoilt
                start = time.perf_counter()
                order = jc.assemble(given)
                spent += time.perf_counter() - start
                rows.append(f1(order, world))
                counts += decided(order, world)
                agreed += order.convergence is None or order.convergence.converged
                baseline.append(union_f1(spoilt, world))
            print(
                f"| {rate:.2f} | {'given' if known else 'estimated'} | {np.mean(rows):.3f} "
                f"| {np.mean(baseline):.3f} | {counts[1] / counts[0]:.3f} "
                f"| {counts[2] / counts[1]:.4f} | {agreed / options.worlds:.2f} "
                f"| {spent / options.worlds:.2f} |",
                flush=True,
            )


def union_f1(fragments: list[jc.Fragment], world: jc.simulate.World) -> float:
    """The union of all positive statements, closed: what Algorithm 3 does with statements."""
    from jigsaw_crl.base.order import transitive_closure

    labels = world.labels
    position = {label: i for i, label in enumerate(labels)}
    relation = np.zeros((len(labels), len(labels)), dtype=bool)
    for fragment in fragments:
        where = [position[label] for label in fragment.labels]
        assert fragment.statements is not None
        relation[np.ix_(where, where)] |= fragment.statements.ancestor == 1
    said = transitive_closure(relation)
    np.fill_diagonal(said, False)
    true = world.order.restrict(labels).matrix
    return float(2 * (said & true).sum() / max(said.sum() + true.sum(), 1))


if __name__ == "__main__":
    main()
