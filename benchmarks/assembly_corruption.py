"""Clients without error, and ways to spoil their statements, for the benchmark of assembly."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from jigsaw_crl.fragment.fragment import CANNOT_SAY, NO, YES, Fragment, Statements
from jigsaw_crl.truth.simulate import World, world_from_graph

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from assembly.clients import flipped, weighed

__all__ = ["flipped", "large_world", "perfect", "weighed"]


def large_world(labels: int, clients: int, size: int, rng: np.random.Generator) -> World:
    """A sparse world with clients that access `size` labels each."""
    present = np.triu(rng.random((labels, labels)) < 3 / labels, 1)
    sets = [sorted(rng.choice(labels, size=size, replace=False).tolist()) for _ in range(clients)]
    return world_from_graph(present.T, sets, [size] * clients, seed=0)


def perfect(world: World) -> list[Fragment]:
    """What exact moments tell of labels in different districts, without the moments."""
    found = []
    for truth in map(world.truth, range(world.n_clients)):
        labels, blocks = truth.labels, (truth.blocks, truth.block_order, truth.districts)
        says = np.where(truth.order.restrict(labels).matrix, YES, NO).astype(np.int8)
        for district in truth.districts:
            members = [labels.index(x) for x in district]
            says[np.ix_(members, members)] = CANNOT_SAY
        np.fill_diagonal(says, NO)
        stated = Statements(says)
        found.append(Fragment(truth.client, "null-cone", labels, *blocks, statements=stated))
    return found
