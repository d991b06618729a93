"""CSV and Parquet files."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import read_study

from .tables import assert_same, frame_of, regimes_of


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("lab-1.csv", {"sep": ";", "index": False}),
        ("lab-1.tsv", {"sep": "\t", "index": False}),
        ("lab-1.csv.gz", {"encoding": "utf-8-sig", "index": False}),
        ("lab-1.csv", {"index": True}),
    ],
    ids=["semicolons", "tabs", "compressed, with a byte order mark", "with pandas' index"],
)
def test_csv_files_may_be_written_in_several_ways(name, written, tmp_path, reference):
    frame_of(regimes_of()).to_csv(tmp_path / name, **written)
    assert_same(jc.read_client(tmp_path / name), reference)


def test_names_and_texts_of_a_csv_file_may_hold_line_breaks(tmp_path, reference):
    frame = frame_of(regimes_of()).assign(note='two\nlines, "quoted"')
    names = {name: f"{name}\n[V]" for name in reference.features}
    frame.rename(columns=names).to_csv(tmp_path / "lab-1.csv", index=False)
    client = jc.read_client(tmp_path / "lab-1.csv", ignore=["note"])
    assert client.features == tuple(names.values())
    np.testing.assert_array_equal(client.control.mean, reference.control.mean)


def test_a_partitioned_folder_is_one_client(tmp_path, reference):
    frame = frame_of(regimes_of())
    for regime, part in frame.groupby("regime", sort=False):
        folder = tmp_path / "lab-1" / f"regime={regime}"
        folder.mkdir(parents=True)
        half = len(part) // 2
        for i, piece in enumerate((part[:half], part[half:])):
            piece.drop(columns="regime").to_parquet(folder / f"{i}.parquet", index=False)
    assert_same(jc.read_client(tmp_path / "lab-1"), reference)
    assert read_study(tmp_path / "lab-1").clients[0].name == "lab-1"
    assert jc.read_study(tmp_path).clients[0].name == "lab-1"


@pytest.mark.parametrize("delimiter", [";", "\t", ","])
def test_decimal_commas_are_read(delimiter, tmp_path, reference):
    frame = frame_of(regimes_of()).assign(site="north")
    frame.to_csv(tmp_path / "lab-1.csv", index=False, sep=delimiter, decimal=",")
    with pytest.warns(UserWarning, match="the column 'site' is text"):
        assert_same(jc.read_client(tmp_path / "lab-1.csv"), reference)


def test_three_decimals_after_a_comma_are_read_between_semicolons_only(tmp_path):
    frame = frame_of(regimes_of()).round(3)
    text = frame.to_csv(index=False, sep=";", decimal=",", float_format="%.3f")
    (tmp_path / "a.csv").write_text(text)
    client = jc.read_client(tmp_path / "a.csv", name="lab-1")
    assert_same(client, jc.Client.from_table(frame, name="lab-1"))
    rows = "\n".join(f"{r}\t1,{i:03d}\t2,{i:03d}" for r in ("control", "a") for i in range(200))
    (tmp_path / "b.csv").write_text(f"regime\tx\ty\n{rows}\n")
    with pytest.raises(jc.InputError, match=r"'x' \('1,000'\) may be decimal commas or separate"):
        jc.read_client(tmp_path / "b.csv")


def test_commas_and_points_in_one_file_are_refused(tmp_path):
    frame = frame_of(regimes_of())
    frame["x2"] = [str(v).replace(".", ",") for v in frame.x2]
    frame.to_csv(tmp_path / "a.csv", index=False, sep=";")
    with pytest.raises(jc.InputError, match=r"'x2' has decimal commas .* and 'x1' decimal points"):
        jc.read_client(tmp_path / "a.csv")
