"""Which labels would share a district if a client accessed a given set?

In a directed graph, two accessed labels are joined if some label that is not accessed reaches both
through labels that are not accessed. Districts are the connected components.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.assembly.panel import Panel, Rows
from jigsaw_crl.base.arrays import BoolArray, FloatArray, IntArray
from jigsaw_crl.base.order import cover_matrix

__all__ = ["Graphs", "likely_graphs", "trust_in_graphs"]

# Shares of the pairs without a label between, beside the covers, that have an edge in the graphs
# that are tried for an order.
EXTRA_EDGES = (0.0, 0.1, 0.25, 0.5) * 6


@dataclass(frozen=True, eq=False)
class Graphs:
    """Edges of several graphs on p labels: graph, source and target of each."""

    number: int
    p: int
    graph: IntArray
    source: IntArray
    target: IntArray

    @classmethod
    def of(cls, matrices: BoolArray) -> Graphs:
        """From matrices of shape (number, p, p), rows the source."""
        return cls(*matrices.shape[:2], *np.nonzero(matrices))

    def apart(self, sets: IntArray) -> BoolArray:
        """Are two labels of a set in different districts, if a client accesses this set?

        Parameters
        ----------
        sets : array of int, shape (n_sets, size)

        Returns
        -------
        array of bool, shape (number, n_sets, size, size)
        """
        # Imported here for start-up time.
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        accessed = np.zeros((len(sets), self.p), dtype=bool)
        np.put_along_axis(accessed, sets, True, axis=1)
        first = (self.graph * len(sets) + np.arange(len(sets))[:, None]) * self.p
        reaches = np.tile(accessed.ravel(), self.number)
        hidden = ~reaches[first + self.source]
        source, target = (first + self.source)[hidden], (first + self.target)[hidden]
        # Hidden labels that reach nothing join nothing.
        while (more := reaches[target] & ~reaches[source]).any():
            reaches[source[more]] = True
        joins = reaches[target]
        size = self.number * accessed.size
        edges = np.ones(int(joins.sum()), dtype=bool), (source[joins], target[joins])
        _, found = connected_components(coo_array(edges, shape=(size, size)), directed=False)
        found = np.take_along_axis(found.reshape(self.number, *accessed.shape), sets[None], axis=2)
        return np.asarray(found[..., :, None] != found[..., None, :])


def likely_graphs(panel: Panel, orders: BoolArray, rng: np.random.Generator) -> Graphs:
    """One graph per order: its covers, and the further edges that fit the clients' districts best.

    Parameters
    ----------
    panel : Panel
    orders : array of bool, shape (n, p, p)
    rng : numpy.random.Generator
    """

    density, found = np.array(EXTRA_EDGES)[:, None, None], []
    for order in orders:
        extra = rng.random((len(density), *order.shape)) < density
        tries = cover_matrix(order) | (order & extra)
        graphs = Graphs.of(tries)
        differ = [(_apart_at(graphs, r) == r.together).sum(axis=(1, 2)) for r in panel.rows]
        found.append(tries[int(np.argmin(np.sum(differ, axis=0)))])
    return Graphs.of(np.array(found))


def trust_in_graphs(panel: Panel, graphs: Graphs) -> FloatArray:
    """Factor per pair: halved for each client that found it in one district against expectation.

    Such a pair may be confounded by a latent that has no label; without this factor the same client
    would be proposed again and again.
    """
    trust = np.ones((graphs.p, graphs.p))
    for rows in panel.rows:
        unexpected = rows.together * _apart_at(graphs, rows).mean(axis=0)
        trust[np.ix_(rows.members, rows.members)] *= 1.0 - 0.5 * unexpected
    return trust


def _apart_at(graphs: Graphs, rows: Rows) -> BoolArray:
    """Are two labels of a client in different districts there? Shape (number, p_k, p_k)."""
    return graphs.apart(rows.members[None])[:, 0]
