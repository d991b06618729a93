"""Tables and graphs of a result folder, read back by other programs."""

import csv
import io

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.base.labels import label_fault, normal_label
from jigsaw_crl.result.folder import graphml, order_csv

from ..report.studies import assembled, chain_fragment, hostile_result, random_result


@pytest.mark.parametrize("hostile", [False, True])
def test_order_and_hasse_diagram_are_read_back(hostile):
    order = (hostile_result() if hostile else random_result(12, 5, 0.6)).order
    graph = nx.parse_graphml(graphml(order.hasse()))
    assert tuple(graph) == order.labels
    assert set(graph.edges) == set(order.hasse().edges)
    for a, d, about in graph.edges(data=True):
        assert about["probability"] == order.probability(a, d)
    table = pd.read_csv(io.StringIO(order_csv(order)), dtype=str, keep_default_na=False)
    assert table.probability.str.fullmatch(r"[01]\.\d{4}").all()
    frame = order.to_frame()
    assert (table.verdict == frame.verdict).all()
    np.testing.assert_allclose(table.probability.astype(float), frame.probability, atol=5e-5)


@given(st.text(min_size=1, max_size=5).map(normal_label).filter(lambda x: not label_fault(x)))
def test_any_label_that_is_accepted_can_be_read_back_from_graphml(label):
    order = nx.DiGraph([(label, "another label")])
    assert set(nx.parse_graphml(graphml(order)).nodes) == {label, "another label"}


def test_no_label_is_a_formula_in_a_spreadsheet(tmp_path):
    result = assembled(chain_fragment("one", "=1+1", "+cmd", "-x", "@SUM(A1)", "-2.5"))
    with (result.save(tmp_path / "out") / "order.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [c for c in cells if c[:1] in ("=", "+", "@") or c == "-x"]
    assert {"'=1+1", "'+cmd", "'-x", "'@SUM(A1)", "-2.5"} <= set(cells)


def test_a_result_folder_has_effects_and_graph_only_with_hard_interventions(tmp_path):
    world = jc.simulate.random_world(5, 3, 0.8, seed=1, intervention="hard")
    hard = jc.recover(world.clients(), interventions="hard")
    folder = hard.save(tmp_path / "result")
    effects = pd.read_csv(folder / "effects.csv")
    assert list(effects.columns) == list(hard.effects.columns)
    assert effects.total.to_numpy() == pytest.approx(hard.effects.total.to_numpy(), rel=1e-4)
    graph = nx.read_graphml(folder / "graph.graphml")
    assert set(graph.edges) == set(hard.graph.edges) != set()
    for a, d, about in hard.graph.edges(data=True):
        assert graph.edges[a, d]["verdict"] == about["verdict"]
        assert graph.edges[a, d]["weight"] == pytest.approx(about["weight"])
    jc.recover(jc.simulate.setting("A", 0).clients()).save(folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {"result.json", "order.csv", "hasse.graphml", "report.html"}
