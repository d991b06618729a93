"""A site's own file keeps the latent directions; nothing else does."""

from __future__ import annotations

import json
import stat

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run

SENSORS = [f"sensor {i}" for i in range(8)]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    control, regimes = jc.simulate.setting("A", 0).rows(0, 400)
    tables = {"control": control, **regimes}
    return pd.concat(
        [pd.DataFrame(x + 7, columns=SENSORS).assign(regime=name) for name, x in tables.items()],
        ignore_index=True,
    )


@pytest.fixture(scope="module")
def fragment(frame) -> jc.Fragment:
    return jc.recover_fragment(jc.Client.from_table(frame, name="lab-1"))


def test_latents_are_the_same_after_a_restart(fragment, frame, tmp_path):
    file = jc.save_private(fragment, tmp_path / "lab-1.private.json")
    again = jc.load_private(file)
    pd.testing.assert_frame_equal(
        again.transform(frame[SENSORS]), fragment.transform(frame[SENSORS])
    )
    assert again.to_json() == fragment.to_json()
    assert again.features == fragment.features
    with pytest.raises(jc.InputError, match="in another order"):
        again.transform(frame[SENSORS[::-1]])


def test_only_the_owner_can_read_the_file_and_others_files_are_kept(fragment, tmp_path):
    path = tmp_path / "lab-1.private.json"
    jc.save_private(fragment, path)
    jc.save_private(fragment, path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("notes")
    with pytest.raises(jc.InputError, match="exists and is not a private fragment"):
        jc.save_private(fragment, path)
    assert path.read_text() == "notes"
    jc.save_private(fragment, path, force=True)


def test_a_fragment_that_was_sent_cannot_be_saved_with_a_basis(fragment, tmp_path):
    sent = jc.Fragment.from_json(fragment.to_json())
    with pytest.raises(jc.InputError, match="no latent basis to save"):
        jc.save_private(sent, tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(format="jigsaw-crl/fragment"), "not a jigsaw-crl private fragment"),
        (lambda d: d.update(rows=[1]), "unknown field 'rows'"),
        (lambda d: d["centre"].pop(), "differ in length"),
        (lambda d: d["basis"].pop(), "one row per label"),
        (lambda d: d["basis"][0].__setitem__(0, "1"), "is not valid"),
    ],
)
def test_a_spoilt_file_is_refused_in_one_line(fragment, tmp_path, change, says):
    path = jc.save_private(fragment, tmp_path / "p.json")
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(jc.InputError, match=says) as caught:
        jc.load_private(path)
    assert "\n" not in str(caught.value)
    assert "p.json" in str(caught.value)


def test_the_coordinator_does_not_take_it_for_a_fragment(fragment, tmp_path, capsys):
    path = jc.save_private(fragment, tmp_path / "p.json")
    assert run(["assemble", str(path)]) == 2
    assert "not a jigsaw-crl fragment" in capsys.readouterr().err


def test_the_command_line_gives_the_latents_of_each_row(fragment, frame, tmp_path, capsys):
    table, private, out = (tmp_path / n for n in ("lab-1.csv", "p.json", "z.csv"))
    # Further columns, and columns in another order, are found by name.
    frame.assign(operator="x")[["operator", "regime", *SENSORS[::-1]]].to_csv(table, index=False)
    shared = tmp_path / "f.json"
    assert run(["fragment", str(table), "-o", str(shared), "--private", str(private)]) == 0
    assert "basis" not in shared.read_text()
    assert run(["latents", str(private), str(table), "-o", str(out)]) == 0
    z = pd.read_csv(out)
    own = jc.load_private(private)
    assert z.columns.tolist() == ["regime", *own.labels]
    assert z.regime.tolist() == frame.regime.tolist()
    expected = own.transform(frame[list(own.features)]).to_numpy()
    np.testing.assert_allclose(z[list(own.labels)].to_numpy(), expected, rtol=1e-12, atol=1e-12)
    frame.drop(columns="sensor 3").to_csv(table, index=False)
    capsys.readouterr()
    assert run(["latents", str(private), str(table), "-o", str(tmp_path / "other.csv")]) == 2
    assert "columns are missing: sensor 3" in capsys.readouterr().err
    assert not (tmp_path / "other.csv").exists()
