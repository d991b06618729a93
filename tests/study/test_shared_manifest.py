"""One study.toml for all sites, values that stand for missing ones, and spellings of one label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli


def write(folder, name, rename=None, rows=200):
    control, regimes = jc.simulate.setting("A", 0).rows(0, rows)
    parts = [("control", control), *regimes.items()]
    frame = pd.concat(
        [pd.DataFrame(x).add_prefix("s").assign(regime=(rename or {}).get(r, r)) for r, x in parts]
    )
    frame.to_csv(folder / f"{name}.csv", index=False)
    return frame


MANIFEST = """
[clients.lab-1]
n_latent = 4
[clients.lab-2]
file = "second.csv"
[knowledge]
ancestor = ["z1 -> z4"]
"""


def test_a_site_uses_the_manifest_of_the_whole_study(tmp_path, capsys):
    write(tmp_path, "lab-1")
    (tmp_path / "study.toml").write_text(MANIFEST)
    for path in (tmp_path / "lab-1.csv", tmp_path / "study.toml"):
        out = tmp_path / "out.json"
        assert cli.run(["fragment", str(path), "-o", str(out)]) == 0
        assert jc.read_fragment(out).client == "lab-1"
    capsys.readouterr()
    with pytest.raises(jc.InputError, match="delete this table if the site left"):
        jc.read_study(tmp_path)
    (tmp_path / "study.toml").write_text("[clients.lab-1]\n[clients.lab-2]\n")
    with pytest.raises(jc.InputError, match="delete this table if the site left"):
        jc.read_study(tmp_path)


def test_numbers_with_a_sign_are_other_labels():
    rng = np.random.default_rng(0)
    regimes = {name: rng.normal(size=(30, 5)) for name in ("-1", "1", "a-1", "a1")}
    client = jc.Client.from_samples("x", observational=rng.normal(size=(30, 5)),
                                    interventions=regimes)  # fmt: skip
    assert set(client.labels) == set(regimes)
