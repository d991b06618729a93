"""Pictures of orders and clients, and what notebooks show of them."""

from xml.etree import ElementTree

import jigsaw_crl as jc
from jigsaw_crl.base.text import signed
from jigsaw_crl.report.drawing import draw_graph
from jigsaw_crl.report.writing import svg

from .studies import assembled, chain_fragment


def test_the_diagram_has_the_edges_of_the_hasse_diagram(middling):
    picture = draw_graph(middling.order)
    drawn = {(e.ancestor, e.descendant) for e in picture.edges}
    assert drawn == set(middling.order.hasse().edges)


def test_a_drawing_of_effects_has_every_edge_in_the_colour_of_its_sign(plant):
    picture = draw_graph(plant.order)
    drawn = ElementTree.fromstring(svg(picture))
    lines = [e for e in drawn.iter() if e.tag.endswith("path") and e.get("fill") == "none"]
    colours = {"plus": "#0072B2", "minus": "#D55E00", "unclear": "#8593a8"}
    for line, edge in zip(lines, picture.edges, strict=True):
        sign = "unclear" if edge.weight is None else edge.weight["sign"]
        assert line.get("stroke") == colours[sign]
        dashed = edge.weight is not None and not edge.weight["decided"]
        assert (line.get("stroke-dasharray") != "none") == dashed
    texts = {e.text for e in drawn.iter() if e.tag.endswith("text")}
    assert set(plant.order.labels) < texts
    assert {signed(e.weight["weight"]) for e in picture.edges if e.number_at} <= texts


def test_notebooks_show_escaped_html(tunnel, hostile):
    html = tunnel._repr_html_()
    assert "<svg" in html
    assert all(label in html for label in tunnel.order.labels)
    for shown in (hostile._repr_html_(), hostile.order._repr_html_()):
        assert "<script" not in shown
        assert "<img" not in shown
    fragment = next(iter(hostile.fragments.values()))
    assert "<script" not in fragment._repr_html_()


def test_large_orders_are_not_drawn_in_notebooks():
    labels = [f"z{i:03d}" for i in range(130)]
    result = assembled(chain_fragment("one", *labels))
    assert "write the report" in result.order._repr_html_()


def test_notebooks_show_certificates_and_proposals_as_they_are_printed(plant):
    for shown in (plant.order.explain("pump", "valve"), jc.next_client(plant.order)):
        assert repr(shown) == str(shown)
