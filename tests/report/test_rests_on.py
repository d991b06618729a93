"""Verdicts that rest on one client are marked wherever they are shown."""

from __future__ import annotations

import json

import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli

from .test_browser import ask


@pytest.fixture(scope="module")
def assembled(tunnel, tmp_path_factory):
    """The result folder that `jigsaw assemble` writes, and what it prints."""
    root = tmp_path_factory.mktemp("assembled")
    files = []
    for fragment in tunnel.order.fragments:
        files.append(root / f"{fragment.client}.fragment.json")
        files[-1].write_text(fragment.to_json())
    return root / "result", [str(f) for f in files]


def test_certificates_name_the_client_that_a_verdict_rests_on(tunnel):
    order = tunnel.order
    assert order.rests_on
    for a, d in order.pairs():
        line = (
            f"  It rests on {order.rests_on.get((a, d))}: without it, the others do not decide it"
        )
        assert (line in str(order.explain(a, d))) == ((a, d) in order.rests_on)


def test_the_command_line_shows_and_explains_it(assembled, tunnel, capsys):
    out, files = assembled
    assert cli.run(["assemble", *files, "--seed", "1", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "rest on a single client" in printed
    resting = jc.load_result(out).order.rests_on
    assert resting == tunnel.order.rests_on
    decided = {tuple(line.split("\t")[:2]): line.split("\t") for line in printed.splitlines()}
    for pair in resting.keys() & decided.keys():
        assert decided[pair][-1] == resting[pair]
    (a, d), client = next(iter(resting.items()))
    assert cli.run(["explain", str(out), a, d, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rests_on"] == client
    before = (out / "report.html").read_text()
    (out / "report.html").unlink()
    assert cli.run(["report", str(out)]) == 0
    assert capsys.readouterr().out.strip() == f"written to {out / 'report.html'}"
    assert (out / "report.html").read_text() == before


def test_the_page_marks_the_pairs_counts_them_and_filters_by_them(visit, tunnel):
    page = visit(tunnel)
    resting = tunnel.order.rests_on
    told = page.locator(".remarks").inner_text()
    assert f"{len(resting)} verdicts rest on a single client" in told
    assert page.locator("#rows .badge.one").count() == len(resting)
    page.select_option("#who", "rests")
    page.wait_for_function(
        "n => document.querySelectorAll('#rows tr').length === n", arg=len(resting)
    )
    (a, d), client = next(iter(resting.items()))
    ask(page, a, d)
    title = page.locator("#why-body .badge.one").get_attribute("title")
    assert title == f"rests on {client}"
    assert f"It rests on {client}" in page.locator("#certificate").inner_text()
