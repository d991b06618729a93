"""What the user knows takes every road: study.toml, Python, files, further sites, the commands."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli

from .assembly.strategies import assert_same
from .study.tables import client_of

TABLE = """
[knowledge]
tiers = [["z2"], ["z1", "z3", "z4"]]
ancestor = ["z2 -> z5"]
"""
KNOWN = jc.Knowledge([["z2"], ["z1", "z3", "z4"]], ["z2 -> z5"])


@pytest.fixture
def study(tmp_path):
    world = jc.simulate.setting("A", 0)
    folder = tmp_path / "study"
    folder.mkdir()
    for k in range(world.n_clients):
        np.savez(folder / f"lab-{k}.npz", **world.sample(k, 300, seed=2).regimes)
    (folder / "study.toml").write_text(TABLE)
    return folder


@pytest.mark.slow
def test_every_road_gives_the_same_result(study, tmp_path, capsys):
    data = jc.read_study(study)
    assert data.knowledge == KNOWN
    result = jc.recover(data)
    assert_same(result.order, jc.recover(list(data.clients), knowledge=KNOWN).order)
    assert result.order.verdict("z2", "z5") is jc.Verdict.ANCESTOR
    assert result.order.verdict("z4", "z2") is jc.Verdict.NOT_ANCESTOR
    assert "you said so" in str(result.order.explain("z2", "z5"))

    again = jc.load_result(result.save(tmp_path / "kept"))
    assert_same(again.order, result.order)
    assert str(again.order.explain("z4", "z2")) == str(result.order.explain("z4", "z2"))
    assert "tiers z2 | z1, z3, z4; z2 -&gt; z5" in (tmp_path / "kept" / "report.html").read_text()

    *first, last = data.clients
    assert_same(jc.recover(first, knowledge=KNOWN).add(last).order, result.order)

    pieces = [jc.recover_fragment(client) for client in data]
    assert cli.run(["recover", str(study), "--out", str(tmp_path / "one")]) == 0
    files = [str(jc.save_fragment(piece, tmp_path / f"{piece.client}.json")) for piece in pieces]
    given = ["--knowledge", str(study / "study.toml")]
    assert cli.run(["assemble", *files, *given, "--out", str(tmp_path / "all")]) == 0
    assert cli.run(["assemble", *files[:-1], *given, "--out", str(tmp_path / "part")]) == 0
    assert cli.run(["assemble", files[-1], "--into", str(tmp_path / "part")]) == 0
    capsys.readouterr()
    for folder in ("one", "all", "part"):
        assert_same(jc.load_result(tmp_path / folder).order, result.order)


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ("[knowledge]\nancestor = ['z1 -> z9']", "no client has: 'z9'"),
        ("[knowledge]\nancestors = ['z1 -> z2']", "unknown field 'ancestors'"),
        ("[knowledge]\nancestor = ['z1 -> z2', 'z2 -> z1']", "cycle"),
        ("knowledge = 3", "the field 'knowledge' is 3"),
    ],
)
def test_a_wrong_table_is_one_line_that_names_the_file(study, table, word, refused):
    (study / "study.toml").write_text(table)
    refused(["recover", study], str(study), word)


def test_a_label_that_the_checks_left_out_may_be_known():
    regimes = jc.simulate.setting("A", 0).sample(0, 2_000).regimes
    a, lost, d = sorted(set(regimes) - {"control"})[:3]
    regimes[lost] = regimes[a]
    lab = client_of(regimes)
    known = jc.Knowledge(ancestor=[(a, lost), (lost, d)])
    order = jc.recover([lab], knowledge=known).order
    assert lost not in order.labels
    assert order.verdict(a, d) is jc.Verdict.ANCESTOR
