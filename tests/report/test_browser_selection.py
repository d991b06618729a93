"""What is asked is marked everywhere on the page, and everything shown can be reached and read."""

import re
from itertools import product

import pytest

from .studies import random_result
from .test_browser import ask, certificate_on, explained, wait_for_answer

pytestmark = pytest.mark.slow

# The contrast of WCAG 2 (AA) between the text of an element and what lies behind it.
CONTRAST = """e => {
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(x => x / 255)
    .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
    .reduce((sum, x, k) => sum + x * [0.2126, 0.7152, 0.0722][k], 0);
  let behind = e;
  while (rgb(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
  const [one, other] = [getComputedStyle(e).color, getComputedStyle(behind).backgroundColor]
    .map(rgb).map(light);
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}"""


def lit(page, kind):
    return set(page.locator(f".node.{kind}").evaluate_all("list => list.map(n => n.dataset.label)"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_button_can_be_read_while_the_pointer_is_over_it(visit, tunnel, scheme):
    page = visit(tunnel, scheme=scheme)
    page.locator(".node").first.click()
    seen = 0
    for button in page.locator("button:not([disabled]), nav a").all():
        if button.is_visible():
            button.hover()
            assert button.evaluate(CONTRAST) >= 4.5, button.inner_text()
            seen += 1
    assert seen > 20


def test_the_diagram_shows_the_asked_pair_and_what_lies_between(visit, tunnel):
    page = visit(tunnel)
    page.locator(".node[data-label=pol_1]").click()
    assert lit(page, "sel") == {"pol_1"}
    ask(page, "blue", "red")
    assert lit(page, "sel") == {"blue", "red"}
    assert lit(page, "via") == tunnel.order.descendants("blue") & tunnel.order.ancestors("red")
    assert not lit(page, "anc")
    on = page.locator(".edge.on-anc").evaluate_all("l => l.map(e => [e.dataset.a, e.dataset.d])")
    assert sorted(on) == [["blue", "green"], ["green", "red"]]
    page.click("#why-close")
    assert page.locator(".hasse.lit").count() == 0
    ask(page, "blue", "red")
    page.locator(".node[data-label=pol_1]").click()
    assert lit(page, "sel") == {"pol_1"}
    assert not lit(page, "via")
    assert page.locator("#rows tr.picked").count() == 0


def test_a_cell_of_the_evidence_says_its_number_and_answers_a_click(visit, tunnel, folder, told):
    page = visit(tunnel)
    client = tunnel.order.fragments[0]
    heat = page.locator("#heat")
    box = heat.bounding_box()
    # The first cell from below and from the right that holds a number.
    for x, y in product((45, 90, 135), (80, 125, 170)):
        place = {"x": box["width"] - x, "y": box["height"] - y}
        heat.hover(position=place)
        said = page.locator("#heat-cell").inner_text()
        found = re.fullmatch(
            rf"Is (\S+) an ancestor of (\S+)\? {client.client}: (yes|no|cannot say) "
            r"\(evidence ([+−][\d.]+)\)\.",
            said,
        )
        if found:
            break
    assert found, said
    a, d, _, odds = found.groups()
    claims = tunnel.order.said.claims[0]
    i, j = (list(claims.members).index(tunnel.order.labels.index(name)) for name in (a, d))
    expected = claims.log_factor[i, j]
    assert abs(float(odds.replace("−", "-")) - expected) < 0.051
    heat.click(position=place)
    wait_for_answer(page, a, d)
    assert certificate_on(page) == explained(told, folder(tunnel), a, d)


def test_a_phone_reaches_every_column_and_says_that_there_are_more(visit, plant):
    page = visit(plant, width=390, height=844)
    table = page.locator("#pairs .scroll")
    hint = page.locator("#pairs .scroll").locator("xpath=preceding-sibling::p[1]")
    assert hint.is_visible()
    assert "swipe" in hint.inner_text()
    table.evaluate("e => e.scrollTo(e.scrollWidth, 0)")
    head = page.locator("#table thead th")
    assert head.count() == 8
    for column in range(8):
        assert head.nth(column).evaluate("e => e.checkVisibility()")
    edge = table.bounding_box()
    last = page.locator("#rows tr").first.locator("td").last.bounding_box()
    assert last["x"] + last["width"] <= edge["x"] + edge["width"] + 1
    wide = visit(plant)
    assert not wide.locator("#pairs .scroll").locator("xpath=preceding-sibling::p[1]").is_visible()


def test_a_phone_shows_diagrams_of_some_labels_in_letters_that_can_be_read(visit, hostile, tunnel):
    crowded = random_result(40, 6, 0.5, seed=2)
    for result, least in ((hostile, 10), (tunnel, 10), (crowded, 6)):
        page = visit(result, width=390, height=844)
        text = page.locator(".node text").first
        drawn = text.evaluate("e => 13 * e.ownerSVGElement.getScreenCTM().a")
        assert drawn >= least
        assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("kind", ["hostile", "middling"])
def test_no_name_beside_a_grid_is_clipped(visit, kind, request):
    page = visit(request.getfixturevalue(kind))
    for grid in ("#matrix", "#heat"):
        edges = page.locator(grid).evaluate(
            """e => {
              const { data } = e.getContext("2d").getImageData(0, 0, e.width, e.height);
              const inked = inside => data.some((x, k) => k % 4 === 3 && x > 0
                && inside((k >> 2) % e.width, Math.floor((k >> 2) / e.width)));
              return [x => x < 3, (x, y) => y < 3, () => true].map(inked);
            }"""
        )
        assert edges == [False, False, True]
