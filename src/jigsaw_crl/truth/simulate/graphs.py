"""Graphs: the paper's settings, random families, and the mixed graph that a client sees.

A pattern is an array of bool, shape (p, p): entry (i, j) says that j is a direct cause of i. Random
patterns are upper triangular, so causes have the larger numbers. What a client sees follows from
the pattern alone and not from the weights, because a product of small weights is small but not
zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, sqrt

import numpy as np

from jigsaw_crl.base.arrays import ArrayLike, BoolArray, FloatArray
from jigsaw_crl.base.order import boolean_product, strongly_connected, transitive_closure


@dataclass(frozen=True)
class Setting:
    """One of the paper's three simulated systems.

    `weights` lists the nonzero entries (i, j, A[i, j]), counted from 1 as the paper does; the node
    sets are the O_k and the feature counts the n_k.
    """

    n_latent: int
    weights: tuple[tuple[int, int, float], ...]
    node_sets: tuple[tuple[int, ...], ...]
    feature_counts: tuple[int, ...]

    def matrix(self) -> FloatArray:
        """A, shape (n_latent, n_latent)."""
        A = np.zeros((self.n_latent, self.n_latent))
        for i, j, weight in self.weights:
            A[i - 1, j - 1] = weight
        return A


# fmt: off
SETTINGS = {
    "A": Setting(
        n_latent=5,
        weights=(
            (1, 2, 1.0), (1, 3, 0.7), (2, 4, -1.0), (3, 4, 1.3), (3, 5, -0.9), (4, 5, 0.6),
        ),
        node_sets=((1, 3, 4, 5), (1, 2, 4, 5), (1, 2, 3, 4), (1, 2, 3), (2, 3, 5)),
        feature_counts=(8, 6, 7, 6, 5),
    ),
    "B": Setting(
        n_latent=8,
        weights=(
            (1, 2, -0.8), (1, 3, 0.1), (2, 3, 0.6), (2, 4, 1.2),
            (3, 8, 1.0), (4, 7, -0.9), (5, 6, 1.1), (6, 7, 0.7),
        ),
        node_sets=((2, 3, 4, 7, 8), (1, 2, 3, 5, 6, 7), (1, 2, 4, 5, 6, 8), (1, 3, 4, 5, 7, 8)),
        feature_counts=(9, 10, 8, 9),
    ),
    "C": Setting(
        n_latent=10,
        weights=(
            (1, 3, -0.9), (2, 3, 1.0), (2, 6, 0.7), (3, 4, 1.2), (3, 10, -0.8),
            (4, 10, -1.0), (5, 10, 1.3), (6, 7, 1.1), (6, 8, 0.9), (7, 8, -0.5),
        ),
        node_sets=(
            (1, 2, 3, 4, 5, 6, 7, 9), (3, 5, 6, 7, 8, 10), (1, 2, 4, 7, 8, 9, 10),
            (1, 3, 4, 5, 6, 7, 10), (1, 2, 3, 6, 8, 9),
        ),
        feature_counts=(12, 10, 9, 11, 8),
    ),
}
# fmt: on


# -- random families ---------------------------------------------------------------------------


def _erdos_renyi(p: int, rng: np.random.Generator, *, degree: float) -> BoolArray:
    """Each admissible edge with probability min(1, degree / p)."""
    return np.triu(rng.random((p, p)) < min(1.0, degree / p), 1)


def _chain(p: int, _: np.random.Generator) -> BoolArray:
    """One path through all nodes."""
    return np.eye(p, k=1, dtype=bool)


def _tree(p: int, rng: np.random.Generator) -> BoolArray:
    """Every node but the root has one parent, chosen among all nodes before it."""
    pattern = np.zeros((p, p), dtype=bool)
    for i in range(p - 1):
        pattern[i, rng.integers(i + 1, p)] = True
    return pattern


def _mid_hub(p: int, _: np.random.Generator) -> BoolArray:
    """Half of the nodes cause the hub, and the hub causes the other half."""
    pattern = np.zeros((p, p), dtype=bool)
    hub = p // 2
    pattern[hub, hub + 1 :] = True
    pattern[:hub, hub] = True
    return pattern


def _root_hub(p: int, rng: np.random.Generator) -> BoolArray:
    """A root that causes every other node; the others form a sparse graph."""
    pattern = FAMILIES["sparse"](p, rng)
    pattern[:-1, -1] = True
    return pattern


def _layered(p: int, rng: np.random.Generator) -> BoolArray:
    """Layers of about √p nodes; every node has one or two parents in the layer before its own."""
    pattern = np.zeros((p, p), dtype=bool)
    width = ceil(sqrt(p))
    for i in range(p - width):
        # Counted from the last node, which is in the first layer.
        layer = (p - 1 - i) // width
        above = p - 1 - np.arange((layer - 1) * width, layer * width)
        pattern[i, rng.choice(above, size=rng.integers(1, 3), replace=False)] = True
    return pattern


def _stars(p: int, _: np.random.Generator, *, roots: int) -> BoolArray:
    """Every other node has all of the roots as its parents."""
    pattern = np.zeros((p, p), dtype=bool)
    pattern[:-roots, -roots:] = True
    return pattern


def _bipartite(p: int, rng: np.random.Generator) -> BoolArray:
    """Half of the nodes are causes; each of the others has two or three of them as parents."""
    pattern = np.zeros((p, p), dtype=bool)
    causes = np.arange(p - p // 2, p)
    for i in range(p - p // 2):
        n_parents = min(len(causes), int(rng.integers(2, 4)))
        pattern[i, rng.choice(causes, size=n_parents, replace=False)] = True
    return pattern


def _scale_free(p: int, rng: np.random.Generator) -> BoolArray:
    """Every node has up to two parents, chosen in proportion to how many edges they have."""
    pattern = np.zeros((p, p), dtype=bool)
    for i in range(p - 2, -1, -1):
        degree = 1.0 + (pattern.sum(axis=0) + pattern.sum(axis=1))[i + 1 :]
        parents = rng.choice(
            p - 1 - i, size=min(2, p - 1 - i), replace=False, p=degree / degree.sum()
        )
        pattern[i, i + 1 + parents] = True
    return pattern


FAMILIES: dict[str, Callable[[int, np.random.Generator], BoolArray]] = {
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


# -- the graph of a client -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MixedGraph:
    """The graph on a client's nodes after marginalising out the others.

    `directed[i, j]` is an edge from j to i, or a directed path through hidden nodes only. Where
    `bidirected`, some hidden node reaches both ends through hidden nodes only.
    """

    directed: BoolArray
    bidirected: BoolArray

    def ancestors(self) -> BoolArray:
        """`R[a, d]`: a is an ancestor of d."""
        return transitive_closure(self.directed.T)


def induced_graph(pattern: ArrayLike, observed: ArrayLike) -> MixedGraph:
    """The mixed graph of Proposition 1 of a client with the nodes O_k, in their order."""
    edges = np.asarray(pattern, dtype=bool)
    O = np.asarray(observed, dtype=np.intp)
    M = np.setdiff1d(np.arange(len(edges)), O)
    through = transitive_closure(edges[np.ix_(M, M)]) | np.eye(len(M), dtype=bool)
    # reach[i, m]: hidden m reaches i with only hidden nodes on the way.
    reach = boolean_product(edges[np.ix_(O, M)], through)
    directed = edges[np.ix_(O, O)] | boolean_product(reach, edges[np.ix_(M, O)])
    bidirected = boolean_product(reach, reach.T)
    np.fill_diagonal(bidirected, False)
    return MixedGraph(directed, bidirected)


def blocks_of(graph: MixedGraph) -> tuple[list[list[int]], BoolArray]:
    """Blocks (classes of mutual reachability) and the closed order on them.

    Blocks are ordered by their smallest member; `order[a, d]`: block a is an ancestor of block d.
    """
    ancestors = graph.ancestors()
    blocks = strongly_connected(ancestors | graph.bidirected)
    member = np.zeros((len(blocks), len(ancestors)), dtype=bool)
    for b, positions in enumerate(blocks):
        member[b, positions] = True
    between = boolean_product(boolean_product(member, ancestors), member.T)
    np.fill_diagonal(between, False)
    return blocks, transitive_closure(between)
