"""What one client accesses, and the truth about it and about effects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jigsaw_crl.base.arrays import FloatArray, IntArray
from jigsaw_crl.base.frozen import ReadOnlyArrays
from jigsaw_crl.base.order import PartialOrder, strongly_connected
from jigsaw_crl.baseline.literal import block_rq
from jigsaw_crl.truth.simulate.graphs import blocks_of, induced_graph
from jigsaw_crl.truth.simulate.sem import SEM, Marginal


@dataclass(frozen=True, eq=False)
class View:
    """What one client accesses: its name, its nodes (in its own order) and its mixing G_k."""

    name: str
    nodes: IntArray
    mixing: FloatArray


@dataclass(frozen=True, eq=False)
class Truth:
    """The truth about one client; every array follows the order of `labels`.

    Parameters
    ----------
    client : str
    labels : tuple of str
        Labels of the client's nodes, in the client's own order.
    order : PartialOrder over labels
        Ancestry between the client's nodes: the restriction of the global order.
    blocks : tuple of frozenset of str
    block_order : PartialOrder over blocks
        The transitive closure of the block-level relation.
    districts : tuple of frozenset of str
        Connected components of the bidirected edges.
    spouses : frozenset of frozenset of str
        The bidirected edges.
    parents : frozenset of (str, str)
        Directed edges (parent, child) of the induced mixed graph.
    mixing : array, shape (n_features, p_k)
        G_k.
    Q : array, shape (p_k, n_features)
        The latent basis: `G_k⁺ = R Q` by Algorithm 4.
    marginal : Marginal
        A_k and Σ_k.
    """

    client: str
    labels: tuple[str, ...]
    order: PartialOrder[str]
    blocks: tuple[frozenset[str], ...]
    block_order: PartialOrder[frozenset[str]]
    districts: tuple[frozenset[str], ...]
    spouses: frozenset[frozenset[str]]
    parents: frozenset[tuple[str, str]]
    mixing: FloatArray
    Q: FloatArray
    marginal: Marginal

    def block_of(self, label: str) -> frozenset[str]:
        """The block that holds `label`."""
        return next(b for b in self.blocks if label in b)


def true_view(sem: SEM, names: tuple[str, ...], view: View) -> Truth:
    """The truth about a client; `names` are the labels of the nodes."""
    labels = tuple(names[node] for node in view.nodes)
    graph = induced_graph(sem.A != 0, view.nodes)
    blocks, order = blocks_of(graph)

    def named(groups: list[list[int]]) -> tuple[frozenset[str], ...]:
        return tuple(frozenset(labels[i] for i in group) for group in groups)

    # Ancestors first: in a closed order an ancestor has strictly fewer ancestors.
    first = np.argsort(order.sum(axis=0), kind="stable").tolist()
    above = [[i for a in np.flatnonzero(order[:, b]).tolist() for i in blocks[a]] for b in first]
    H = np.asarray(np.linalg.pinv(view.mixing), dtype=np.float64)
    _, Q = block_rq(H, [blocks[b] for b in first], above)
    edges = [(labels[j], labels[i]) for i, j in np.argwhere(graph.directed)]
    spouses = [frozenset((labels[i], labels[j])) for i, j in np.argwhere(graph.bidirected)]
    return Truth(
        client=view.name,
        labels=labels,
        order=PartialOrder.from_matrix(labels, graph.ancestors()),
        blocks=named(blocks),
        block_order=PartialOrder.from_matrix(named(blocks), order),
        districts=named(strongly_connected(graph.bidirected)),
        spouses=frozenset(spouses),
        parents=frozenset(edges),
        mixing=view.mixing.copy(),
        Q=Q,
        marginal=sem.marginal(view.nodes),
    )


@dataclass(frozen=True, eq=False)
class TrueEffects(ReadOnlyArrays):
    """True effects in standard deviations of the control, rows the cause, columns the effect.

    Parameters
    ----------
    labels : tuple of str
    total : array, shape (p, p)
        Total effects, 1 on the diagonal; exactly 0 where the row is no ancestor of the column.
    direct : array, shape (p, p)
        Direct effects of the system of these labels, all other latents marginalised out; exactly 0
        where there is no edge.
    """

    labels: tuple[str, ...]
    total: FloatArray
    direct: FloatArray

    def __post_init__(self) -> None:
        self._copy_read_only("total", "direct")
