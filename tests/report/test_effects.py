"""Effects and bounds in the page's text and in its diagram."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import signed
from jigsaw_crl.evidence.effects import Effects, Sizes
from jigsaw_crl.fragment.fragment import Statements
from jigsaw_crl.report import render_report
from jigsaw_crl.report.contents import describe
from jigsaw_crl.report.drawing import draw_graph

from .studies import assembled, chain_fragment, sized_fragment
from .test_page import Reader, data_of, table_of, unpacked, words_of


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
    # Only labels with a known effect can be moved.
    assert describe(result)["pushable"] == ("a", "b")


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


def test_a_full_diagram_keeps_the_likeliest_open_edges():
    labels = [f"z{i}" for i in range(12)]
    fragment = sized_fragment("one", *labels, error=0.4)
    result = assembled(fragment)
    picture = draw_graph(result.order)
    opened = [e for e in picture.edges if e.weight is not None and not e.weight.decided]
    assert len(opened) <= 18
    assert picture.not_drawn > 0


def test_without_hard_interventions_the_diagram_and_page_stay_as_they_were(tunnel):
    assert all(edge.weight is None for edge in draw_graph(tunnel.order).edges)
    page = render_report(tunnel)
    assert data_of(page)["interval"] is None
    told = words_of(page)
    assert "What if" not in told
    assert "what if" not in told
    assert "total effect" not in told
    assert describe(tunnel)["pushable"] == ()
    assert not any(attributes.get("id") == "effects" for _, attributes in Reader(page).elements)


def texts_of(result, a, d):
    """The certificate of a pair and the sentences about it, as the page has them."""
    i, j = result.order.indices(a, d)
    return json.loads(unpacked(data_of(render_report(result))["texts"][i]))[j]


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
    certificate, *about = texts_of(plant, "pump", "valve")
    assert certificate == str(order.explain("pump", "valve"))
    assert "Total effect of pump on valve: +0.67" in certificate
    assert about[0] == "The effect is direct: it does not pass through other labels."
    assert about[1].startswith("The clients agree: ")
    assert about[2].startswith("×: set aside")
    weight = plant.graph["pump"]["flow"]["weight"]
    total = plant.effects.set_index(["cause", "effect"]).loc[("pump", "flow"), "total"]
    assert abs(weight - total) > 0.01
    assert f"labels: {signed(weight)} (" in texts_of(plant, "pump", "flow")[1]
    measured = plant.effects.set_index(["cause", "effect"]).loc[("valve", "pump")]
    interval = f"({signed(measured.low)} to {signed(measured.high)})"
    _, told, _ = texts_of(plant, "valve", "pump")
    assert interval in told
    assert "It counts as zero, because valve is not an ancestor of pump." in told
    assert "no client with hard interventions" in texts_of(plant, "pump", "mixer")[1]


def test_an_open_pair_is_not_said_to_have_an_effect():
    fragment = sized_fragment("one", "a", "b")
    unsure = Statements(np.full((2, 2), -1, dtype=np.int8))
    none = Sizes(np.zeros((2, 2)), np.full((2, 2), 0.01))
    result = assembled(
        replace(fragment, statements=unsure, hard=replace(fragment.hard, total=none))
    )
    assert result.order.verdict("a", "b") is jc.Verdict.UNDETERMINED
    told = texts_of(result, "a", "b")[1]
    assert told.startswith("There is no direct effect: if there is one at all, it passes through")


def test_numbers_of_a_system_that_a_client_finds_bent_are_not_given_for_every_amount(plant):
    found = Finding("nonlinear-response", "info", "it bends", "None.", client="coast")
    fragments = {f.client: f for f in plant.order.fragments}
    fragments["coast"] = replace(fragments["coast"], findings=(found,))
    bent = assembled(*fragments.values())
    assert bent.order.is_bent
    assert bent.order.effects is not None
    for result, said in ((plant, False), (bent, True)):
        assert ("other amounts may do something else" in words_of(render_report(result))) == said


def test_an_effect_that_may_pass_through_another_label_is_called_total():
    result = assembled(sized_fragment("one", "a", "c"), chain_fragment("two", "b", "d"))
    assert texts_of(result, "a", "c")[1] == (
        "This is the total effect; a path through b, d is not excluded."
    )


def test_a_no_that_nobody_measured_excludes_no_size(plant, exact):
    assert texts_of(plant, "mixer", "pump")[1].startswith("No client measured this pair")
    order = exact.order
    a, d = next(
        pair for pair in permutations(order.labels, 2) if order.verdicts[order.indices(*pair)] == 0
    )
    assert texts_of(exact, a, d)[1:] == ["Exact moments exclude an effect of any size."]


def test_sites_that_were_set_aside_are_named_in_the_page(plant):
    (note,) = plant.order.effects.notes
    assert note.startswith("coast stands apart from the others in 1 effect")
    assert "pump on valve (1.46, the others 0.67)" in note
    assert plant.order.effects.apart == {}
    assert note in words_of(render_report(plant))


def test_a_label_without_a_direction_is_said_to_be_unoriented():
    fragment = sized_fragment("one", "a", "b")
    sizes = Sizes(fragment.hard.total.value, fragment.hard.total.error)
    turned = replace(fragment, hard=Effects((True, True), (1, 0), sizes, sizes))
    assert texts_of(assembled(turned), "a", "b")[-1].endswith("in which direction it moved b.")
    assert "sign" not in texts_of(assembled(fragment), "a", "b")[-1]


@pytest.mark.slow
def test_effects_of_a_bent_system_are_marked_as_averages_at_their_dose():
    dose = jc.simulate.Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(6, 4, 0.9, seed=7, intervention=dose)
    clients = world.clients(20_000, seed=1, departures=["nonlinear-system=0.5"])
    result = jc.recover(clients, interventions="hard")
    assert set(result.effects.kind) == {"average effect at this dose"}
    page, order = render_report(result), result.order
    table = table_of(data_of(page))
    for row in result.effects[result.effects.verdict == "ancestor"].itertuples():
        assert table["total"][order.indices(row.cause, row.effect)] == row.total
        said = f"Average effect at this dose of {row.cause} on {row.effect}: {signed(row.total)}"
        assert said in texts_of(result, row.cause, row.effect)[0]
    shown = words_of(page)
    assert "effect at this dose" in shown
    # Nothing is claimed that holds for linear systems only.
    assert "In simulations like this study" not in shown
    assert describe(result)["pushable"] == ()
