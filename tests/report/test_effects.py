"""Effects and bounds in the page's text, in its diagram and in the figures."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.report import render_report
from jigsaw_crl.report.contents import describe
from jigsaw_crl.report.drawing import draw_graph, draw_hasse
from jigsaw_crl.report.figures import write_figures

from .studies import HOSTILE, assembled, chain_fragment, sized_fragment
from .test_page import Reader, data_of, unpacked, words_of


def drawn(picture):
    return {(e.ancestor, e.descendant): e.weight for e in picture.edges}


def test_the_diagram_has_every_direct_edge_with_its_weight_and_sign(plant):
    edges = drawn(draw_graph(plant.order))
    direct = {(a, d): e for a, d, e in plant.graph.edges(data=True) if e["verdict"] == "direct"}
    assert len(direct) >= 5
    for pair, about in direct.items():
        weight = edges[pair]
        assert weight.decided
        assert (weight.value, weight.low, weight.high) == (
            about["weight"],
            about["low"],
            about["high"],
        )
        assert weight.sign == ("plus" if about["weight"] > 0 else "minus")
    sizes = sorted((abs(edges[pair].value), edges[pair].width) for pair in direct)
    assert sizes == sorted(sizes, key=lambda pair: pair[1])


def test_open_edges_are_drawn_where_the_order_is_decided_and_counted_elsewhere(plant):
    picture = draw_graph(plant.order)
    edges = drawn(picture)
    opened = {(a, d) for a, d, e in plant.graph.edges(data=True) if e["verdict"] != "direct"}
    maybe = {pair for pair, weight in edges.items() if weight is not None and not weight.decided}
    assert maybe
    assert maybe <= opened
    assert maybe <= plant.order.pairs()
    assert picture.not_drawn == len(opened - maybe - plant.order.hasse().edges)
    assert f"{picture.not_drawn} more edges are undetermined" in words_of(render_report(plant))


def test_ancestors_without_a_measured_effect_are_thin_lines():
    result = assembled(sized_fragment("one", "a", "b"), chain_fragment("two", "b", "c"))
    edges = drawn(draw_graph(result.order))
    assert edges["a", "b"].decided
    assert edges["b", "c"] is None


def test_numbers_stand_clear_of_each_other_and_of_labels(plant):
    picture = draw_graph(plant.order)
    places = [e.number_at for e in picture.edges if e.number_at]
    assert len(places) >= 5
    for i, (x, y) in enumerate(places):
        assert all(abs(x - u) >= 42 or abs(y - v) >= 14 for u, v in places[:i])
        for chip in picture.chips:
            inside = chip.x < x < chip.x + chip.width and chip.y < y < chip.y + chip.height
            assert not inside


def test_a_full_diagram_keeps_the_likeliest_open_edges():
    labels = [f"z{i}" for i in range(12)]
    fragment = sized_fragment("one", *labels, error=0.4)
    result = assembled(fragment)
    picture = draw_graph(result.order)
    opened = [e for e in picture.edges if e.weight is not None and not e.weight.decided]
    assert len(opened) <= 18
    assert picture.not_drawn > 0


def test_without_hard_interventions_the_diagram_and_page_stay_as_they_were(tunnel):
    assert draw_graph(tunnel.order) == draw_hasse(tunnel.order)
    page = render_report(tunnel)
    assert data_of(page)["effects"] is None
    told = words_of(page)
    assert "What if" not in told
    assert "what if" not in told
    assert "total effect" not in told
    assert describe(tunnel).pushable == ()
    assert not any(attributes.get("id") == "effects" for _, attributes in Reader(page).elements)


def test_the_page_carries_the_effects_of_all_sites_and_of_each(plant):
    order = plant.order
    page = data_of(render_report(plant))
    data, p = page["effects"], len(order.labels)
    total, error, chance = np.frombuffer(unpacked(data["total"]), "<f4").reshape(3, p, p)
    assert np.allclose(total, order.effects.estimate, equal_nan=True, atol=1e-6)
    assert np.allclose(error, order.effects.error, equal_nan=True, atol=1e-6)
    assert np.allclose(chance, order.effects.heterogeneity, equal_nan=True, atol=1e-6)
    for k, packed in data["sites"]:
        members = page["clients"][k]["members"]
        raw, n = unpacked(packed), len(members)
        value = np.frombuffer(raw[: 4 * n * n], "<f4").reshape(n, n)
        aside = np.frombuffer(raw[8 * n * n :], np.uint8).reshape(n, n)
        for (i, a), (j, d) in permutations(enumerate(members), 2):
            frame = plant.site_effects(order.labels[a], order.labels[d]).set_index("site")
            own = frame.loc[page["clients"][k]["name"]]
            assert value[i, j] == pytest.approx(own["total"], abs=1e-6)
            assert bool(aside[i, j]) == own["set_aside"]


def test_the_page_carries_direct_effects_and_bounds(plant):
    order = plant.order
    data = data_of(render_report(plant))
    p = len(order.labels)
    raw = unpacked(data["effects"]["direct"])
    verdict = np.frombuffer(raw[8 * p * p : 9 * p * p], np.uint8).reshape(p, p)
    words = ("undetermined", "not direct", "direct")
    for a in range(p):
        for d in range(p):
            assert words[verdict[a, d]] == order.direct_effects.verdict(a, d)
    limits = unpacked(data["bounds"])
    value = np.frombuffer(limits[: 4 * p * p], "<f4").reshape(p, p)
    assert np.allclose(value, order.bounds.value, equal_nan=True, rtol=1e-6)
    assert (np.frombuffer(limits[4 * p * p :], np.uint8) == order.bounds.in_sd.ravel()).all()


def test_sites_that_were_set_aside_are_named_in_the_page(plant):
    (note,) = plant.order.effects.notes
    assert "coast finds" in note
    assert note in words_of(render_report(plant))


def test_only_labels_with_a_known_effect_can_be_moved():
    result = assembled(sized_fragment("one", "a", "b"), chain_fragment("two", "b", "c"))
    assert describe(result).pushable == ("a", "b")


def test_labels_never_become_markup_beside_their_effects():
    result = assembled(sized_fragment(HOSTILE[0], *HOSTILE[:4]), sized_fragment("x", *HOSTILE[3:]))
    page = Reader(render_report(result))
    assert not {tag for tag, _ in page.elements} & {"img", "b", "iframe"}
    assert len(page.texts["script"]) == 2


def test_a_table_of_effects_is_json_without_nan(plant):
    text = Reader(render_report(plant)).texts["script"][0]
    assert "NaN" not in text
    assert json.loads(text, parse_constant=pytest.fail)


# -- figures --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_figures_of_effects_are_written_with_the_others(plant, tmp_path):
    names = {path.name for path in write_figures(plant, tmp_path)}
    assert {"graph.svg", "graph.pdf", "effects.svg", "effects.pdf"} <= names
    svg = (tmp_path / "graph.svg").read_text()
    assert all(f">{label}<" in svg for label in plant.order.labels)


def test_the_heat_map_shows_what_the_table_says(plant):
    ax = plant.plot_effects().axes[0]
    shown = np.ma.masked_invalid(ax.images[0].get_array())
    rows = [text.get_text() for text in ax.get_yticklabels()]
    frame = plant.effects
    kept = frame[frame["verdict"] != "not ancestor"]
    assert shown.count() == len(kept)
    for row in kept.itertuples():
        cell = shown[rows.index(row.cause), rows.index(row.effect)]
        assert cell == pytest.approx(row.total)
    assert ax.get_legend().get_texts()[0].get_text() == "unknown"
    assert len(ax.texts) == len(kept)


def test_the_forest_has_every_site_and_all_together(plant):
    ax = plant.plot_forest("pump", "valve").axes[0]
    names = [text.get_text() for text in ax.get_yticklabels()]
    frame = plant.site_effects("pump", "valve")
    assert frame.site[frame.set_aside].tolist() == ["coast"]
    assert names == ["coast (set aside)", *frame.site[~frame.set_aside], "all sites"]
    marks = [line.get_xdata()[0] for line in ax.lines if line.get_marker() not in ("None", "")]
    pooled = plant.order.effects.estimate[plant.order.indices("pump", "valve")]
    assert marks == pytest.approx([*frame.total, pooled])


def test_the_graph_draws_direct_edges_in_the_colour_of_their_sign(plant):
    from matplotlib.colors import to_hex
    from matplotlib.patches import FancyArrowPatch

    arrows = [x for x in plant.plot_graph().axes[0].patches if isinstance(x, FancyArrowPatch)]
    edges = draw_graph(plant.order).edges
    assert len(arrows) == len(edges)
    colours = {"plus": "#0072b2", "minus": "#d55e00", "unclear": "#8593a8"}
    for arrow, edge in zip(arrows, edges, strict=True):
        sign = "unclear" if edge.weight is None else edge.weight.sign
        assert to_hex(arrow.get_edgecolor()) == colours[sign]
        dashed = edge.weight is not None and not edge.weight.decided
        assert (arrow.get_linestyle() == "--") == dashed


def test_figures_draw_effects_into_given_axes(plant):
    from matplotlib.figure import Figure

    figure = Figure()
    one, two, three = figure.subplots(1, 3)
    assert plant.plot_graph(one) is figure
    assert plant.plot_effects(two) is figure
    assert plant.plot_forest("pump", "valve", ax=three) is figure


def test_figures_of_effects_are_refused_in_one_line_without_them(tunnel, plant):
    for draw in (tunnel.plot_graph, tunnel.plot_effects):
        with pytest.raises(jc.InputError, match="no effects"):
            draw()
    with pytest.raises(jc.InputError, match="no effects"):
        tunnel.plot_forest("blue", "green")
    with pytest.raises(jc.InputError, match="no site measured the effect of 'pump' on 'heater'"):
        plant.plot_forest("pump", "heater")


def test_a_label_without_a_direction_is_said_to_be_unoriented():
    fragment = sized_fragment("one", "a", "b")
    sizes = Sizes(fragment.hard.total.value, fragment.hard.total.error)
    turned = replace(fragment, hard=Effects((True, True), (1, 0), sizes, sizes))
    data = data_of(render_report(assembled(turned)))
    assert data["effects"]["oriented"] == [True, False]
