"""CSV and Parquet files."""

from __future__ import annotations

import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import read_any

from .tables import assert_same, frame_of, regimes_of


@pytest.mark.parametrize(("delimiter", "name"), [(";", "a.csv"), ("\t", "a.tsv")])
def test_csv_files_may_use_semicolons_or_tabs(delimiter, name, tmp_path, reference):
    frame_of(regimes_of()).to_csv(tmp_path / name, index=False, sep=delimiter)
    assert_same(jc.read_client(tmp_path / name, name="lab-1"), reference)


def test_csv_files_may_be_compressed_and_start_with_a_byte_order_mark(tmp_path, reference):
    frame_of(regimes_of()).to_csv(tmp_path / "lab-1.csv.gz", index=False, encoding="utf-8-sig")
    assert_same(jc.read_client(tmp_path / "lab-1.csv.gz"), reference)


def test_a_written_pandas_index_is_ignored(tmp_path, reference):
    frame_of(regimes_of()).to_csv(tmp_path / "lab-1.csv")
    assert_same(jc.read_client(tmp_path / "lab-1.csv"), reference)


def test_regimes_may_be_whole_numbers(tmp_path):
    frame = frame_of(regimes_of())
    frame["regime"] = frame.regime.map({"control": 0, "pump": 1, "valve": 2})
    frame.to_parquet(tmp_path / "lab-1.parquet", index=False)
    client = jc.read_client(tmp_path / "lab-1.parquet", control="0")
    assert client.labels == ("1", "2")


def test_a_partitioned_folder_is_one_client(tmp_path, reference):
    frame = frame_of(regimes_of())
    for regime, part in frame.groupby("regime", sort=False):
        folder = tmp_path / "lab-1" / f"regime={regime}"
        folder.mkdir(parents=True)
        half = len(part) // 2
        for i, piece in enumerate((part[:half], part[half:])):
            piece.drop(columns="regime").to_parquet(folder / f"{i}.parquet", index=False)
    assert_same(jc.read_client(tmp_path / "lab-1"), reference)
    assert read_any(tmp_path / "lab-1").clients[0].name == "lab-1"
    assert jc.read_study(tmp_path).clients[0].name == "lab-1"
