"""Packed fragments on the command line: the name of the file chooses."""

from __future__ import annotations

import json

import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run
from jigsaw_crl.cli.simulated import write_table
from jigsaw_crl.fragment.keys import generate_key
from jigsaw_crl.fragment.packed import PACKED

from ..malformed.conftest import refused

__all__ = ["refused"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    world = jc.simulate.setting("A", 0)
    for k, view in enumerate(world.views):
        control, regimes = world.rows(k, 500)
        write_table({"control": control, **regimes}, folder / f"{view.name}.parquet", "parquet")
    return sorted(folder.iterdir())


def answer(capsys, *arguments):
    assert run([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_packed_fragments_give_the_verdicts_of_json_fragments(tables, tmp_path, capsys):
    for table in tables:
        for ending in ("json", "bin"):
            (tmp_path / ending).mkdir(exist_ok=True)
            name = tmp_path / ending / f"{table.stem}.fragment.{ending}"
            answer(capsys, "fragment", table, "-o", name)
    packed = sorted((tmp_path / "bin").iterdir())
    assert all(path.read_bytes().startswith(PACKED) for path in packed)
    plain = sorted((tmp_path / "json").iterdir())
    one, other = (answer(capsys, "assemble", *paths) for paths in (packed, plain))
    assert one == other
    mixed = answer(capsys, "assemble", packed[0], *plain[1:])
    assert mixed == one


def test_a_signed_packed_fragment_is_accepted_by_its_signature(tables, tmp_path, capsys):
    line = generate_key(tables[0].stem, tmp_path / "k.key")
    (tmp_path / "keys.toml").write_text(f'study = "reactor"\n[sites]\n{line}\n')
    signing = ("--sign", tmp_path / "k.key", "--study", "reactor", "--round", "first")
    output = tmp_path / "lab.bin"
    assert answer(capsys, "fragment", tables[0], *signing, "-o", output)["signed"]
    result = tmp_path / "result"
    checked = ("--keys", tmp_path / "keys.toml", "--round", "first", "--out", result)
    answer(capsys, "assemble", output, *checked)
    assert run(["verify", str(result), "--keys", str(tmp_path / "keys.toml")]) == 0
    assert "1 of 1 sites signed" in capsys.readouterr().out


def test_full_precision_needs_json(tables, tmp_path, refused):
    arguments = ["fragment", str(tables[0]), "--full-precision", "-o", str(tmp_path / "x.bin")]
    refused(arguments, "holds evidence in sixteenths", "Drop --full-precision")
