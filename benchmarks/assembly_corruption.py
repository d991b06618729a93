"""Clients without error, and ways to spoil their statements, for the benchmark of assembly."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from jigsaw_crl.truth.simulate import World, world_from_graph

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from assembly.clients import flipped, perfect, weighed

__all__ = ["flipped", "large_world", "perfect", "weighed"]


def large_world(labels: int, clients: int, size: int, rng: np.random.Generator) -> World:
    """A sparse world with clients that access `size` labels each."""
    present = np.triu(rng.random((labels, labels)) < 3 / labels, 1)
    sets = [sorted(rng.choice(labels, size=size, replace=False).tolist()) for _ in range(clients)]
    return world_from_graph(present.T, sets, [size] * clients, seed=0)
