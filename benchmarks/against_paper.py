"""Time of both methods on worlds of the paper's protocol, in one run, as Markdown.

    python benchmarks/against_paper.py [--worlds 3]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc


def seconds(p: int, n: int | None, method: str, seed: int) -> tuple[float, float]:
    """Clients' fragments, and fragments with assembly."""
    world = jc.simulate.random_world(p, 15, 0.6, 900_000 + seed)
    clients = [world.client(k, n, seed=seed) for k in range(15)]
    start = time.perf_counter()
    fragments = [jc.recover_fragment(c, method=method) for c in clients]
    middle = time.perf_counter()
    jc.assemble(fragments, method=method)
    return middle - start, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--worlds", type=int, default=3)
    args = parser.parse_args()
    with threadpool_limits(1):
        seconds(6, 10_000, "null-cone", 0)  # compiled kernels are not part of the comparison
        print("| n | method, p | fragments, s | with assembly, s |\n|---|---|---|---|")
        for n in (10_000, 1_000_000, None):
            for method, p in (("paper", 10), ("paper", 20), ("null-cone", 20), ("null-cone", 40)):
                runs = np.array([seconds(p, n, method, s) for s in range(args.worlds)])
                alone, together = runs.mean(axis=0)
                size = "∞" if n is None else f"{n:.0e}"
                print(f"| {size} | {method}, {p} | {alone:.2f} | {together:.2f} |", flush=True)


if __name__ == "__main__":
    main()
