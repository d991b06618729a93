"""Population: F1 and false statements of exact assembly, beside Algorithm 3, on random worlds.

By default the fragments are what clients without error say; `--recover` recovers them from exact
moments instead.

    python benchmarks/assembly_population.py --worlds 100
"""

from __future__ import annotations

import argparse

import numpy as np
from assembly_corruption import decided, f1, perfect

import jigsaw_crl as jc

CELLS = ((10, 15), (20, 15), (40, 15), (20, 5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--recover", action="store_true")
    options = parser.parse_args()
    print("| p | K | assembly | F1 | undetermined | false statements | not exact |")
    print("|---|---|---|---|---|---|---|")
    for p, n_clients in CELLS:
        rows: dict[str, list[tuple[float, float, int, int]]] = {}
        for seed in range(options.worlds):
            world = jc.simulate.random_world(p, n_clients, 0.6, seed=seed)
            if options.recover:
                given = [jc.recover_fragment(c) for c in world.clients()]
            else:
                given = perfect(world)
            for name, order in (
                ("Algorithm 3", jc.assemble(given, method="paper")),
                ("exact", jc.assemble(given)),
                ("exact, closed world", jc.assemble(given, closed_world=True)),
            ):
                pairs, known, wrong = decided(order, world)
                rows.setdefault(name, []).append(
                    (f1(order, world), 1 - known / pairs, wrong, int(order.mode == "evidence"))
                )
        for name, values in rows.items():
            mean = np.mean(values, axis=0)
            print(
                f"| {p} | {n_clients} | {name} | {mean[0]:.3f} | {mean[1]:.4f} "
                f"| {int(sum(v[2] for v in values))} | {int(sum(v[3] for v in values))} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
