"""A thousand labels, a thousand clients of fifty: time, memory, and the time of certificates.

python benchmarks/assembly_scale.py
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from assembly_corruption import decided, f1, flipped, weighed

import jigsaw_crl as jc
from jigsaw_crl.truth.simulate.perfect import perfect_fragment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--labels", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--rate", type=float, default=0.02, help="wrong statements")
    parser.add_argument("--certificates", type=int, default=200)
    parser.add_argument("--modes", nargs="*", default=["exact", "evidence", "contradictory"])
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    present = np.triu(rng.random((options.labels,) * 2) < 3 / options.labels, 1)
    sets = [
        sorted(rng.choice(options.labels, size=options.size, replace=False).tolist())
        for _ in range(options.clients)
    ]
    counts = [options.size] * options.clients
    world = jc.simulate.world_from_graph(present.T, sets, counts, seed=0)
    exact = [perfect_fragment(world.truth(k)) for k in range(world.n_clients)]
    wrong = [flipped(f, options.rate, rng) for f in exact]
    given = {
        "exact": exact,
        "evidence": [weighed(f, options.rate) for f in wrong],
        "contradictory": wrong,
    }
    print(
        "| fragments | seconds | peak GB | F1 | decided | wrong | slowest certificate (s) | note |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in options.modes:
        start = time.perf_counter()
        order = jc.assemble(given[name])
        spent = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        slowest = 0.0
        for _ in range(options.certificates):
            a, d = rng.choice(order.labels, size=2, replace=False)
            start = time.perf_counter()
            str(order.explain(str(a), str(d)))
            slowest = max(slowest, time.perf_counter() - start)
        pairs, known, false = decided(order, world)
        print(
            f"| {name} | {spent:.1f} | {peak:.2f} | {f1(order, world):.3f} | {known / pairs:.3f} "
            f"| {false / max(known, 1):.4f} | {slowest:.2f} | {order.convergence or ''} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
