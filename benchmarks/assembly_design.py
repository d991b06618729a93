"""How many further clients settle everything: designed ones against random ones.

python benchmarks/assembly_design.py --worlds 100
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np
from assembly_corruption import perfect

import jigsaw_crl as jc
from jigsaw_crl.assembly.design import next_client
from jigsaw_crl.truth.simulate.perfect import perfect_fragment
from jigsaw_crl.truth.simulate.world import View


def observe(world: jc.simulate.World, labels: list[str], name: str) -> jc.Fragment:
    """What a further client without error says about these labels."""
    nodes = np.array([world.node(label) for label in labels], dtype=np.intp)
    view = View(name, nodes, np.eye(len(nodes)))
    return perfect_fragment(replace(world, views=(view,)).truth(0))


def extra_clients(
    world: jc.simulate.World, size: int, most: int, rng: np.random.Generator | None
) -> tuple[int, int, float]:
    """Clients added until no pair that can be settled is open; pairs left; longest design.

    A pair confounded by a latent that no client has labelled stays open even for a client that
    accesses every known label; such pairs are not asked for.
    """
    order, slowest = jc.assemble(perfect(world)), 0.0
    hopeless = order.add(observe(world, list(order.labels), "everything")).undetermined()
    for number in range(most):
        if order.undetermined() <= hopeless:
            return number, 0, slowest
        if rng is None:
            start = time.perf_counter()
            labels = list(next_client(order, size).labels)
            slowest = max(slowest, time.perf_counter() - start)
        else:
            labels = rng.choice(order.labels, size=min(size, len(order.labels)), replace=False)
            labels = labels.tolist()
        order = order.add(observe(world, labels, f"extra-{number:02d}"))
    return most, len(order.undetermined() - hopeless), slowest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=100)
    parser.add_argument("--latent", type=int, default=20)
    parser.add_argument("--clients", type=int, default=5)
    parser.add_argument("--size", type=int, default=12)
    parser.add_argument("--most", type=int, default=30)
    options = parser.parse_args()
    print("| clients | extra needed (mean) | largest | worlds not finished | slowest design (s) |")
    print("|---|---|---|---|---|")
    for kind in ("designed", "random"):
        rows = []
        for seed in range(options.worlds):
            world = jc.simulate.random_world(options.latent, options.clients, 0.6, seed=seed)
            rng = None if kind == "designed" else np.random.default_rng([seed, 8])
            rows.append(extra_clients(world, options.size, options.most, rng))
        needed, left, spent = (np.array(column) for column in zip(*rows, strict=True))
        print(
            f"| {kind} | {needed.mean():.2f} | {needed.max()} | {int((left > 0).sum())} "
            f"| {spent.max():.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
