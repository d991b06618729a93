"""`jigsaw init` drafts a manifest with which the folder can be read at once."""

import tomllib

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run
from jigsaw_crl.study.drafting import draft_manifest
from tests.malformed.tables import claim_page, parquet
from tests.study.tables import frame_of, regimes_of


@pytest.fixture
def messy(tmp_path):
    """Three sites that write everything in their own way."""
    rng = np.random.default_rng(0)
    north, south, west = (frame_of(regimes_of(seed=k)) for k in range(3))
    n = len(north)
    north["x1"] = north["x1"].astype(object)
    north.loc[::50, "x1"] = "Bad Input"
    north.loc[5:8, "x2"] = -9999
    north["ticket"] = rng.permutation(10 * n)[:n]
    north["firmware"] = 3
    north["time"] = pd.date_range("2024-01-01", periods=n, freq="min").astype(str)
    north.to_csv(tmp_path / "north.csv", index=False)
    south = south.rename(columns={"regime": "Mode", "x3": "größe"})
    south["Mode"] = south["Mode"].map({"control": "Baseline", "pump": "PUMP", "valve": "Valve"})
    south["operator"] = "Jörg"
    south.loc[3, "Mode"] = "baseline"
    south.to_csv(tmp_path / "south.csv", sep=";", decimal=",", index=False, encoding="cp1252")
    west["regime"] = west["regime"].map({"control": "none", "pump": "pump", "valve": "valve"})
    west.rename(columns={"regime": "arm"}).to_parquet(tmp_path / "west.parquet")
    return tmp_path


def test_the_draft_reads_tables_that_are_written_in_different_ways(messy):
    with pytest.raises(jc.InputError):
        jc.read_study(messy)
    assert run(["init", str(messy)]) == 0
    drafted = tomllib.loads((messy / "study.toml").read_text())
    assert set(drafted["ignore"]) == {"time", "operator"}
    assert drafted["rename"] == {"PUMP": "pump", "Valve": "valve"}
    south, west = (drafted["clients"].get(x, {}) for x in ("south", "west"))
    assert (drafted["na"], drafted["missing"]) == (["Bad Input"], "drop")
    lines = (messy / "study.toml").read_text().splitlines()
    assert lines[4] == f'name = "{messy.name}"'
    # The line about hard interventions holds for all clients as soon as it is no comment.
    lines = [x.removeprefix("# ") if "interventions =" in x else x for x in lines]
    assert tomllib.loads("\n".join(lines)) == {"interventions": "hard", **drafted}
    named = (south["regime"], south["control"], south["rename"])
    assert named == ("Mode", "Baseline", {"baseline": "Baseline"})
    assert (west["regime"], west["control"]) == ("arm", "none")
    study = jc.read_study(messy)
    assert study.labels == ("pump", "valve")
    assert study["north"].n_samples["control"] == 200 - len(range(0, 200, 50))
    assert study["south"].n_samples["Baseline"] == 200
    assert study["south"].features == ("x1", "x2", "größe", "x4")
    assert run(["check", str(messy)]) == 0


def test_a_manifest_that_is_there_is_never_replaced(messy, refused):
    (messy / "study.toml").write_text("# checked by Ann\n")
    refused(["init", messy], "study.toml': it is there already")


def test_labels_of_other_tables_tell_the_regime_column(tmp_path):
    frame_of(regimes_of()).to_csv(tmp_path / "clear.csv", index=False)
    other = frame_of(regimes_of(seed=1)).rename(columns={"regime": "kind"})
    other["kind"] = other["kind"].map({"control": "idle", "pump": "Pump", "valve": "valve"})
    other["crew"] = np.resize(["red", "blue"], len(other))
    other[["crew", "kind", "x1", "x2", "x3", "x4"]].to_csv(tmp_path / "other.csv", index=False)
    drafted = tomllib.loads(draft_manifest(tmp_path).text)
    assert drafted["clients"]["other"]["regime"] == "kind"


def test_values_that_are_measured_are_no_codes(tmp_path):
    """What holds a digit may be a number in another writing; the reader names it."""
    frame = frame_of(regimes_of())
    frame["x1"] = frame["x1"].astype(object)
    frame.loc[3, "x1"] = "0x1F"
    frame.to_csv(tmp_path / "lab.csv", index=False)
    drafted = tomllib.loads(draft_manifest(tmp_path).text)
    assert not {"na", "missing", "ignore", "clients"} & set(drafted)
    with pytest.raises(jc.InputError, match="row 4 holds '0x1F' among numbers"):
        jc.read_study(tmp_path)


