"""A thousand labels, a thousand clients of fifty: time, memory, and the time of certificates.

python benchmarks/assembly_scale.py
"""

from __future__ import annotations

import resource
import time

import numpy as np
from assembly_corruption import flipped, large_world, perfect, weighed
from reporting import header, options, row, share

import jigsaw_crl as jc


def main() -> None:
    parser = options(__doc__, labels=1000, clients=1000, size=50, certificates=200)
    parser.add_argument("--rate", type=float, default=0.02, help="share of wrong statements")
    parser.add_argument("--modes", nargs="*", default=["exact", "evidence", "contradictory"])
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    world = large_world(given.labels, given.clients, given.size, rng)
    exact = perfect(world)
    wrong = [flipped(f, given.rate, rng) for f in exact]
    fragments = {
        "exact": exact,
        "evidence": [weighed(f, given.rate) for f in wrong],
        "contradictory": wrong,
    }
    names = ("seconds", "peak GB", "F1", "decided", "wrong", "slowest certificate (s)", "note")
    header("fragments", *names)
    for name in given.modes:
        start = time.perf_counter()
        order = jc.assemble(fragments[name])
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        slowest = 0.0
        for _ in range(given.certificates):
            a, d = rng.choice(order.labels, size=2, replace=False)
            start = time.perf_counter()
            str(order.explain(str(a), str(d)))
            slowest = max(slowest, time.perf_counter() - start)
        counts = jc.metrics.verdict_counts(world.order, order)
        row(
            name,
            seconds,
            peak,
            jc.metrics.global_f1(world.order, order),
            counts.decided,
            share(counts.wrong_yes + counts.wrong_no, counts.yes + counts.no),
            slowest,
            order.convergence or "",
        )


if __name__ == "__main__":
    main()
