"""Graphs for other programs, read back."""

from __future__ import annotations

import csv
import io
import json
import re

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.base.labels import label_fault, normal_label
from jigsaw_crl.result.exports import export_graph, graphml, order_csv

from ..report.studies import assembled, chain_fragment, hostile_result, random_result


@pytest.fixture(scope="module", params=["plain", "hostile"])
def order(request):
    made = random_result(12, 5, 0.6) if request.param == "plain" else hostile_result()
    return made.order


def read_dot(text: str) -> nx.DiGraph:
    """The graph of a DOT file, by the rules of its grammar for strings."""
    quoted = r'"((?:[^"\\]|\\.)*)"'

    def name(raw: str) -> str:
        return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], raw)

    graph = nx.DiGraph()
    graph.add_nodes_from(name(raw) for raw in re.findall(rf"^  {quoted};$", text, re.M))
    arrows = re.findall(rf"^  {quoted} -> {quoted} \[[^\n]*\];$", text, re.M)
    graph.add_edges_from((name(a), name(d)) for a, d in arrows)
    return graph


READERS = {
    ".graphml": nx.parse_graphml,
    ".json": lambda text: nx.node_link_graph(json.loads(text), edges="edges"),
    ".csv": lambda text: nx.from_pandas_adjacency(
        pd.read_csv(io.StringIO(text), index_col=0), create_using=nx.DiGraph
    ),
    ".dot": read_dot,
}


@pytest.mark.parametrize("closure", [False, True])
@pytest.mark.parametrize("ending", READERS)
def test_every_format_is_read_back_with_its_labels_and_edges(order, ending, closure, tmp_path):
    path = export_graph(order, tmp_path / f"order{ending}", closure=closure)
    graph = READERS[ending](path.read_text(encoding="utf-8"))
    assert graph.is_directed()
    assert tuple(graph) == order.labels
    assert set(graph.edges) == (order.pairs() if closure else set(order.hasse().edges))
    if ending in (".graphml", ".json"):
        for a, d, about in graph.edges(data=True):
            assert about["probability"] == order.probability(a, d)


def test_the_table_of_pairs_has_probabilities_with_four_decimals(order):
    table = pd.read_csv(io.StringIO(order_csv(order)), dtype=str, keep_default_na=False)
    assert len(table) == len(order) * (len(order) - 1)
    assert table.probability.str.fullmatch(r"[01]\.\d{4}").all()
    frame = order.to_frame()
    assert (table.verdict == frame.verdict).all()
    np.testing.assert_allclose(table.probability.astype(float), frame.probability, atol=5e-5)


@given(st.text(min_size=1, max_size=5).map(normal_label).filter(lambda x: not label_fault(x)))
def test_any_label_that_is_accepted_can_be_read_back_from_graphml(label):
    order = nx.DiGraph([(label, "another label")])
    assert set(nx.parse_graphml(graphml(order)).nodes) == {label, "another label"}


FORMULAS = ("=1+1", "+cmd", "-x", "@SUM(A1)", "-2.5")


def test_no_label_is_a_formula_in_a_spreadsheet(tmp_path):
    result = assembled(chain_fragment("one", *FORMULAS))
    root = result.save(tmp_path / "out")
    export_graph(result.order, tmp_path / "graph.csv")
    for path in (root / "order.csv", tmp_path / "graph.csv"):
        with path.open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [c for c in cells if c[:1] in ("=", "+", "@") or c == "-x"]
        assert {"'=1+1", "'+cmd", "'-x", "'@SUM(A1)", "-2.5"} <= set(cells)


@pytest.mark.parametrize("ending", ["graphml", "dot", "json", "csv"])
def test_a_graph_replaces_a_graph_and_no_other_file(order, ending, tmp_path):
    path = tmp_path / f"order.{ending}"
    path.write_text("regime,x\ncontrol,1\n")
    with pytest.raises(jc.InputError, match="exists and is not such a graph"):
        export_graph(order, path)
    assert path.read_text() == "regime,x\ncontrol,1\n"
    export_graph(order, path, force=True)
    before = path.read_bytes()
    export_graph(order, path)
    assert path.read_bytes() == before


def test_endings_are_known_in_capitals_and_unknown_ones_and_closed_folders_refused(order, tmp_path):
    assert nx.read_graphml(export_graph(order, tmp_path / "order.GraphML")).nodes
    with pytest.raises(jc.InputError, match="no graph format"):
        export_graph(order, tmp_path / "order.png")
    with pytest.raises(jc.InputError, match="cannot be written"):
        export_graph(order, tmp_path / "missing" / "order.dot")


@pytest.fixture(scope="module")
def hard():
    world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    return jc.recover(world.clients(), interventions="hard")


def test_direct_effects_are_exported_with_weights_and_verdicts(hard, tmp_path):
    true = hard.graph
    assert true.edges
    graphml = nx.read_graphml(jc.export_graph(hard.order, tmp_path / "a.graphml", direct=True))
    document = json.loads(
        jc.export_graph(hard.order, tmp_path / "a.json", direct=True).read_text(encoding="utf-8")
    )
    for graph in (graphml, nx.node_link_graph(document, edges="edges")):
        assert set(graph) == set(true)
        for a, d, about in true.edges(data=True):
            assert graph.edges[a, d]["verdict"] == about["verdict"]
            assert graph.edges[a, d]["weight"] == pytest.approx(about["weight"])
    table = pd.read_csv(jc.export_graph(hard.order, tmp_path / "a.csv", direct=True), index_col=0)
    for a, d in true.edges:
        if true.edges[a, d]["verdict"] == "direct":
            assert table.loc[a, d] == pytest.approx(true.edges[a, d]["weight"], rel=1e-4)
    assert int((table.to_numpy() != 0).sum()) <= len(true.edges)
    dot = jc.export_graph(hard.order, tmp_path / "a.dot", direct=True).read_text(encoding="utf-8")
    assert dot.count(" -> ") == len(true.edges)
    assert "style=solid" in dot


def test_direct_effects_need_hard_interventions(hard, tmp_path):
    soft = jc.recover(jc.simulate.setting("A", 0).clients()).order
    with pytest.raises(jc.InputError, match="no intervention is said to be hard"):
        jc.export_graph(soft, tmp_path / "a.dot", direct=True)
    with pytest.raises(jc.InputError, match="two graphs"):
        jc.export_graph(hard.order, tmp_path / "a.dot", direct=True, closure=True)


def test_a_result_folder_has_effects_and_graph_only_with_hard_interventions(hard, tmp_path):
    folder = hard.save(tmp_path / "result")
    effects = pd.read_csv(folder / "effects.csv")
    assert list(effects.columns) == list(hard.effects.columns)
    assert effects.total.to_numpy() == pytest.approx(hard.effects.total.to_numpy(), rel=1e-4)
    assert set(nx.read_graphml(folder / "graph.graphml").edges) == set(hard.graph.edges)
    jc.recover(jc.simulate.setting("A", 0).clients()).save(folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"result.json", "order.csv", "hasse.graphml", "report.html"}