def test_brackets_tell_units_and_words_do_not(tmp_path):
    names = {"x1": "speed [m/s]", "x2": "mm_s", "x3": "temp (C)"}
    frame_of(regimes_of()).rename(columns=names).to_csv(tmp_path / "lab.csv", index=False)
    drafted = tomllib.loads(draft_manifest(tmp_path).text)
    assert drafted["units"] == {"speed [m/s]": "m/s", "temp (C)": "C"}


def test_a_sheet_is_drafted_as_other_tables_are(tmp_path, monkeypatch):
    frame = frame_of(regimes_of()).rename(columns={"regime": "SETPOINT"})
    frame = frame.replace({"control": "NONE"}).assign(operator="a.b")
    frame["x1"] = frame["x1"].astype(object)
    frame.loc[::50, "x1"] = "Bad Input"
    pd.DataFrame().to_pickle(tmp_path / "west.xlsx", compression="zip")

    def read(*_, na_values, **__):
        return frame.mask(frame.isin([x for x in na_values if x]))

    monkeypatch.setattr(pd, "read_excel", read)
    assert run(["init", str(tmp_path)]) == 0
    drafted = tomllib.loads((tmp_path / "study.toml").read_text())
    assert (drafted["regime"], drafted["control"]) == ("SETPOINT", "NONE")
    assert (drafted["na"], drafted["ignore"]) == (["Bad Input"], ["operator"])
    assert jc.read_study(tmp_path).labels == ("pump", "valve")


def test_a_table_that_cannot_be_drafted_is_named_once_with_the_reason(tmp_path, told):
    frame = frame_of(regimes_of())
    frame.to_csv(tmp_path / "north.csv", index=False)
    texts = {"a": np.resize(["x", "y"], len(frame)), "b": np.resize(["u", "v"], len(frame))}
    frame.drop(columns="regime").assign(**texts).to_csv(tmp_path / "south.csv", index=False)
    _, line = told("init", tmp_path).splitlines()
    assert "it is not clear which column holds the regime ('a' holds x, y; 'b' holds u, v)" in line
    (tmp_path / "south.csv").unlink()
    (tmp_path / "study.toml").unlink()
    claim_page(parquet(frame, tmp_path / "west.parquet"))
    assert told("init", tmp_path).count("west: ") == 1


def test_a_control_that_only_has_most_rows_is_called_a_guess(tmp_path, told):
    regimes = regimes_of()
    frame = pd.concat([frame_of(regimes), frame_of(regimes).query("regime == 'control'")])
    frame.to_csv(tmp_path / "north.csv", index=False)
    frame.replace({"control": "as usual"}).to_csv(tmp_path / "south.csv", index=False)
    said = "the control is a guess, the value with most rows: 'as usual' (south)"
    assert said in told("init", tmp_path)
    assert f"# {said}" in (tmp_path / "study.toml").read_text()


def test_a_table_in_parts_whose_columns_have_several_types_is_drafted(tmp_path):
    rng = np.random.default_rng(0)
    for regime in ("control", "pump"):
        part = tmp_path / "south" / f"regime={regime}"
        part.mkdir(parents=True)
        rows = rng.normal(size=(200, 3)) * 10
        rows[:, 0] = rows[:, 0].round()
        frame = pd.DataFrame(rows, columns=["x", "y", "z"])
        frame.astype({"x": int} if regime == "control" else {}).to_parquet(part / "0.parquet")
    assert run(["init", str(tmp_path)]) == 0
    assert jc.read_study(tmp_path).labels == ("pump",)


def test_a_column_without_values_is_ignored(tmp_path):
    frame_of(regimes_of()).assign(remark="").to_csv(tmp_path / "north.csv", index=False)
    with pytest.raises(jc.InputError, match="no row has a value in 'remark'"):
        jc.read_study(tmp_path)
    assert run(["init", str(tmp_path)]) == 0
    text = (tmp_path / "study.toml").read_text()
    assert '"remark",  # empty' in text
    assert "missing" not in tomllib.loads(text)
    assert jc.read_study(tmp_path)["north"].n_samples["control"] == 200


def test_a_label_that_may_be_misspelt_is_drafted_as_a_question(tmp_path):
    for name, label in {"north": "pump", "south": "pump", "west": "pupm"}.items():
        frame_of(regimes_of()).replace({"regime": {"pump": label}}).to_csv(
            tmp_path / f"{name}.csv", index=False
        )
    assert run(["init", str(tmp_path)]) == 0
    text = (tmp_path / "study.toml").read_text()
    assert '# "pupm" = "pump"  # is it a misspelling?' in text
    assert not tomllib.loads(text)["rename"]
