"""Tables of many columns on the command line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

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


def test_moments_and_fragment_of_a_wide_table(tmp_path, frame, capsys):
    table, moments = tmp_path / "lab.parquet", tmp_path / "lab.moments.npz"
    frame.to_parquet(table)
    run("moments", table, "-o", moments)
    out = capsys.readouterr().out
    assert "1000 rows, 510 features, 4 labels" in out
    assert "510 columns are reduced to 20 directions: 4 that hold the latents and 16" in out
    run("fragment", moments, "-o", tmp_path / "a.json")
    assert "reduced-columns" in capsys.readouterr().out
    run("fragment", table, "-o", tmp_path / "b.json")
    sent = [json.loads((tmp_path / f"{x}.json").read_text()) for x in "ab"]
    assert sent[0]["blocks"] == sent[1]["blocks"]
    assert "gene" not in (tmp_path / "a.json").read_text()
