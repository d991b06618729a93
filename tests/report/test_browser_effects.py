"""Effects in a real browser: the diagram, the panel of one effect, what-if, bounds."""

from itertools import pairwise

import numpy as np
import pytest

from ..assembly.clients import with_totals
from .studies import HOSTILE, assembled, sized_fragment
from .test_browser import ask, certificate_on, explained

pytestmark = pytest.mark.slow


def number(text):
    return float(text.replace("−", "-").replace("×", "").strip())


def test_direct_edges_are_thick_and_coloured_and_open_ones_dashed(visit, plant):
    page = visit(plant)
    style = "(e, name) => getComputedStyle(e.querySelector('.line'))[name]"
    widths, colours = {}, {}
    for a, d, about in plant.graph.edges(data=True):
        edge = page.locator(f".edge[data-a={a}][data-d={d}]:not(.number)")
        if about["verdict"] == "direct":
            assert edge.evaluate(style, "strokeDasharray") == "none"
            widths[abs(about["weight"])] = float(
                edge.evaluate(style, "strokeWidth").removesuffix("px")
            )
            colours.setdefault(about["weight"] > 0, set()).add(edge.evaluate(style, "stroke"))
    in_order = [widths[size] for size in sorted(widths)]
    assert in_order == sorted(in_order)
    assert in_order[0] > 1.6
    assert in_order[-1] > in_order[0] + 1
    assert len(colours[True]) == len(colours[False]) == 1
    assert colours[True] != colours[False]
    dashed = page.locator(".edge.maybe").first
    assert dashed.evaluate(style, "strokeDasharray") != "none"
    assert page.locator("#order .legend").inner_text().count("undetermined") == 1


def test_the_panel_shows_the_effect_at_every_site(visit, plant, folder, told):
    page = visit(plant)
    page.locator(".edge[data-a=pump][data-d=valve] .hit").dispatch_event("click")
    page.wait_for_selector("#forest")
    frame = plant.site_effects("pump", "valve")
    rows = page.locator("#forest tbody tr:not(.axis)")
    assert rows.locator("th").all_inner_texts() == [*frame.site, "all clients"]
    shown = rows.locator("td.num").evaluate_all("list => list.map(e => e.firstChild.textContent)")
    # The effect of all together has a mark; its number stands in the certificate alone.
    assert [number(x) for x in shown] == pytest.approx([*frame.total], abs=0.00501)
    assert rows.last.locator(".mark .pool").count() == 2
    assert page.locator("#forest tr.aside th").all_inner_texts() == ["coast"]
    said = page.locator("#certificate").inner_text()
    assert "there is a direct edge" in said
    assert "The clients agree" in said
    assert "set aside" in said
    assert certificate_on(page) == explained(told, folder(plant), "pump", "valve")
    pooled = plant.order.effects.estimate[plant.order.indices("pump", "valve")]
    assert certificate_on(page).count(f"{pooled:+.2f}") == 1


def table_of(page):
    rows = page.locator("#shifts tbody tr:not(.axis)").evaluate_all(
        "list => list.map(r => [r.dataset.label, r.lastElementChild.textContent])"
    )
    return dict(rows)


def says_as_predicted(page, plant, shifts):
    shown = table_of(page)
    for row in plant.predict_shift(shifts).itertuples():
        if np.isnan(row.change):
            assert shown[row.label] == "undetermined"
            continue
        value, _, between = shown[row.label].partition(" (")
        assert number(value) == pytest.approx(row.change, abs=0.00501)
        between = between.rstrip(")")
        if not between:
            assert row.low == row.high
            continue
        if between.startswith("at most "):
            low, high = value, between.removeprefix("at most ")
        elif between.startswith("at least "):
            low, high = between.removeprefix("at least "), value
        else:
            low, high = between.split(" to ")
        assert number(low) == pytest.approx(row.low, abs=0.00501)
        assert number(high) == pytest.approx(row.high, abs=0.00501)


def test_what_if_says_what_predict_shift_computes(visit, plant):
    page = visit(plant)
    says_as_predicted(page, plant, {"pump": 1.0})
    assert "undetermined" in table_of(page).values()
    slider = page.locator("#pushes input").first
    slider.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    says_as_predicted(page, plant, {"pump": 0.5})
    assert slider.get_attribute("aria-valuetext") == "+0.5 standard deviations"
    page.select_option("#push", "tank")
    page.click("#push-add")
    page.locator("#pushes input").nth(1).fill("-2")
    says_as_predicted(page, plant, {"pump": 0.5, "tank": -2.0})
    page.locator("#pushes li button").first.click()
    says_as_predicted(page, plant, {"tank": -2.0})
    page.click("#push-add")
    assert page.locator("#pushes li").count() == 1


@pytest.mark.parametrize("size", [-0.2, -0.3, -0.6, -1.5])
def test_the_numbers_of_an_axis_do_not_touch_on_a_phone(visit, size):
    fragment = sized_fragment("one", "a", "b", error=0.01)
    value = np.array([[0.0, size], [0.0, 0.0]])
    page = visit(assembled(with_totals(fragment, value)), width=390)
    boxes = [text.bounding_box() for text in page.locator("#shifts tr.axis text").all()]
    boxes.sort(key=lambda box: box["x"])
    assert len(boxes) >= 2
    assert all(a["x"] + a["width"] < b["x"] for a, b in pairwise(boxes))


def test_hostile_labels_do_not_break_effects(visit):
    result = assembled(sized_fragment(HOSTILE[1], *HOSTILE[:5]), sized_fragment("x", *HOSTILE[3:]))
    page = visit(result, width=390)
    ask(page, *HOSTILE[3:5])
    page.wait_for_selector("#forest")
    assert set(table_of(page)) == set(HOSTILE)
    assert page.evaluate("window.broken") is None
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_what_if_says_how_large_an_excluded_effect_may_be(visit):
    fragment = sized_fragment("one", "a", "b")
    value = fragment.hard.total.value.copy()
    value[1, 0] = 0.3
    result = assembled(with_totals(fragment, value))
    page = visit(result)
    page.select_option("#push", "b")
    page.click("#push-add")
    page.locator("#pushes li button").first.click()
    says_as_predicted(page, result, {"b": 1.0})
    assert table_of(page)["a"] == "0.00 (at most +0.40)"
    page.locator("#pushes input").fill("-1")
    assert table_of(page)["a"] == "0.00 (at least −0.40)"
