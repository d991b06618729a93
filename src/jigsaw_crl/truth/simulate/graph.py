"""The mixed graph that a client sees, with its districts, blocks and orders.

Everything here follows from the zero pattern of A and not from its values, because a product of
small weights is small but not zero. `pattern[i, j]` is true when j is a direct cause of i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import ArrayLike, BoolArray
from jigsaw_crl.base.order import boolean_product, strongly_connected, transitive_closure

__all__ = ["MixedGraph", "blocks_of", "induced_graph"]


@dataclass(frozen=True, eq=False)
class MixedGraph:
    """The graph on a client's nodes after marginalising out the others.

    Parameters
    ----------
    directed : array of bool, shape (p_k, p_k)
        `directed[i, j]`: an edge from j to i, or a directed path through hidden nodes only.
    bidirected : array of bool, shape (p_k, p_k)
        Symmetric: some hidden node reaches both ends through hidden nodes only.
    """

    directed: BoolArray
    bidirected: BoolArray

    def ancestors(self) -> BoolArray:
        """`R[a, d]`: a is an ancestor of d."""
        return transitive_closure(self.directed.T)

    def districts(self) -> list[list[int]]:
        """Connected components of the bidirected edges, singletons included."""
        return strongly_connected(self.bidirected)


def induced_graph(pattern: ArrayLike, observed: ArrayLike) -> MixedGraph:
    """The mixed graph of Proposition 1, in the order of `observed`.

    Parameters
    ----------
    pattern : array of bool, shape (p, p)
        `A != 0`.
    observed : array of int, shape (p_k,)
        The client's nodes O_k.
    """
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
    """Blocks (classes of mutual reachability) and the closure of the order on them.

    Returns
    -------
    blocks : list of list of int
        Positions, ordered by their smallest member.
    order : array of bool, shape (n_blocks, n_blocks)
        `order[a, d]`: block a is an ancestor of block d, transitively closed.
    """
    ancestors = graph.ancestors()
    blocks = strongly_connected(ancestors | graph.bidirected)
    member = np.zeros((len(blocks), len(ancestors)), dtype=bool)
    for b, positions in enumerate(blocks):
        member[b, positions] = True
    between = boolean_product(boolean_product(member, ancestors), member.T)
    np.fill_diagonal(between, False)
    return blocks, transitive_closure(between)
