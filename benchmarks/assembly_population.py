"""Exact statements: F1 and wrong verdicts of assembly, beside Algorithm 3, on random worlds.

By default the fragments are what clients without error say; `--recover` recovers them from exact
moments instead.

    python benchmarks/assembly_population.py --worlds 100
"""

from __future__ import annotations

import numpy as np
from assembly_corruption import perfect
from reporting import header, options, row

import jigsaw_crl as jc

CELLS = ((10, 15), (20, 15), (40, 15), (20, 5))


def main() -> None:
    parser = options(__doc__, worlds=100)
    parser.add_argument("--recover", action="store_true")
    given = parser.parse_args()
    header("p", "K", "assembly", "F1", "undetermined", "wrong verdicts", "not exact")
    for p, n_clients in CELLS:
        found: dict[str, list[tuple[float, float, int, bool]]] = {}
        for seed in range(given.worlds):
            world = jc.simulate.random_world(p, n_clients, 0.6, seed=seed)
            if given.recover:
                fragments = [jc.recover_fragment(c) for c in world.clients()]
            else:
                fragments = perfect(world)
            for name, order in (
                ("Algorithm 3", jc.assemble(fragments, method="paper")),
                ("exact", jc.assemble(fragments)),
            ):
                counts = jc.metrics.verdict_counts(world.order, order)
                f1 = jc.metrics.global_f1(world.order, order)
                wrong = counts.wrong_yes + counts.wrong_no
                cell = (f1, 1 - counts.decided, wrong, order.mode == "evidence")
                found.setdefault(name, []).append(cell)
        for name, cells in found.items():
            f1s, undetermined, wrong, inexact = np.array(cells).T
            total = (int(wrong.sum()), int(inexact.sum()))
            row(p, n_clients, name, f1s.mean(), undetermined.mean(), *total)


if __name__ == "__main__":
    main()
