"""Mixed graphs, districts and blocks, against networkx and against numbers."""

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.order import strongly_connected
from jigsaw_crl.truth.simulate.graphs import blocks_of, induced_graph
from jigsaw_crl.truth.simulate.sem import SEM


@st.composite
def graphs_with_views(draw):
    """A random DAG's pattern (under a random node order) and a set of observed nodes."""
    p = draw(st.integers(2, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.15, 0.4, 0.8]))
    pattern = np.triu(rng.random((p, p)) < density, 1)
    mix = rng.permutation(p)
    observed = rng.permutation(p)[: draw(st.integers(1, p))]
    return pattern[np.ix_(mix, mix)], observed, rng


def as_networkx(pattern):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(pattern)))
    graph.add_edges_from((j, i) for i, j in zip(*np.nonzero(pattern), strict=True))
    return graph


@given(graphs_with_views())
def test_edges_of_the_induced_graph_are_paths_through_hidden_nodes(case):
    pattern, observed, _ = case
    whole, found = as_networkx(pattern), induced_graph(pattern, observed)
    hidden = set(range(len(pattern))) - set(observed.tolist())
    for i, child in enumerate(observed):
        for j, parent in enumerate(observed):
            if i == j:
                continue
            near = whole.subgraph(hidden | {child, parent})
            assert found.directed[i, j] == nx.has_path(near, parent, child)
            common = any(
                nx.has_path(whole.subgraph(hidden | {child}), m, child)
                and nx.has_path(whole.subgraph(hidden | {parent}), m, parent)
                for m in hidden
            )
            assert found.bidirected[i, j] == common


@given(graphs_with_views())
def test_the_structural_zeros_are_the_zeros_of_a_generic_world(case):
    pattern, observed, rng = case
    weights = np.where(pattern, rng.choice([-1, 1], pattern.shape) * rng.uniform(0.5, 1.5), 0.0)
    weights *= rng.uniform(0.7, 1.3, pattern.shape)
    marginal = SEM(weights, np.ones(len(pattern)), np.zeros(len(pattern))).marginal(observed)
    graph = induced_graph(pattern, observed)
    assert np.array_equal(np.abs(marginal.A) > 1e-12, graph.directed)
    off = marginal.Sigma - np.diag(np.diag(marginal.Sigma))
    assert np.array_equal(np.abs(off) > 1e-12, graph.bidirected)


@given(graphs_with_views())
def test_blocks_and_their_order_agree_with_networkx(case):
    pattern, observed, _ = case
    graph = induced_graph(pattern, observed)
    reach = nx.DiGraph()
    reach.add_nodes_from(range(len(observed)))
    reach.add_edges_from(zip(*np.nonzero(graph.ancestors() | graph.bidirected), strict=True))
    blocks, order = blocks_of(graph)
    condensed = nx.condensation(reach)
    members = {frozenset(condensed.nodes[c]["members"]): c for c in condensed}
    assert {frozenset(b) for b in blocks} == set(members)
    for a, above in enumerate(blocks):
        for d, below in enumerate(blocks):
            ids = members[frozenset(above)], members[frozenset(below)]
            assert order[a, d] == (a != d and nx.has_path(condensed, *ids))


def test_the_block_order_is_closed_although_the_definition_is_not_transitive():
    # v1 -> u, w -> v2, and a hidden h confounds v1 and v2: w is no ancestor of u.
    u, v1, v2, w, h = range(5)
    pattern = np.zeros((5, 5), dtype=bool)
    for cause, effect in ((v1, u), (w, v2), (h, v1), (h, v2)):
        pattern[effect, cause] = True
    graph = induced_graph(pattern, [u, v1, v2, w])
    blocks, order = blocks_of(graph)
    assert blocks == [[u], [v1, v2], [w]]
    assert order.tolist() == [[False, False, False], [True, False, False], [True, True, False]]
    assert not graph.ancestors()[w, u]
    assert strongly_connected(graph.bidirected) == [[u], [v1, v2], [w]]
