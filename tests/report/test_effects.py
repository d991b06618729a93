"""Effects and bounds in the page's text and in its diagram."""

import json
from dataclasses import replace
from itertools import permutations

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import signed
from jigsaw_crl.fragment.fragment import Statements
from jigsaw_crl.report.drawing import draw_graph
from jigsaw_crl.report.writing import render_report

from ..assembly.clients import with_totals
from .studies import assembled, chain_fragment, sized_fragment
from .test_page import data_of, table_of, unpacked, words_of


def drawn(picture):
    return {(e.ancestor, e.descendant): e.weight for e in picture.edges}


def test_the_diagram_has_every_direct_edge_with_its_weight_and_sign(plant):
    edges = drawn(draw_graph(plant.order))
    direct = {(a, d): e for a, d, e in plant.graph.edges(data=True) if e["verdict"] == "direct"}
    assert len(direct) >= 5
    for pair, about in direct.items():
        weight = edges[pair]
        assert weight["decided"]
        assert all(weight[name] == about[name] for name in ("weight", "low", "high"))
        assert weight["sign"] == ("plus" if about["weight"] > 0 else "minus")
    sizes = sorted((abs(edges[pair]["weight"]), edges[pair]["width"]) for pair in direct)
    assert sizes == sorted(sizes, key=lambda pair: pair[1])


def test_open_edges_are_drawn_where_the_order_is_decided_and_counted_elsewhere(plant):
    picture = draw_graph(plant.order)
    edges = drawn(picture)
    opened = {(a, d) for a, d, e in plant.graph.edges(data=True) if e["verdict"] != "direct"}
    maybe = {pair for pair, weight in edges.items() if weight is not None and not weight["decided"]}
    assert maybe
    assert maybe <= opened
    assert maybe <= plant.order.pairs()
    assert picture.not_drawn == len(opened - maybe - plant.order.hasse().edges)
    assert f"{picture.not_drawn} more edges are undetermined" in words_of(render_report(plant))


def test_numbers_stand_clear_of_each_other_of_labels_and_of_heads(plant):
    cut = jc.simulate.Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(9, 6, 0.6, seed=9128, intervention=cut)
    crossed = jc.recover(world.clients(5_000), interventions="hard")
    for result in (plant, crossed):
        picture = draw_graph(result.order)
        places = [e.number_at for e in picture.edges if e.number_at]
        assert len(places) >= 5
        for i, (x, y) in enumerate(places):
            assert all(abs(x - u) >= 42 or abs(y - v) >= 14 for u, v in places[:i])
            for chip in picture.shapes:
                inside = chip.x < x < chip.x + chip.width and chip.y < y < chip.y + chip.height
                assert not inside
            for u, v in (edge.points[-1] for edge in picture.edges):
                assert abs(x - u) > 21 or y + 7 <= v - 11 or v <= y - 7


def texts_of(result, a, d):
    """The lines of a pair's certificate, as the page has them."""
    i, j = result.order.indices(a, d)
    text = json.loads(unpacked(data_of(render_report(result))["texts"][i]))[j]
    return [line.strip() for line in text.splitlines()]


def test_the_page_carries_the_effects_of_all_sites_and_of_each(plant):
    order = plant.order
    data = data_of(render_report(plant))
    table = table_of(data)
    assert np.array_equal(table["total"], order.effects.estimate, equal_nan=True)
    assert np.array_equal(table["error"], order.effects.error, equal_nan=True)
    for client in data["clients"]:
        members = client["members"]
        n = len(members)
        tables = np.frombuffer(unpacked(client["table"]), "<f8").reshape(5, n, n)
        for (i, a), (j, d) in permutations(enumerate(members), 2):
            frame = plant.site_effects(order.labels[a], order.labels[d]).set_index("site")
            own = frame.loc[client["name"]]
            assert tables[2, i, j] == own["total"]
            assert bool(tables[4, i, j]) == own["set_aside"]


def test_sentences_about_an_effect_say_what_the_tables_say(plant):
    order = plant.order
    told = texts_of(plant, "pump", "valve")
    assert told == str(order.explain("pump", "valve")).replace("\n  ", "\n").splitlines()
    pooled = signed(order.effects.estimate[order.indices("pump", "valve")])
    said = f"Total effect of pump on valve: {pooled} standard deviations (95 % interval "
    assert said in " ".join(told)
    assert any(line.endswith("; set aside: coast.") for line in told)
    assert any(line.endswith("; there is a direct edge.") for line in told)
    assert any(line.startswith("The clients agree: ") for line in told)
    weight = plant.graph["pump"]["flow"]["weight"]
    total = plant.effects.set_index(["cause", "effect"]).loc[("pump", "flow"), "total"]
    assert abs(weight - total) > 0.01
    assert f"Direct part: {signed(weight)} standard deviations (" in " ".join(
        texts_of(plant, "pump", "flow")
    )
    measured = plant.effects.set_index(["cause", "effect"]).loc[("valve", "pump")]
    told = " ".join(texts_of(plant, "valve", "pump"))
    assert f"interval {signed(measured.low)} to {signed(measured.high)})" in told
    assert "It counts as zero, because the verdict is “not ancestor”." in told
    assert "no client with hard interventions" in " ".join(texts_of(plant, "pump", "mixer"))


def test_an_open_pair_is_not_said_to_have_an_effect():
    fragment = sized_fragment("one", "a", "b")
    unsure = Statements(np.full((2, 2), -1, dtype=np.int8))
    none = with_totals(fragment, np.zeros((2, 2)), np.full((2, 2), 0.01))
    result = assembled(replace(none, statements=unsure))
    assert result.order.verdict("a", "b") is jc.Verdict.UNDETERMINED
    told = " ".join(texts_of(result, "a", "b"))
    assert "There is no direct edge: an effect, if any, passes through other labels." in told


def test_numbers_of_a_system_that_a_client_finds_bent_are_not_given_for_every_amount(plant):
    found = Finding("nonlinear-response", "info", "it bends", "None.", client="coast")
    fragments = {f.client: f for f in plant.order.fragments}
    fragments["coast"] = replace(fragments["coast"], findings=(found,))
    bent = assembled(*fragments.values())
    assert bent.order.panel.bent
    assert bent.order.effects is not None
    for result, said in ((plant, False), (bent, True)):
        assert ("other amounts may do something else" in words_of(render_report(result))) == said


def test_an_effect_that_may_pass_through_others_is_not_said_to_be_that_of_an_edge():
    result = assembled(sized_fragment("one", "a", "c"), chain_fragment("two", "b", "d"))
    told = " ".join(texts_of(result, "a", "c"))
    assert result.graph["a"]["c"]["verdict"] == "undetermined"
    assert "whether there is a direct edge is undetermined; a path through b, d is not" in told
    assert "all of it" not in told
