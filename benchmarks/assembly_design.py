"""How many further clients settle everything: designed ones against random ones.

python benchmarks/assembly_design.py --worlds 100
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from assembly_corruption import perfect
from reporting import header, options, row

import jigsaw_crl as jc
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
            labels = list(jc.next_client(order, size).labels)
            slowest = max(slowest, time.perf_counter() - start)
        else:
            count = min(size, len(order.labels))
            labels = rng.choice(order.labels, size=count, replace=False).tolist()
        order = order.add(observe(world, labels, f"extra-{number:02d}"))
    return most, len(order.undetermined() - hopeless), slowest


def main() -> None:
    given = options(__doc__, worlds=100, latent=20, clients=5, size=12, most=30).parse_args()
    header("clients", "extra needed (mean)", "largest", "worlds not finished", "slowest design (s)")
    for kind in ("designed", "random"):
        found = []
        for seed in range(given.worlds):
            world = jc.simulate.random_world(given.latent, given.clients, 0.6, seed=seed)
            rng = None if kind == "designed" else np.random.default_rng([seed, 8])
            found.append(extra_clients(world, given.size, given.most, rng))
        needed, left, spent = (np.array(column) for column in zip(*found, strict=True))
        row(kind, needed.mean(), needed.max(), int((left > 0).sum()), spent.max())


if __name__ == "__main__":
    main()
