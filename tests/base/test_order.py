"""Strict partial orders, against networkx."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.order import (
    CycleError,
    PartialOrder,
    boolean_product,
    greedy_order,
    strongly_connected,
    transitive_closure,
)


@st.composite
def relations(draw, acyclic=False):
    size = draw(st.integers(0, 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    relation = rng.random((size, size)) < draw(st.sampled_from([0.05, 0.15, 0.4]))
    if acyclic:
        mix = rng.permutation(size)
        relation = np.triu(relation, 1)[np.ix_(mix, mix)]
    return relation


def graph_of(relation):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(relation)))
    graph.add_edges_from(zip(*np.nonzero(relation), strict=True))
    return graph


def order_of(relation):
    return PartialOrder.from_matrix([f"e{i}" for i in range(len(relation))], relation)


@given(relations())
def test_closure_is_reachability_by_a_path_of_at_least_one_step(relation):
    closure = nx.transitive_closure(graph_of(relation), reflexive=False)
    got = transitive_closure(relation)
    assert set(zip(*np.nonzero(got), strict=True)) == set(closure.edges)
    assert np.array_equal(transitive_closure(got), got)


@given(relations())
def test_components_are_those_of_networkx_in_sorted_order(relation):
    components = strongly_connected(relation)
    expected = {frozenset(c) for c in nx.strongly_connected_components(graph_of(relation))}
    assert {frozenset(c) for c in components} == expected
    assert components == sorted(sorted(c) for c in components)


@given(relations(acyclic=True))
def test_covers_are_the_transitive_reduction(relation):
    order = order_of(relation)
    reduced = nx.transitive_reduction(graph_of(relation))
    assert order.covers() == {(f"e{a}", f"e{d}") for a, d in reduced.edges}
    assert PartialOrder.from_pairs(order.elements, order.covers()) == order


@given(relations(acyclic=True))
def test_ancestors_and_descendants_agree_with_networkx(relation):
    order, graph = order_of(relation), graph_of(relation)
    for node in graph:
        assert order.ancestors(f"e{node}") == {f"e{a}" for a in nx.ancestors(graph, node)}
        assert order.descendants(f"e{node}") == {f"e{d}" for d in nx.descendants(graph, node)}
    assert len(order.pairs()) == sum(len(nx.ancestors(graph, node)) for node in graph)


@given(relations(acyclic=True), st.integers(0, 2**32 - 1))
def test_equality_does_not_depend_on_the_order_of_the_elements(relation, seed):
    order = order_of(relation)
    mix = np.random.default_rng(seed).permutation(len(relation))
    again = PartialOrder.from_matrix([f"e{i}" for i in mix], relation[np.ix_(mix, mix)])
    assert again == order
    assert hash(again) == hash(order)
    assert again.covers() == order.covers()


@given(relations())
def test_exactly_the_cyclic_relations_are_refused(relation):
    cyclic = not nx.is_directed_acyclic_graph(graph_of(relation))
    if cyclic:
        with pytest.raises(CycleError, match="cycle"):
            order_of(relation)
    else:
        order = order_of(relation)
        assert not np.diagonal(order.matrix).any()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: PartialOrder.from_matrix("ab", np.zeros((3, 3))), "shape"),
        (lambda: PartialOrder.from_matrix("aa", np.zeros((2, 2))), "twice"),
        (lambda: PartialOrder.from_pairs("ab", [("a", "c")]), "'c' is not an element"),
        (lambda: PartialOrder.from_pairs("ab", [("a", "a")]), "cycle"),
        (lambda: PartialOrder.from_pairs("ab", []).ancestors("z"), "'z' is not an element"),
        (lambda: PartialOrder.from_pairs("ab", []).restrict("az"), "'z' is not an element"),
    ],
)
def test_invalid_input_is_refused(call, says):
    with pytest.raises(InputError, match=says):
        call()


@given(seed=st.integers(0, 10_000), p=st.integers(2, 12))
def test_the_greedy_order_adds_pairs_by_weight_while_their_closure_gains(seed, p):
    weight = np.random.default_rng(seed).normal(size=(p, p)) * 3
    order, off = np.zeros((p, p), dtype=bool), ~np.eye(p, dtype=bool)
    for a, d in sorted(np.argwhere((weight > 0) & off).tolist(), key=lambda ad: -weight[*ad]):
        tried = order.copy()
        tried[a, d] = True
        tried = transitive_closure(tried)
        if not np.diagonal(tried).any() and weight[tried & ~order].sum() > 0:
            order = tried
    np.testing.assert_array_equal(greedy_order(weight), order)


def test_products_of_many_elements_are_those_of_few(monkeypatch):
    """Sparse relations take another way, on either side."""
    rng = np.random.default_rng(0)
    sparse, full = rng.random((320, 320)) < 0.01, rng.random((320, 320)) < 0.9
    sides = ((sparse, full), (full, sparse), (sparse, sparse))
    found = [boolean_product(*pair) for pair in sides]
    monkeypatch.setattr("jigsaw_crl.base.order.LARGE", 1_000)
    for one, pair in zip(found, sides, strict=True):
        assert np.array_equal(one, boolean_product(*pair))
