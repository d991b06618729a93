"""Tables for people."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.cli.app import run
from jigsaw_crl.cli.output import emit, findings_table


def test_the_same_finding_about_several_clients_is_one_line(capsys):
    one = Finding("ignored-column", "info", "the column 'time' is text", "Nothing.", client="a")
    other = Finding(
        "outliers", "error", "a few rows", "Look.", value=2.0, client="b", regime="pump"
    )
    found = [*(replace(one, client=c) for c in "abcdefgh"), other, replace(one, value=3.0)]
    emit(False, {}, findings_table(found))
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[1] for line in lines] == ["b/pump", "a, b, c, d, e, f and 2 more", "a"]
    assert [line[0] for line in lines] == ["error", "info", "info"]


def test_only_a_fragment_is_told_in_blocks_and_the_word_is_explained(tmp_path, capsys):
    world = jc.simulate.setting("A", 0)
    for k in range(2):
        control, regimes = world.rows(k, 300)
        np.savez(tmp_path / f"lab-{k}.npz", control=control, **regimes)
    assert run(["recover", str(tmp_path)]) == 0
    assert "block" not in capsys.readouterr().out
    assert run(["fragment", str(tmp_path / "lab-0.npz"), "-o", str(tmp_path / "piece.json")]) == 0
    lines = capsys.readouterr().out.splitlines()
    (said,) = (i for i, line in enumerate(lines) if "in one block if hidden causes" in line)
    assert any("block" in line for line in lines[:said])
