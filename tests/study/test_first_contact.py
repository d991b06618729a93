"""What a newcomer's tables hold: identifiers, codes for missing values, other spellings, sheets."""

import sys

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc

from .tables import assert_same, frame_of, regimes_of


def test_whole_numbers_that_are_measured_are_used():
    frame = frame_of(regimes_of())
    rng = np.random.default_rng(0)
    # A 16-bit converter repeats itself; one of 24 bits may not in so few rows, which tells nothing.
    frame["adc16"] = rng.normal(3e4, 3e3, len(frame)).round()
    frame["adc24"] = rng.choice(10**7, len(frame), replace=False)
    assert {"adc16", "adc24"} <= set(jc.Client.from_table(frame, name="lab").features)


def _spoilt():
    frame = frame_of(regimes_of())
    frame["x1"] = frame["x1"].astype(object)
    frame.loc[[3, 300], "x1"] = "Bad Input"
    return frame


def test_a_text_among_numbers_may_be_named_as_missing(tmp_path, told):
    path = tmp_path / "lab-1.csv"
    _spoilt().to_csv(path, index=False)
    with pytest.raises(jc.InputError, match=r'na=\[\'Bad Input\'\] .*--na "Bad Input"'):
        jc.read_client(path)
    client = jc.read_client(path, na=["Bad Input"], missing="drop")
    assert sum(client.n_samples.values()) == len(_spoilt()) - 2
    for command in (
        ["moments", "-o", tmp_path / "m"],
        ["fragment", "-o", tmp_path / "f"],
        ["check"],
    ):
        told(*command, path, "--na", "Bad Input", "--drop-missing")
    with pytest.raises(jc.InputError, match=r"'Bad Input' among numbers.*na=\['Bad Input'\]"):
        jc.Client.from_table(_spoilt(), name="lab-1")
    table = jc.Client.from_table(_spoilt(), name="lab-1", na=["Bad Input"], missing="drop")
    assert_same(table, client)


def test_a_site_that_spells_a_label_otherwise_joins_on_every_road(tmp_path, told):
    world, pieces, clients = jc.simulate.setting("A", 0), [], []
    for k in range(3):
        client = world.client(k, n_samples=500, seed=k)
        if k == 2:
            client = client.relabelled({label: label.upper() for label in client.labels})
        clients.append(client)
        pieces.append(jc.save_fragment(jc.recover_fragment(client), tmp_path / f"{k}.json"))
    labels = jc.Study("s", tuple(clients)).labels
    assert jc.assemble(pieces).labels == labels
    assert jc.assemble([jc.Fragment.from_json(p.read_text()) for p in pieces]).labels == labels
    told("assemble", *pieces[:2], "--out", tmp_path / "out")
    told("assemble", pieces[2], "--into", tmp_path / "out")
    for grown in (jc.load_result(tmp_path / "out"), jc.recover(clients[:2]).add(clients[2])):
        assert grown.order.labels == labels
        assert any(f.check == "label-spelling" for f in grown.diagnostics)


@pytest.mark.parametrize("usual", ["normal", "reference", "NT", "untreated"])
def test_a_usual_name_of_the_control_is_suggested(usual):
    frame = frame_of(regimes_of()).replace({"control": usual})
    with pytest.raises(jc.InputError) as caught:
        jc.Client.from_table(frame, name="lab-1")
    assert (f"Is it {usual!r}?" in str(caught.value)) == (usual != "NT")


def test_a_sheet_without_its_library_says_what_to_install(tmp_path, monkeypatch):
    path = tmp_path / "lab-1.xlsx"
    pd.DataFrame().to_pickle(path, compression="zip")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(jc.InputError, match="Run pip install openpyxl, or save the sheet as CSV"):
        jc.read_client(path)
    # It is a client all the same: a study does not go on without it.
    frame_of(regimes_of()).to_csv(tmp_path / "lab-2.csv", index=False)
    with pytest.raises(jc.InputError, match=r"lab-1\.xlsx.*pip install openpyxl"):
        jc.read_study(tmp_path)
