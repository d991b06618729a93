"""The page as text: policy, escaping, packing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.report import certificates as packing
from jigsaw_crl.report import render_report
from jigsaw_crl.report.contents import describe, relation_no_client_states
from jigsaw_crl.report.drawing import draw_piece
from jigsaw_crl.result.exports import order_csv
from jigsaw_crl.result.result import Result

from .studies import HOSTILE, assembled, chain_fragment, large_result


class Reader(HTMLParser):
    """Collects elements, and the text of styles and scripts."""

    def __init__(self, text: str) -> None:
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


def unpacked(text: str) -> bytes:
    return gzip.decompress(base64.b64decode(text))


def data_of(page: str) -> dict:
    return json.loads(Reader(page).texts["script"][0])


def test_the_paper_s_page_speaks_of_what_is_stated_and_of_no_probability():
    clients = jc.simulate.setting("A", 0).clients()
    page = render_report(jc.recover(clients, method="paper"))
    assert data_of(page)["mode"] == "paper"
    told = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
    assert "stated?</button>" in told
    assert "gives no probabilities" in told
    assert "more probable" not in told


def test_the_page_says_what_a_verdict_needs_beside_its_probability(tunnel):
    assert "probability above 0.95 or below 0.05, and evidence" in render_report(tunnel)


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


def test_the_same_result_gives_the_same_page(tunnel, folder):
    first = render_report(tunnel)
    assert first == render_report(tunnel)
    # A result read back has the same order; only the settled pieces may be richer in memory.
    again = render_report(jc.load_result(folder(tunnel)))
    assert data_of(again)["certificates"] == data_of(first)["certificates"]


@pytest.mark.parametrize("name", ["tunnel", "exact", "middling", "hostile"])
def test_every_pair_carries_the_text_of_its_certificate(name, request):
    order = request.getfixturevalue(name).order
    rows = [json.loads(unpacked(row)) for row in packing.pack_certificates(order)]
    for a, ancestor in enumerate(order.labels):
        for d, descendant in enumerate(order.labels):
            expected = "" if a == d else str(order.explain(ancestor, descendant))
            assert rows[a][d] == expected


def test_a_page_with_too_many_pairs_keeps_the_ancestors_texts(monkeypatch, middling):
    order = middling.order
    ancestors = order.verdicts == 1
    monkeypatch.setattr(packing, "MOST_PAIRS", int(ancestors.sum()) + 5)
    rows = [json.loads(unpacked(row)) for row in packing.pack_certificates(order)]
    kept = np.array([[text != "" for text in row] for row in rows])
    assert kept.sum() == ancestors.sum() + 5
    assert kept[ancestors].all()


def test_a_proof_that_is_too_long_is_left_out_whole(monkeypatch, hostile):
    order = hostile.order
    monkeypatch.setattr(packing, "MOST_STEPS", 1)
    rows = [json.loads(unpacked(row)) for row in packing.pack_certificates(order)]
    left_out = 0
    for a, ancestor in enumerate(order.labels):
        for d, descendant in enumerate(order.labels):
            if a != d:
                certificate = order.explain(ancestor, descendant)
                assert rows[a][d] == ("" if len(certificate.steps) > 1 else str(certificate))
                left_out += rows[a][d] == ""
    assert left_out > 0


def test_the_table_holds_verdicts_counts_and_probabilities(middling):
    order = middling.order
    data = data_of(render_report(middling))
    p = len(order.labels)
    raw = unpacked(data["table"])
    verdict = np.frombuffer(raw[: p * p], dtype=np.uint8).reshape(p, p)
    chance = np.frombuffer(raw[3 * p * p :], dtype="<f4").reshape(p, p)
    assert (verdict.astype(int) - 1 == order.verdicts).all()
    assert np.abs(chance / 10_000 - order.probabilities).max() <= 1e-6
    csv = unpacked(data["files"]["order.csv"]).decode()
    assert csv == order_csv(order)


def test_the_page_carries_every_client_s_log_odds_and_stances_by_label(tunnel):
    order = tunnel.order
    data = data_of(render_report(tunnel))
    for given, claims in zip(data["clients"], order.panel.claims, strict=True):
        assert given["name"] == claims.client
        brought = claims.evidence.log_odds()
        names = [order.labels[i] for i in given["members"]]
        n = len(names)
        packed = np.frombuffer(unpacked(given["evidence"]), dtype="<i2").reshape(n, n)
        stance = np.frombuffer(unpacked(given["stance"]), dtype=np.uint8).reshape(n, n)
        for i, a in enumerate(names):
            for j, d in enumerate(names):
                assert order.labels[claims.members[i]] == a
                assert order.labels[claims.members[j]] == d
                said = brought[i, j] if claims.says[i, j] and i != j else np.nan
                assert packed[i, j] == (-32_768 if np.isnan(said) else round(100 * said))
                # A client that says yes or no has log-odds on that side.
                assert stance[i, j] == 1 or (stance[i, j] - 1.0) * said > 0


def test_downloads_are_the_files_of_the_result_folder(tunnel, folder):
    data = data_of(render_report(tunnel))
    for name, packed in data["files"].items():
        assert unpacked(packed) == (folder(tunnel) / name).read_bytes()


@pytest.mark.slow
def test_three_hundred_labels_stay_below_fifteen_megabytes():
    result = large_result(300, 24, 0.15, seed=1)
    assert len(result.order.labels) > 290
    assert len(render_report(result).encode()) < 15_000_000


def test_a_client_s_own_contribution_is_what_no_other_states():
    result = assembled(chain_fragment("one", "a", "b", "c"), chain_fragment("two", "b", "c", "d"))
    one, two = describe(result).pieces
    assert {(a, d) for a, d, yes in one.alone if yes} == {("a", "b"), ("a", "c")}
    assert {(a, d) for a, d, yes in two.alone if yes} == {("b", "d"), ("c", "d")}
    assert (one.hidden, two.hidden) == (("d",), ("a",))
    assert relation_no_client_states(result) == ("a", "d")


def test_paper_results_and_single_clients_have_a_page_too():
    world = jc.simulate.setting("A", 0)
    clients = [world.client(k) for k in range(world.n_clients)]
    assert "Algorithm 3" in render_report(jc.recover(clients, method="paper"))
    assert "1 client," in render_report(jc.recover(clients[:1]))


def test_a_page_that_cannot_be_written_is_refused_in_one_line(tunnel, tmp_path):
    with pytest.raises(jc.InputError, match="cannot be written"):
        tunnel.report(tmp_path / "missing" / "report.html")


def test_a_cycle_of_algorithm_3_is_shown_not_hidden():
    fragments = [chain_fragment("one", "a", "b", "c"), chain_fragment("two", "c", "a", "d")]
    order = jc.assemble(fragments, method="paper")
    assert {("a", "c"), ("c", "a")} <= set(order.hasse().edges)
    page = render_report(Result({f.client: f for f in fragments}, order))
    drawn = {
        (a["data-a"], a["data-d"]) for t, a in Reader(page).elements if t == "g" and "data-a" in a
    }
    assert drawn == set(order.hasse().edges)


def words_of(page: str) -> str:
    told = re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.S)
    return html.unescape(" ".join(re.sub(r"<[^>]*>", " ", told).split()))


def test_the_headline_example_is_a_sentence_about_an_ancestor_pair(tunnel):
    page = render_report(tunnel)
    a, d = relation_no_client_states(tunnel)
    assert tunnel.order.verdict(a, d) is jc.Verdict.ANCESTOR
    assert f"{a} is an ancestor of {d}, though no client has both" in words_of(page)


def test_the_example_needs_several_clients():
    one = [chain_fragment("one", "a", "b", "c"), chain_fragment("two", "a", "b")]
    assert relation_no_client_states(assembled(*one)) is None
    world = jc.simulate.random_world(8, 4, 0.6, 3)
    for seed in range(3):
        result = jc.recover(world.clients(1500, seed=seed))
        pair = relation_no_client_states(result)
        if pair is not None:
            steps = [s for s in result.order.explain(*pair).steps if s.rule == "weighed"]
            assert not set.intersection(*(set(s.supporting) for s in steps))


def test_no_pair_of_the_template_is_a_bare_arrow(tunnel):
    buttons = re.findall(r"<button[^>]*data-pair.*?</button>", render_report(tunnel), flags=re.S)
    assert buttons
    assert not any("→" in button for button in buttons)


def test_an_example_that_is_a_denial_says_not():
    yes = chain_fragment("one", "a", "b", "c")
    page = words_of(render_report(assembled(yes, chain_fragment("two", "c", "d"))))
    assert "a is an ancestor of d, though no client has both" in page
    denied = assembled(chain_fragment("one", "b", "a"), chain_fragment("two", "a", "d"))
    assert relation_no_client_states(denied) == ("b", "d")


def test_the_summary_counts_what_the_tiles_count_and_names_warnings(middling):
    page = words_of(render_report(middling))
    n = middling.order.counts
    assert f"in {n['ancestor']} the first is an ancestor of the second" in page
    assert f"{n['undetermined']} stay undetermined" in page
    warned = [Finding("x", "warning", "it is odd", "Look.", client="one", regime=r) for r in "ab"]
    lab = chain_fragment("one", "a", "b")
    told = words_of(render_report(assembled(lab, diagnostics=tuple(warned))))
    assert "2 warnings about the data" in told


def test_findings_that_say_the_same_share_a_card():
    findings = tuple(
        Finding("odd", "warning", "it is odd", "Look.", value=v, client="one", regime=r)
        for r, v in (("a", 1.5), ("b", 2.5))
    )
    other = Finding("odd", "warning", "it is odder", "Look.", client="one")
    lab = chain_fragment("one", "a", "b")
    page = render_report(assembled(lab, diagnostics=(*findings, other)))
    (card,) = re.findall(r'<li class="card finding.*?</li>', page, flags=re.S)
    assert (
        words_of(card) == "warning odd it is odd one / a (1.5), one / b (2.5) it is odder one Look."
    )


def test_remedies_that_differ_in_numbers_share_a_card_with_their_range():
    def weak(regime, times):
        remedy = f"Rename 'x3', or take 2 files with more rows (about {times} times)."
        return Finding("weak", "warning", "it is weak", remedy, client="one", regime=regime)

    found = (weak("a", "1.8"), weak("b", "1,200"), weak("c", "13"))
    other = Finding("weak", "warning", "it is weak", "Rename 'x4'.", client="one", regime="d")
    lab = chain_fragment("one", "a", "b")
    page = render_report(assembled(lab, diagnostics=(*found, other)))
    first, second = re.findall(r'<li class="card finding.*?</li>', page, flags=re.S)
    assert words_of(first) == (
        "warning weak it is weak one / a , one / b , one / c "
        "Rename 'x3', or take 2 files with more rows (about 1.8 to 1,200 times)."
    )
    assert "Rename 'x4'." in words_of(second)


def test_a_page_without_verdicts_says_so_in_words():
    silent = jc.Fragment(
        "one",
        "paper",
        ("a", "b"),
        (frozenset("ab"),),
        jc.PartialOrder.from_pairs([frozenset("ab")], []),
    )
    told = words_of(render_report(assembled(silent)))
    assert "They decide none of the 2 ordered pairs" in told
    assert "decide 0" not in told


def test_an_arrow_between_groups_says_only_what_is_known():
    a, bc = frozenset("a"), frozenset("bc")
    lab = jc.Fragment(
        "one", "paper", ("a", "b", "c"), (a, bc), jc.PartialOrder.from_pairs((a, bc), [(a, bc)])
    )
    page = render_report(assembled(lab))
    assert "a is an ancestor of at least one of b, c</title>" in page
    assert page.count('class="line some"') == 1
    assert 'class="line some"' not in render_report(assembled(chain_fragment("one", "a", "b")))


def test_an_arrow_that_the_client_cannot_state_is_a_best_guess(middling):
    seen = set()
    for claims, fragment in zip(middling.order.panel.claims, middling.order.fragments, strict=True):
        names = [middling.order.labels[i] for i in claims.members]
        for edge in draw_piece(fragment).edges:
            if (
                len(fragment.block_of(edge.ancestor))
                == len(fragment.block_of(edge.descendant))
                == 1
            ):
                pair = names.index(edge.ancestor), names.index(edge.descendant)
                assert edge.stated == (claims.stance[pair] == 1)
                assert edge.stated != edge.meaning.startswith("best guess")
                seen.add(edge.stated)
    assert seen == {True, False}
