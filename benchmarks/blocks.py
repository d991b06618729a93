"""Are the blocks and the bases of the clients right once the order is assembled?

    python benchmarks/blocks.py --worlds 8 --seed 7000

One line per kind of world, noise and number of rows: E1 of the order, E2 of the bases (the distance
of the blocks' row spaces from the true ones), and the share of clients whose blocks are the true
ones. Settings A to C are the paper's; the others are its random worlds with 15 clients. Laplace
clients are made of rows, as a user's are: a covariance and a number of rows alone do not show that
tails are heavy, and errors are then stated too small.
"""

from __future__ import annotations

from reporting import header, mean_and_error, options, row
from threadpoolctl import threadpool_limits

import jigsaw_crl as jc

ROWS = (1_000, 10_000, 100_000)
NOISES = ("gaussian", "laplace")
KINDS: tuple[str | int, ...] = ("A", "B", "C", 10, 20, 40)


def world_of(kind: str | int, seed: int) -> jc.simulate.World:
    """A setting by its letter, or a random world by its number of latents."""
    if isinstance(kind, str):
        return jc.simulate.setting(kind, seed)
    return jc.simulate.random_world(kind, 15, 0.6, seed=seed)


def clients_of(world: jc.simulate.World, n: int, noise: str, seed: int) -> list[jc.Client]:
    """The clients with n rows a regime; moments of Gaussian rows show all that the rows do."""
    if noise == "gaussian":
        return world.clients(n, noise, seed)
    return [world.sample(k, n, noise, seed).to_client() for k in range(world.n_clients)]


def main() -> None:
    given = options(__doc__, worlds=8, seed=7_000).parse_args()
    header("world", "noise", "rows", "E1", "E2", "clients with the right blocks")
    for kind in KINDS:
        for noise in NOISES if isinstance(kind, str) else NOISES[:1]:
            for n in ROWS:
                orders, bases, blocks = [], [], []
                for seed in range(given.seed, given.seed + given.worlds):
                    world = world_of(kind, seed)
                    with threadpool_limits(1):
                        result = jc.recover(clients_of(world, n, noise, seed))
                    truths = [world.truth(k) for k in range(world.n_clients)]
                    found = [result.fragments[truth.client] for truth in truths]
                    orders.append(jc.metrics.global_f1(world.order, result.order))
                    bases.append(jc.metrics.subspace_error(truths, found))
                    right = (
                        set(f.blocks) == set(t.blocks) for f, t in zip(found, truths, strict=True)
                    )
                    blocks.append(sum(right) / len(truths))
                scores = (mean_and_error(x) for x in (orders, bases, blocks))
                row(f"p = {kind}" if isinstance(kind, int) else kind, noise, n, *scores)


if __name__ == "__main__":
    main()
