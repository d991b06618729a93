"""The page as text: policy, escaping, packing."""

import base64
import gzip
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly.posterior.chains import Convergence
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.text import chance
from jigsaw_crl.diagnostics.findings import finding
from jigsaw_crl.report import pairs as packing
from jigsaw_crl.report.contents import decided_across_clients, describe, likely_right
from jigsaw_crl.report.writing import render_report
from jigsaw_crl.result.result import Result

from .studies import HOSTILE, assembled, chain_fragment, contested_result, weighing_fragment


class Reader(HTMLParser):
    """Collects elements, and the text of styles and scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"style": [], "script": []}
        self._in = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in self.texts:
            self._in = tag
            self.texts[tag].append("")

    def handle_endtag(self, _tag):
        self._in = ""

    def handle_data(self, data):
        if self._in:
            self.texts[self._in][-1] += data


def unpacked(text):
    return gzip.decompress(base64.b64decode(text))


def data_of(page):
    return json.loads(Reader(page).texts["script"][0])


def table_of(data):
    """The columns of the table of pairs, each of shape (p, p)."""
    p = len(data["labels"])
    tables = np.frombuffer(unpacked(data["table"]), "<f8").reshape(-1, p, p)
    return dict(zip(data["columns"], tables, strict=True))


def test_the_paper_s_page_speaks_of_what_is_stated_and_of_no_probability():
    clients = jc.simulate.setting("A", 0).clients()
    page = render_report(jc.recover(clients, method="paper"))
    assert data_of(page)["mode"] == "paper"
    told = words_of(page)
    assert "stated?" in told
    assert "gives no probabilities" in told
    assert "Algorithm 3" in told
    assert "more probable" not in told
    assert "log Bayes factor" not in told


def test_the_policy_allows_exactly_the_page_s_own_style_and_script(tunnel):
    page = Reader(render_report(tunnel))
    policy = next(
        a["content"] for t, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    for kind, text in (("style", page.texts["style"][0]), ("script", page.texts["script"][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert (len(page.texts["style"]), len(page.texts["script"])) == (1, 2)


def test_nothing_in_the_page_points_outside_it(tunnel):
    text = render_report(tunnel)
    for _, attributes in Reader(text).elements:
        for name in ("src", "href", "action", "srcset", "poster", "data"):
            assert re.match(r"#|data:,$", attributes.get(name) or "#")
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    assert not re.search(r"\w+://", text)


@pytest.mark.slow
def test_labels_never_become_markup(hostile):
    page = Reader(render_report(hostile))
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "b", "iframe"}
    assert len(page.texts["script"]) == 2
    assert data_of(render_report(hostile))["labels"] == sorted(HOSTILE)
    assert "49" not in [a.get("data-label") for _, a in page.elements]


def test_backticks_become_code_and_nothing_else_becomes_markup():
    finding = Finding("x", "info", "odd ` tick <b>", "Run `jigsaw <i>design</i>` or `this`.")
    fragment = chain_fragment("one", "a", "b")
    page = render_report(assembled(fragment, diagnostics=(finding,)))
    assert "<code>jigsaw &lt;i&gt;design&lt;/i&gt;</code>" in page
    assert "odd ` tick &lt;b&gt;" in page


@pytest.mark.parametrize("name", ["tunnel", "exact", "middling", "hostile"])
def test_every_pair_carries_the_text_of_its_certificate(name, request):
    order = request.getfixturevalue(name).order
    rows = [json.loads(unpacked(row)) for row in packing.pack_texts(order)]
    for a, ancestor in enumerate(order.labels):
        for d, descendant in enumerate(order.labels):
            expected = "" if a == d else str(order.explain(ancestor, descendant))
            assert rows[a][d] == expected


def test_a_page_with_too_many_pairs_keeps_the_ancestors_texts(monkeypatch, middling):
    order = middling.order
    off = ~np.eye(len(order), dtype=bool)
    for expected in ((order.verdicts != 0) & off, (order.verdicts == 1) & off):
        monkeypatch.setattr(packing, "MOST_PAIRS", int(expected.sum()))
        rows = [json.loads(unpacked(row)) for row in packing.pack_texts(order)]
        kept = np.array([[text != "" for text in row] for row in rows])
        assert (kept == expected).all()


def test_downloads_are_the_files_of_the_result_folder(tunnel, folder):
    data = data_of(render_report(tunnel))
    assert set(data["files"]) == {"order.csv", "hasse.graphml", "diagram.svg"}
    for name in ("order.csv", "hasse.graphml"):
        assert unpacked(data["files"][name]) == (folder(tunnel) / name).read_bytes()
    assert unpacked(data["files"]["diagram.svg"]).startswith(b"<svg ")


def test_a_client_s_own_contribution_is_what_no_other_states():
    result = assembled(chain_fragment("one", "a", "b", "c"), chain_fragment("two", "b", "c", "d"))
    one, two = describe(result)["pieces"]
    assert {(a, d) for a, d, yes in one["alone"] if yes} == {("a", "b"), ("a", "c")}
    assert {(a, d) for a, d, yes in two["alone"] if yes} == {("b", "d"), ("c", "d")}
    page = render_report(result)
    hidden = re.findall(r'<span class="ghost" title="(\w+)">', page)
    assert hidden == ["d", "a"]
    assert decided_across_clients(result.order) == ("a", "d")


def test_a_cycle_of_algorithm_3_is_shown_not_hidden():
    fragments = [chain_fragment("one", "a", "b", "c"), chain_fragment("two", "c", "a", "d")]
    order = jc.assemble(fragments, method="paper")
    assert {("a", "c"), ("c", "a")} <= set(order.hasse().edges)
    page = render_report(Result({f.client: f for f in fragments}, order))
    drawn = {
        (a["data-a"], a["data-d"]) for t, a in Reader(page).elements if t == "g" and "data-a" in a
    }
    assert drawn == set(order.hasse().edges)


def words_of(page):
    told = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", told).split()))


def test_the_headline_example_is_a_sentence_about_an_ancestor_pair(tunnel):
    page = render_report(tunnel)
    a, d = decided_across_clients(tunnel.order)
    assert tunnel.order.verdict(a, d) is jc.Verdict.ANCESTOR
    assert f"{a} is an ancestor of {d}, though no client has both" in words_of(page)


def test_the_summary_counts_what_the_tiles_count_and_names_warnings(middling):
    page = render_report(middling)
    n = middling.order.counts
    decided = n["ancestor"] + n["not ancestor"]
    (lead,) = re.findall(r'<p class="lead">.*?</p>', page, flags=re.S)
    said = f"8 clients together decide {decided} of {sum(n.values())} ordered pairs"
    assert said in words_of(lead)
    assert f"{n['undetermined']} pairs are undetermined" in words_of(page)
    warned = [Finding("x", "warning", "it is odd", "Look.", client="one", regime=r) for r in "ab"]
    lab = chain_fragment("one", "a", "b")
    told = words_of(render_report(assembled(lab, diagnostics=tuple(warned))))
    assert "2 warnings about the data" in told


def test_a_study_without_a_name_is_called_by_what_it_is(tunnel):
    assert describe(tunnel)["title"] == "light tunnel"
    lab = chain_fragment("one", "a", "b")
    for name in ({}, {"study": "study"}):
        told = describe(assembled(lab, provenance=name))["title"]
        assert told == "Causal order of 2 labels from 1 client"


def test_the_most_probable_open_pairs_are_named_with_their_probability(middling):
    order = middling.order
    opened = sorted(order.undetermined(), key=lambda pair: (-order.probability(*pair), pair))
    (shown,) = (pairs for said, pairs in describe(middling)["remarks"] if "undetermined" in said)
    assert [pair[:2] for pair in shown] == opened[: len(shown)]
    a, d, text = shown[0]
    assert text == f"is {a} an ancestor of {d}? {chance(order.probability(a, d), order.decimals)}"


def test_chains_that_do_not_agree_are_told_once(middling):
    convergence = Convergence(False, 1.5, 0.2, 500, 4)
    note = f"{convergence}: read probabilities near 0.05 with that error"
    order = replace(middling.order, convergence=convergence, notes=(note,))
    page = words_of(render_report(replace(middling, order=order)))
    assert page.count(str(convergence)) == 1


def test_pairs_on_which_chains_disagree_are_not_said_to_lack_data(middling):
    order = middling.order
    disputed = tuple(order.indices(*pair) for pair in sorted(order.undetermined())[:2])
    quarrel = replace(
        middling,
        order=replace(order, convergence=Convergence(True, 1.0, 0.01, 500, 4, disputed)),
    )
    told = words_of(render_report(quarrel))
    assert "on 2 of them the chains that sample orders disagree" in told
    assert "fit both answers" not in told
    assert "4 chains of 500 sweeps agree except on 2 pairs" in told


def test_contested_verdicts_are_shown_in_the_page_and_the_table():
    result = contested_result()
    frame = result.order.to_frame().set_index(["ancestor", "descendant"])
    assert set(frame.index[frame["contested"]]) == result.order.contested == {("x", "y")}
    page = render_report(result)
    contested = np.argwhere(table_of(data_of(page))["contested"]).tolist()
    assert contested == [[*result.order.indices("x", "y")]]
    told = "contested: the clients that say the opposite would decide so among themselves"
    assert told in words_of(page)


def test_how_many_clients_contradict_the_rest_is_counted(middling):
    order = middling.order
    weights = np.where(np.arange(len(order.use.weights)) < 5, 0.0, 1.0)
    assert not order.use.disagreement
    assert "contradict the rest" not in words_of(render_report(middling))
    quarrel = replace(middling, order=replace(order, use=replace(order.use, weights=weights)))
    assert quarrel.order.use.disagreement
    told = words_of(render_report(quarrel))
    assert f"5 of {len(weights)} clients contradict the rest." in told
    assert "third" not in told


def test_trust_names_the_nearest_simulations(middling, plant, exact):
    share = r"(>\xa099\.9|\d\d\.\d)\xa0%"
    assert re.fullmatch(
        r"The nearest simulated studies have soft interventions, 15 clients and 1,000 rows per "
        r"regime \(this one: 8 clients, 1,000 rows\); "
        rf"there, {share} of “ancestor” and {share} of “not ancestor” verdicts were right\.",
        likely_right(middling.order),
    )
    assert "have hard interventions, 5 clients and 10,000 rows" in likely_right(plant.order)
    first, *others = plant.order.fragments
    soft = [replace(f, hard=None) for f in others]
    told = likely_right(jc.assemble([first, *soft]))
    assert "have soft interventions" in told
    assert f"{1 + len(others)} clients, 1 of them with hard interventions, " in told
    assert likely_right(exact.order) == ""


def test_certificate_table_and_file_give_the_same_numbers_of_every_pair(tunnel, folder):
    """What `explain` prints, what the page shows beside it, and `order.csv`."""
    order = tunnel.order
    data = data_of(render_report(tunnel))
    table = table_of(data)
    lines = pd.read_csv(folder(tunnel) / "order.csv").itertuples()
    steps = 0
    for line in lines:
        a, d = order.indices(line.ancestor, line.descendant)
        told = {name: column[a, d] for name, column in table.items()}
        assert ("undetermined", "not ancestor", "ancestor")[int(told["verdict"])] == line.verdict
        assert (told["yes"], told["no"]) == (line.supporting, line.contradicting)
        assert told["probability"] == pytest.approx(line.probability, abs=0.51e-4)
        said = {"yes": [], "no": []}
        for client in data["clients"]:
            if {a, d} <= set(client["members"]):
                i, j = client["members"].index(a), client["members"].index(d)
                n = len(client["members"])
                stance = np.frombuffer(unpacked(client["table"]), "<f8")[i * n + j]
                if stance:
                    said["yes" if stance > 0 else "no"].append(client["name"])
        assert (len(said["yes"]), len(said["no"])) == (line.supporting, line.contradicting)
        text = str(order.explain(line.ancestor, line.descendant))
        assert f"{chance(told['probability'])})" in text
        own = re.search(
            rf"{line.ancestor} is (?:not )?an ancestor of {line.descendant}: "
            r"log Bayes factor (\S+); (.*?) says? (yes|no)$",
            text,
            re.M,
        )
        if own:
            steps += 1
            assert float(own[1]) == pytest.approx(told["evidence"], abs=0.06)
            assert own[2].split(", ") == said[own[3]]
    assert steps >= 7


def test_an_arrow_that_the_client_cannot_state_is_a_best_guess():
    for evidence, stated in ((9.0, True), (0.1, False)):
        piece = weighing_fragment("one", "x", "y", evidence)
        order = jc.PartialOrder.from_pairs(piece.blocks, [piece.blocks])
        (shown,) = describe(assembled(replace(piece, block_order=order)))["pieces"]
        (edge,) = shown["picture"].edges
        assert edge.stated == stated
        assert edge.meaning.startswith("best guess") != stated


def test_numbers_and_lists_are_written_for_people(middling):
    wide = finding("excess-spread", 1760.4, 1000.0, client="bonn")
    given = replace(
        middling,
        diagnostics=(wide,),
        provenance={**middling.provenance, "added": ["aachen", "bonn"]},
    )
    told = words_of(render_report(given))
    assert "in all directions, 1,760 times as much" in told
    assert "bonn (1,760, threshold 1,000)" in told
    assert "aachen, bonn" in told
    assert "['" not in told
    assert "e+03" not in told
