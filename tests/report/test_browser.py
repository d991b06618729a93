"""The page in a real browser, offline. The `visit` fixture fails on console output or requests."""

import re

import pytest

from jigsaw_crl.report.writing import render_report

from .conftest import HANG
from .studies import HOSTILE, contested_result
from .test_page import data_of, unpacked

pytestmark = pytest.mark.slow


def certificate_on(page):
    page.wait_for_selector("#certificate")
    return page.locator("#certificate").evaluate("e => e.textContent")


def wait_for_answer(page, ancestor, descendant):
    page.wait_for_function(
        "t => document.getElementById('why-title').textContent === t",
        arg=f"{ancestor} → {descendant}?",
    )


def wait_for_rows(page, count):
    page.wait_for_function("n => document.querySelectorAll('#rows tr').length === n", arg=count)


def ask(page, ancestor, descendant):
    page.fill("#ask-a", ancestor)
    page.fill("#ask-d", descendant)
    page.click("#ask button")
    wait_for_answer(page, ancestor, descendant)


def violations(page, impacts=("serious", "critical")):
    """The accessibility findings of these impacts, by a script that the page's policy refuses."""
    from axe_playwright_python.sync_playwright import Axe

    found = [v for v in Axe().run(page).response["violations"] if v["impact"] in impacts]
    return [(v["id"], [n["html"][:120] for n in v["nodes"]][:4]) for v in found]


def explained(told, folder, ancestor, descendant):
    """What `jigsaw explain` prints."""
    return told("explain", folder, "--", ancestor, descendant).rstrip("\n")


def test_the_policy_stops_foreign_code(browser, folder, tunnel):
    context = browser.new_context()
    context.set_default_timeout(HANG)
    page = context.new_page()
    page.goto((folder(tunnel) / "report.html").as_uri())
    page.evaluate(
        "() => { const s = document.createElement('script'); s.textContent = 'window.foreign = 1';"
        "document.body.append(s); const i = new Image(); i.src = 'https://example.org/x.png'; }"
    )
    assert page.evaluate("window.foreign") is None
    context.close()


def test_a_click_on_a_pair_shows_what_explain_prints(visit, tunnel, folder, told):
    page = visit(tunnel)
    for row in range(0, 20, 3):
        line = page.locator("#rows tr").nth(row)
        ancestor, descendant = line.locator("td.label").all_inner_texts()
        line.click()
        wait_for_answer(page, ancestor, descendant)
        assert certificate_on(page) == explained(told, folder(tunnel), ancestor, descendant)


def test_the_matrix_explains_the_cell_under_the_pointer(visit, tunnel, folder, told):
    page = visit(tunnel)
    page.select_option("#matrix-order", "name")
    page.locator("#matrix").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    said = page.locator("#cell").inner_text()
    labels = tunnel.order.labels
    assert said.startswith(f"{labels[2]}: ") or said == labels[2]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert certificate_on(page) == explained(told, folder(tunnel), labels[2], labels[3])


def test_filters_search_and_sorting_agree_with_the_order(visit, middling):
    from playwright.sync_api import expect

    page = visit(middling)
    order = middling.order

    def counts(pairs):
        said = re.compile(rf" of {pairs:,}$") if pairs else "No pair matches."
        expect(page.locator("#count")).to_have_text(said)

    frame = order.to_frame()
    for value, word in (("2", "ancestor"), ("1", "not ancestor"), ("0", "undetermined")):
        page.select_option("#verdict", value)
        counts(int((frame["verdict"] == word).sum()))
    page.select_option("#verdict", "")
    label = order.labels[0]
    page.fill("#search", label.upper())
    counts(2 * (len(order.labels) - 1))
    page.fill("#search", f"{label} → {order.labels[1]}")
    expect(page.locator("#rows td.label")).to_have_text([label, order.labels[1]])
    page.fill("#search", "")
    page.select_option("#who", "disagree")
    counts(int(((frame["supporting"] > 0) & (frame["contradicting"] > 0)).sum()))
    page.select_option("#who", "")
    counts(len(frame))
    page.locator("th button[data-sort=a]").click()
    shown = page.locator("#rows tr td:first-child").all_inner_texts()
    assert shown == sorted(shown)
    page.locator("th button[data-sort=a]").click()
    assert page.locator("#rows tr td:first-child").first.inner_text() == order.labels[-1]
    assert page.locator("th[aria-sort=descending]").count() == 1
    page.click("#following")
    assert page.locator("#count").inner_text().startswith("Pairs 51 to 100")


def test_the_keyboard_alone_reaches_a_certificate_from_the_diagram(visit, tunnel, folder, told):
    page = visit(tunnel)
    page.locator(".node[tabindex='0']").focus()
    for _ in range(6):
        page.keyboard.press("ArrowUp")
    top = page.evaluate("document.activeElement.dataset.label")
    assert not tunnel.order.ancestors(top)
    page.keyboard.press("Enter")
    assert page.locator("#why-title").inner_text() == top
    page.locator("#why-body button").first.focus()
    page.keyboard.press("Enter")
    text = certificate_on(page)
    a, d = page.locator("#why-title").inner_text().rstrip("?").split(" → ")
    assert text == explained(told, folder(tunnel), a, d)
    page.keyboard.press("Escape")
    assert page.locator("#certificate").count() == 0


