"""Tables of many columns on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli

from ..client.wide_rows import wide_regimes


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    regimes = wide_regimes(510, 200, latents=4)
    rows = np.vstack(list(regimes.values()))
    table = pd.DataFrame(rows, columns=[f"gene {i}" for i in range(510)])
    return table.assign(regime=np.repeat(list(regimes), 200))


def run(*arguments: object) -> None:
    assert cli.run([str(a) for a in arguments]) == 0


def test_moments_fragment_and_latents_of_a_wide_table(tmp_path, frame, capsys):
    table, moments = tmp_path / "lab.parquet", tmp_path / "lab.moments.npz"
    frame.to_parquet(table)
    run("moments", table, "-o", moments)
    out = capsys.readouterr().out
    assert "1000 rows, 510 features, 4 labels" in out
    assert "510 columns are reduced to 20 directions: 4 that hold the latents and 16" in out
    own = tmp_path / "own.json"
    run("fragment", moments, "-o", tmp_path / "a.json", "--private", own)
    assert "reduced-columns" in capsys.readouterr().out
    run("fragment", table, "-o", tmp_path / "b.json")
    sent = [json.loads((tmp_path / f"{x}.json").read_text()) for x in "ab"]
    assert sent[0]["blocks"] == sent[1]["blocks"]
    assert "gene" not in (tmp_path / "a.json").read_text()
    run("latents", own, table, "-o", tmp_path / "z.csv")
    z = pd.read_csv(tmp_path / "z.csv")
    expected = jc.load_private(own).transform(frame.drop(columns="regime"))
    np.testing.assert_allclose(z.drop(columns="regime"), expected, rtol=1e-9)


def test_later_rows_are_added_along_the_earlier_directions(tmp_path, frame, capsys):
    for name, part in (("day-1", frame[::2]), ("day-2", frame[1::2])):
        part.to_csv(tmp_path / f"{name}.csv", index=False)
    first, both = tmp_path / "first.npz", tmp_path / "both.npz"
    run("moments", tmp_path / "day-1.csv", "--name", "lab", "-o", first)
    capsys.readouterr()
    add = ("--name", "lab", "--add-to", first, "-o", both, "--json")
    run("moments", tmp_path / "day-2.csv", *add)
    said = json.loads(capsys.readouterr().out)
    assert (said["n_features"], said["n_directions"]) == (510, 20)
    assert sum(said["n_samples"].values()) == 1000
    matrices = [jc.read_client(x).reduction.matrix for x in (first, both)]
    np.testing.assert_array_equal(*matrices)
