"""`jigsaw assemble` of a folder, and of too many labels."""

from __future__ import annotations

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
    for client in world.clients(1_000):
        jc.save_fragment(jc.recover_fragment(client), folder / f"{client.name}.json")
    (folder / "notes.txt").write_text("not a fragment")
    return folder


def test_a_folder_stands_for_its_fragments(folder, capsys):
    files = sorted(str(path) for path in folder.iterdir() if path.suffix != ".txt")
    answers = []
    for given in ([str(folder)], files):
        assert run(["assemble", *given, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]


def test_too_many_labels_are_refused(folder, tmp_path, refused, monkeypatch):
    monkeypatch.setattr(panels, "MOST_LABELS", 3)
    out = tmp_path / "result"
    refused(["assemble", str(folder), "--out", str(out)], "orders of 3 at most", "Leave labels out")
    assert not out.exists()
