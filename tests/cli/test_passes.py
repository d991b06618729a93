"""`jigsaw assemble` of a folder, and of more labels than a result can have."""

from __future__ import annotations

import csv
import json

import pytest

import jigsaw_crl as jc
from jigsaw_crl.assembly import panel as panels
from jigsaw_crl.cli.app import run

from ..malformed.conftest import refused

__all__ = ["refused"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fragments")
    world = jc.simulate.setting("A", 0)
    for k, client in enumerate(world.clients(1_000)):
        ending = ("bin", "json")[k % 2]
        jc.save_fragment(jc.recover_fragment(client), folder / f"{client.name}.{ending}")
    (folder / "notes.txt").write_text("not a fragment")
    return folder


def test_a_folder_stands_for_its_fragments(folder, capsys):
    files = sorted(str(path) for path in folder.iterdir() if path.suffix != ".txt")
    answers = []
    for given in ([str(folder)], files):
        assert run(["assemble", *given, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]


def test_the_decided_pairs_are_those_of_the_result(folder, tmp_path, capsys):
    table = tmp_path / "pairs.csv"
    assert run(["assemble", str(folder), "--pairs", str(table), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    order = jc.assemble(folder)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    yes = {(r["ancestor"], r["descendant"]) for r in rows if r["verdict"] == "ancestor"}
    assert yes == order.pairs()
    assert len(rows) == said["counts"]["ancestor"] + said["counts"]["not ancestor"]
    assert said["client_weights"] == dict(order.client_weights)
    assert run(["assemble", str(folder), "--pairs", str(table)]) == 0  # replaced
    assert "written to" in capsys.readouterr().out


def test_a_result_folder_of_very_many_labels_is_refused(folder, tmp_path, refused, monkeypatch):
    monkeypatch.setattr(panels, "MOST_SAMPLED", 3)
    out = tmp_path / "result"
    refused(["assemble", str(folder), "--out", str(out)], "a result has 3 at most", "--pairs FILE")
    assert not out.exists()
    table = tmp_path / "pairs.csv"
    assert run(["assemble", str(folder), "--pairs", str(table)]) == 0
    assert table.read_text().startswith("ancestor,descendant,verdict,probability\n")


def test_pairs_and_a_result_folder_exclude_each_other(folder, tmp_path, refused):
    given = ["assemble", str(folder), "--pairs", str(tmp_path / "p.csv")]
    refused([*given, "--out", str(tmp_path / "r")], "writes no result folder", "Drop --out")
    (tmp_path / "mine.csv").write_text("mine")
    given[-1] = str(tmp_path / "mine.csv")
    refused(given, "mine.csv", "")
    assert (tmp_path / "mine.csv").read_text() == "mine"
    assert not (tmp_path / "p.csv").exists()
