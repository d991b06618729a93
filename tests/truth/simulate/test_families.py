"""Graphs of a family have the shape that its name says."""

import networkx as nx
import numpy as np
import pytest

from jigsaw_crl.truth.simulate import FAMILIES


def graph(family, p=20, seed=0):
    """The graph as networkx has it, edges from cause to effect."""
    pattern = FAMILIES[family](p, np.random.default_rng(seed))
    return nx.from_numpy_array(pattern.T, create_using=nx.DiGraph)


@pytest.mark.parametrize("p", [2, 3, 20])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_acyclic_and_seeded(family, p):
    one, again = graph(family, p, seed=3), graph(family, p, seed=3)
    assert nx.is_directed_acyclic_graph(one)
    assert set(one.edges) == set(again.edges)
    assert len(one) == p


def test_sparse_and_dense_have_half_and_twice_the_edges_of_the_paper():
    edges = {
        family: np.mean([graph(family, 40, seed).size() for seed in range(40)])
        for family in ("sparse", "er", "dense")
    }
    # The admissible p(p − 1)/2 edges, each with probability 3/p.
    assert edges["er"] == pytest.approx(58.5, rel=0.1)
    assert edges["sparse"] == pytest.approx(edges["er"] / 2, rel=0.15)
    assert edges["dense"] == pytest.approx(edges["er"] * 2, rel=0.15)


def test_a_chain_is_one_path():
    assert nx.dag_longest_path_length(graph("chain")) == 19
    assert graph("chain").size() == 19


def test_a_tree_has_one_root_and_one_parent_per_node():
    for seed in range(5):
        assert nx.is_arborescence(graph("tree", seed=seed))


def test_a_mid_hub_has_half_of_the_nodes_on_either_side():
    one = graph("mid-hub")
    (hub,) = [node for node in one if one.degree(node) == 19]
    assert (one.in_degree(hub), one.out_degree(hub), one.size()) == (9, 10, 19)


def test_a_root_hub_causes_every_other_node_and_the_rest_is_sparse():
    one = graph("root-hub")
    (hub,) = [node for node in one if one.out_degree(node) == 19]
    assert one.in_degree(hub) == 0
    assert 0 < one.size() - 19 < 40


def test_layers_have_edges_from_the_layer_before_only():
    one = graph("layered", 23)
    depth = {}
    for node in nx.topological_sort(one):
        above = {depth[parent] for parent in one.predecessors(node)}
        assert len(above) <= 1
        depth[node] = above.pop() + 1 if above else 0
    assert sorted(np.bincount(list(depth.values())).tolist()) == [3, 5, 5, 5, 5]
    assert {one.in_degree(node) for node in one if depth[node]} == {1, 2}
