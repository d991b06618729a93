"""Rows that are left out on request: incomplete ones, and those that lie farthest out."""

import html
import json

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc


def table(seed=0, n=400):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(4, 3))
    frames = []
    for label, gain in (("control", 1), ("a", (3, 1, 1)), ("b", (1, 3, 1)), ("c", (1, 1, 3))):
        rows = (rng.normal(size=(n, 3)) * gain) @ G.T
        frames.append(pd.DataFrame(rows, columns=list("wxyz")).assign(regime=label))
    return pd.concat(frames, ignore_index=True)


def with_gaps():
    frame = table()
    frame.loc[[3, 5, 401], "x"] = np.nan
    frame.loc[3, "y"] = np.nan
    return frame


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    with_gaps().to_csv(folder / "lab.csv", index=False)
    return folder


def test_incomplete_rows_are_left_out_on_request_and_counted(study):
    read = jc.read_study(study, missing="drop")
    (client,) = read.clients
    assert client.n_samples == {"control": 398, "a": 399, "b": 400, "c": 400}
    (said,) = (f for f in read.findings if f.check == "incomplete-rows")
    assert "3 rows" in said.message
    assert "2 of 'control', 1 of 'a'" in said.message
    direct = jc.Client.from_table(with_gaps().dropna(), name="lab")
    assert np.array_equal(client.control.covariance, direct.control.covariance)
    table_client = jc.Client.from_table(with_gaps(), name="lab", missing="drop")
    assert np.array_equal(table_client.control.covariance, direct.control.covariance)


def test_incomplete_rows_are_used_on_request_and_the_cost_is_said(study, told, refused):
    read = jc.read_study(study, missing="em")
    (client,) = read.clients
    assert client.n_samples == dict.fromkeys(("control", "a", "b", "c"), 400)
    assert 390 < client.control.n <= 400
    direct = jc.Client.from_table(with_gaps(), name="lab", missing="em")
    assert np.array_equal(client.control.covariance, direct.control.covariance)
    said = json.loads(told("check", study, "--fill-missing", "--json"))
    found = [f for f in said["findings"] if f["check"] == "missing-values"]
    assert "3 of 800 rows have missing values" in found[0]["message"]
    both = ["--drop-missing", "--fill-missing"]
    refused(["check", study, *both], f"{' and '.join(both)} are both given")
    (study / "study.toml").write_text('missing = "em"\n')
    assert jc.read_study(study).clients[0].control.incomplete is not None


def test_the_numbers_stay_with_the_fragment_and_the_result_it_joins(study, tmp_path, told):
    table(1).to_csv(tmp_path / "first.csv", index=False)
    told("recover", tmp_path / "first.csv", "--out", tmp_path / "result")
    piece = tmp_path / "lab.fragment.json"
    told("fragment", study / "lab.csv", "-o", piece, "--drop-missing", "--trim", "0.05")
    said = {f.check: f for f in jc.Fragment.from_json(piece.read_text()).findings}
    assert said["incomplete-rows"].message.endswith(
        "3 rows with missing values: 2 of 'control', 1 of 'a'"
    )
    assert "trimmed-rows" in said
    told("assemble", piece, "--into", tmp_path / "result")
    kept = jc.load_result(tmp_path / "result").diagnostics
    assert said["incomplete-rows"] in kept
    assert "2 of 'control', 1 of 'a'" in html.unescape(
        (tmp_path / "result" / "report.html").read_text()
    )


def test_rows_under_two_interventions_at_once_are_left_out_if_both_are_labels():
    joint = table(seed=1).query("regime == 'a'").assign(regime="a + B")
    with pytest.warns(UserWarning, match=r"'a \+ B': its rows have 2 perturbations") as told:
        read = jc.Client.from_table(pd.concat([table(), joint]), name="lab")
    assert sorted(read.labels) == ["a", "b", "c"]
    assert "ignore" not in str(told[0].message)
    unknown = pd.concat([table().query("regime != 'c'"), joint.assign(regime="a+d")])
    assert sorted(jc.Client.from_table(unknown, name="lab").labels) == ["a", "a+d", "b"]
