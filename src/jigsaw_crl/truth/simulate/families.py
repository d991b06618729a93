"""Families of random graphs, by name.

A pattern is an upper triangular array of bool, shape (p, p): entry (i, j) is an edge from j to i,
so causes have the larger numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, sqrt

import numpy as np

from jigsaw_crl.base.arrays import BoolArray
from jigsaw_crl.base.errors import choose

__all__ = ["FAMILIES", "random_pattern"]

Pattern = BoolArray


def random_pattern(family: str, n_latent: int, rng: np.random.Generator) -> Pattern:
    """A random graph of the named family (a key of `FAMILIES`)."""
    return choose(family, FAMILIES, "graph family")(n_latent, rng)


def _erdos_renyi(p: int, rng: np.random.Generator, *, degree: float) -> Pattern:
    """Each admissible edge with probability min(1, degree / p)."""
    return np.triu(rng.random((p, p)) < min(1.0, degree / p), 1)


def _chain(p: int, _: np.random.Generator) -> Pattern:
    """One path through all nodes."""
    return np.eye(p, k=1, dtype=bool)


def _tree(p: int, rng: np.random.Generator) -> Pattern:
    """Every node but the root has one parent, chosen among all nodes before it."""
    pattern = np.zeros((p, p), dtype=bool)
    for i in range(p - 1):
        pattern[i, rng.integers(i + 1, p)] = True
    return pattern


def _mid_hub(p: int, _: np.random.Generator) -> Pattern:
    """Half of the nodes cause the hub, and the hub causes the other half."""
    pattern = np.zeros((p, p), dtype=bool)
    hub = p // 2
    pattern[hub, hub + 1 :] = True
    pattern[:hub, hub] = True
    return pattern


def _root_hub(p: int, rng: np.random.Generator) -> Pattern:
    """A root that causes every other node; the others form a sparse graph."""
    pattern = FAMILIES["sparse"](p, rng)
    pattern[:-1, -1] = True
    return pattern


def _layered(p: int, rng: np.random.Generator) -> Pattern:
    """Layers of about √p nodes; every node has one or two parents in the layer before its own."""
    pattern = np.zeros((p, p), dtype=bool)
    width = ceil(sqrt(p))
    for i in range(p - width):
        # Counted from the last node, which is in the first layer.
        layer = (p - 1 - i) // width
        above = p - 1 - np.arange((layer - 1) * width, layer * width)
        pattern[i, rng.choice(above, size=rng.integers(1, 3), replace=False)] = True
    return pattern


def _stars(p: int, _: np.random.Generator, *, roots: int) -> Pattern:
    """Every other node has all of the roots as its parents."""
    pattern = np.zeros((p, p), dtype=bool)
    pattern[:-roots, -roots:] = True
    return pattern


def _bipartite(p: int, rng: np.random.Generator) -> Pattern:
    """Half of the nodes are causes; each of the others has two or three of them as parents."""
    pattern = np.zeros((p, p), dtype=bool)
    causes = np.arange(p - p // 2, p)
    for i in range(p - p // 2):
        n_parents = min(len(causes), int(rng.integers(2, 4)))
        pattern[i, rng.choice(causes, size=n_parents, replace=False)] = True
    return pattern


def _scale_free(p: int, rng: np.random.Generator) -> Pattern:
    """Every node has up to two parents, chosen in proportion to how many edges they have."""
    pattern = np.zeros((p, p), dtype=bool)
    for i in range(p - 2, -1, -1):
        degree = 1.0 + (pattern.sum(axis=0) + pattern.sum(axis=1))[i + 1 :]
        parents = rng.choice(
            p - 1 - i, size=min(2, p - 1 - i), replace=False, p=degree / degree.sum()
        )
        pattern[i, i + 1 + parents] = True
    return pattern


FAMILIES: dict[str, Callable[[int, np.random.Generator], Pattern]] = {
    # 1.5 edges per node: the paper's.
    "er": partial(_erdos_renyi, degree=3.0),
    "sparse": partial(_erdos_renyi, degree=1.5),
    "dense": partial(_erdos_renyi, degree=6.0),
    "chain": _chain,
    "tree": _tree,
    "mid-hub": _mid_hub,
    "root-hub": _root_hub,
    "layered": _layered,
    "star": partial(_stars, roots=1),
    "two-stars": partial(_stars, roots=2),
    "bipartite": _bipartite,
    "scale-free": _scale_free,
}