@pytest.mark.parametrize(("name", "among"), [("tunnel", set()), ("plant", {"push", "push-add"})])
def test_every_control_can_be_reached_with_tab(visit, name, among, request):
    page = visit(request.getfixturevalue(name))
    reached = set()
    for _ in range(150):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    controls = page.locator("button, input, select, #matrix").evaluate_all(
        "list => list.filter(e => e.id && !e.disabled && e.checkVisibility({ visibilityProperty:"
        " true })).map(e => e.id)"
    )
    assert {"theme", "find", "search", "matrix", "ask-a"} | among <= set(controls)
    assert set(controls) <= reached


def test_hostile_labels_neither_break_nor_inject(visit, hostile, folder, told):
    page = visit(hostile)
    assert page.evaluate("window.broken") is None
    assert page.locator(".node").count() == len(HOSTILE)
    shown = page.locator(".node").evaluate_all("list => list.map(n => n.dataset.label)")
    assert shown == sorted(HOSTILE)
    for ancestor, descendant in ((HOSTILE[0], HOSTILE[7]), (HOSTILE[4], HOSTILE[1])):
        ask(page, ancestor, descendant)
        assert certificate_on(page) == explained(told, folder(hostile), ancestor, descendant)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.evaluate("window.broken") is None


@pytest.mark.parametrize("name", ["order.csv", "hasse.graphml", "diagram.svg"])
def test_downloads_work_under_the_policy(visit, tunnel, name):
    page = visit(tunnel, accept_downloads=True)
    with page.expect_download() as waiting:
        page.click(f"[data-file='{name}']")
    saved = waiting.value
    assert saved.suggested_filename == name
    given = unpacked(data_of(render_report(tunnel))["files"][name])
    assert saved.path().read_bytes() == given


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("tunnel", ("", ".node", "#rows tr", "#heat")),
        ("plant", (".edge[data-a=pump][data-d=valve] .hit",)),
        ("sensed", ("",)),
    ],
)
def test_no_width_or_theme_has_serious_accessibility_findings(
    visit, name, steps, width, scheme, request
):
    page = visit(request.getfixturevalue(name), width=width, scheme=scheme, bypass_csp=True)
    page.locator("#sensors details").evaluate_all("all => all.forEach(e => { e.open = true })")
    for step in steps:
        if step.endswith(".hit"):
            page.locator(step).dispatch_event("click")
            page.wait_for_selector("#forest")
        elif step:
            page.locator(step).first.click()
        assert not violations(page)
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_phone_shows_every_link_and_crops_no_number(visit, plant):
    page = visit(plant, width=390, height=844)
    for link in page.locator("nav a").all():
        box = link.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        link.click()
        target = page.locator(link.get_attribute("href"))
        assert target.evaluate("e => e.getBoundingClientRect().bottom") > 0
    for text in page.locator(".tile dd, #shifts td, .facts dd, .clients td").all():
        assert text.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    for text in page.locator("#shifts td").all():
        box = text.bounding_box()
        assert box["x"] + box["width"] <= 390
    edge = page.locator("#hasse").bounding_box()
    for number in page.locator("text.size").all():
        box = number.bounding_box()
        assert edge["x"] - 1 <= box["x"]  # a box of text is wider than its letters
        assert box["x"] + box["width"] <= edge["x"] + edge["width"] + 1
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.locator("#rows tr").first.click()
    certificate_on(page)
    box = page.locator("#why").bounding_box()
    assert box["width"] == 390
    assert box["y"] + box["height"] == 844
    page.click("#why-close")
    assert page.locator("#why.open").count() == 0


def test_the_theme_is_that_of_the_device_and_can_be_switched_by_hand(visit, tunnel):
    page = visit(tunnel, scheme="dark")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.click("#theme")
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_contested_verdicts_are_marked_and_can_be_filtered(visit):
    page = visit(contested_result())
    marks = page.locator("#rows .badge").all_inner_texts()
    assert [mark for mark in marks if mark != "one client"] == ["contested"]
    page.select_option("#who", "contested")
    wait_for_rows(page, 1)
    ask(page, "x", "y")
    assert "contested" in page.locator(".verdict-line .badge").all_inner_texts()
    assert "It is contested" in certificate_on(page)


def test_no_probability_is_shown_as_certain_unless_moments_are_exact(visit, middling, exact):
    told = visit(middling).locator("#rows td.num:nth-child(4)").all_inner_texts()
    assert "> 0.99" in told
    assert not {"1.00", "0.00", "1.000", "0.000"} & set(told)
    assert "1" in visit(exact).locator("#rows td.num:nth-child(4)").all_inner_texts()


def test_marks_and_the_lead_keep_their_size(visit, tunnel):
    page = visit(tunnel)
    page.locator("#rows tr:has(.badge)").first.click()
    certificate_on(page)
    for badge in page.locator(".badge.one").all():
        assert badge.bounding_box()["height"] < 26
    lines = "e => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight)"
    assert page.locator(".lead").evaluate(lines) < 3.5


def test_the_page_marks_the_pairs_counts_them_and_filters_by_them(visit, tunnel):
    page = visit(tunnel)
    resting = tunnel.order.rests_on
    told = page.locator(".remarks").inner_text()
    assert f"{len(resting)} verdicts rest on a single client" in told
    assert page.locator("#rows .badge.one").count() == len(resting)
    page.select_option("#who", "rests")
    wait_for_rows(page, len(resting))
    (a, d), client = next(iter(resting.items()))
    ask(page, a, d)
    title = page.locator("#why-body .badge.one").get_attribute("title")
    assert title == f"rests on {client}"
    assert f"It rests on {client}" in page.locator("#certificate").inner_text()
