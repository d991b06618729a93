"""The command `jigsaw federate simulate`."""

from __future__ import annotations

import json

import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli

from .deployment import HANG, jigsaw

pytestmark = pytest.mark.usefixtures("nvflare")


@pytest.fixture(scope="module")
def pieces():
    world = jc.simulate.setting("A", 0)
    return [jc.recover_fragment(world.client(k)) for k in range(2)]


@pytest.mark.slow
def test_the_simulator_gives_the_order_of_the_fragments(pieces, tmp_path):
    paths = []
    for piece in pieces:
        paths.append(tmp_path / f"{piece.client}.json")
        paths[-1].write_text(piece.to_json())
    more = ("--timeout", HANG, "--json")
    done = jigsaw("federate", "simulate", *paths, "--out", tmp_path / "my result", *more)
    assert done.returncode == 0, done.stderr
    # As in every round, a verdict rests on enough sites.
    expected = jc.assemble([p.without_basis() for p in pieces], witnesses="fifth").pairs()
    document = json.loads(done.stdout)
    assert {tuple(pair) for pair in document["pairs"]} == expected
    assert jc.load_result(tmp_path / "my result").order.pairs() == expected
    # Nothing else is left behind.
    assert {p.name for p in tmp_path.iterdir()} == {*(p.name for p in paths), "my result"}


def test_a_fragment_that_cannot_be_read_is_refused_before_anything_starts(tmp_path, capsys):
    (tmp_path / "bad.json").write_text("{}")
    code = cli.run(
        ["federate", "simulate", str(tmp_path / "bad.json"), "--out", str(tmp_path / "out")]
    )
    assert code == 2
    assert "bad.json" in capsys.readouterr().err
