"""Malformed tables, in text, in Parquet and in memory."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jigsaw_crl as jc

from .tables import csv, good, parquet

Frame = pd.DataFrame


def _with(column, row, value):
    def spoil(frame):
        frame = frame.astype({column: object})
        frame.loc[row, column] = value
        return frame

    return spoil


def _regime(row, value):
    return _with("regime", row, value)


def _one_row_of(label):
    def spoil(frame):
        others = frame[frame.regime != label]
        return pd.concat([others, frame[frame.regime == label].head(1)])

    return spoil


def _rank_deficient(frame):
    frame["x2"] = 2 * frame.x1
    return frame.drop(columns="x3")


MALFORMED: dict[str, tuple[Callable[[Frame], Frame], tuple[str, ...]]] = {
    "only control rows": (lambda f: f[f.regime == "control"], ("no interventional regime",)),
    "one control row": (_one_row_of("control"), ("'control'", "too few")),
    "nan spelt out": (_with("x2", 3, "nan"), ("missing", "'x2'", "row 4")),
    "a unit in a feature": (_with("x2", 30, "3.5 V"), ("3.5 V",)),
    "a huge value": (_with("x2", 30, "1e200"), ("1e+200", "rescale")),
    "a blank regime": (_regime(30, "   "), ("regime",)),
    "labels that differ by case": (_regime(30, "A"), ("'A'", "case, spaces")),
    "labels that differ by a space": (_regime(30, "a "), ("case, spaces",)),
    "a second spelling of control": (_regime(30, "Control"), ("'Control'", "--control")),
    "no features": (lambda f: f[["regime"]], ("no numeric column",)),
    "only text beside the regime": (
        lambda f: f.assign(x1="u", x2="v", x3="w"),
        ("no numeric column",),
    ),
    "rank-deficient features": (_rank_deficient, ("dimension", "2 latents")),
    "constant features": (lambda f: f.assign(x1=1.0, x2=2.0, x3=3.0), ("constant",)),
}


BYTES = {
    "an empty file": (b"", ("empty",)),
    "blank lines": (b"\n\n  \n", ("empty",)),
    "a picture": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 20, ("lab-1",)),
    "control characters": ("regime,gr\x01öße\ncontrol,1\n".encode("latin-1"), ("UTF-8",)),
    "a column named twice": (b"regime,x,x\ncontrol,1,2\na,3,4\n", ("'x'", "twice")),
    "a row that is too short": (b"regime,x,y\ncontrol,1,2\ncontrol,3\na,1,2\n", ("columns",)),
    "a row that is too long": (b"regime,x,y\ncontrol,1,2\ncontrol,3,4,5\na,1,2\n", ("columns",)),
    "a line above the header": (
        b"# export of Monday\nregime,x,y\ncontrol,1,2\na,3,4\n",
        ("first line names 1 column", "3 values", "delete lines above"),
    ),
    "a row of units": (
        b"regime,x\n,\ncontrol,1\ncontrol,2\na,3\na,4\n",
        ("row 1 has no regime", "If it holds units"),
    ),
    "zero bytes": (b"regime,x\ncontrol,1\0\n", ("text",)),
}


@pytest.mark.parametrize("case", [*MALFORMED, *BYTES])
def test_a_malformed_csv_file_is_refused(case, tmp_path, refused):
    content, says = (MALFORMED | BYTES)[case]
    path = tmp_path / "lab-1.csv"
    path.write_bytes(content) if case in BYTES else csv(content(good()), path)
    refused(["moments", path, "-o", tmp_path / "out.npz"], "lab-1.csv", *says)


# -- Parquet and others -------------------------------------------------------------------------
def _damaged(path):
    good(5000).to_parquet(path, index=False, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[20_000:24_000] = bytes(4_000)
    path.write_bytes(bytes(data))


def _named_twice(path):
    columns = [pa.array(["control", "a"]), pa.array([1.0, 2.0]), pa.array([1.0, 2.0])]
    pq.write_table(pa.table(columns, names=["regime", "x", "x"]), path)


def _lacks_a_column(folder):
    for regime, part in good().groupby("regime"):
        part = part.drop(columns=["regime"] + (["x3"] if regime == "b" else []))
        parquet(part, folder / f"regime={regime}" / "part.parquet")


def _of_another_type(folder):
    parquet(good(), folder / "one.parquet")
    parquet(good().assign(x2="text"), folder / "two.parquet")


def _cut(path, data, n):
    path.write_bytes(data[:-n])


FILES: dict[str, tuple[str, Callable[[Path], object], tuple[str, ...]]] = {
    "a truncated Parquet file": (
        "lab-1.parquet",
        lambda p: _cut(p, parquet(good(500), p).read_bytes(), 100),
        ("truncated",),
    ),
    "damaged pages": ("lab-1.parquet", _damaged, ()),
    "text called Parquet": ("lab-1.parquet", lambda p: csv(good(), p), ()),
    "text called AnnData": ("lab-1.h5ad", lambda p: csv(good(), p), ("AnnData",)),
    "decimal regimes": (
        "lab-1.parquet",
        lambda p: parquet(good().assign(regime=0.5), p),
        ("regime", "text"),
    ),
    "a column named twice": ("lab-1.parquet", _named_twice, ("'x'", "twice")),
    "a part without a column": ("lab-1", _lacks_a_column, ("'x3'", "regime=b")),
    "a part of another type": ("lab-1", _of_another_type, ("'x2'", "two.parquet")),
    "a folder without parts": ("lab-1", Path.mkdir, ("Parquet",)),
    "a truncated gzip file": (
        "lab-1.csv.gz",
        lambda p: _cut(p, gzip.compress(good(2000).to_csv(index=False).encode()), 2000),
        (),
    ),
    "no file": ("lab-1.csv", lambda _: None, ("no such",)),
    "a line break in the path": ("lab-1\n.csv", lambda _: None, ("no such",)),
    "an unknown ending": ("lab-1.ods", lambda p: p.write_bytes(b"PK"), (".csv",)),
    "a sheet": ("lab-1.xlsx", lambda p: p.write_bytes(b"PK"), ("Save the sheet as CSV",)),
}


@pytest.mark.parametrize("case", FILES)
def test_a_malformed_file_is_refused(case, tmp_path, refused):
    name, make, says = FILES[case]
    make(tmp_path / name)
    refused(["moments", tmp_path / name, "-o", tmp_path / "out.npz"], "lab-1", *says)


def test_what_is_no_table_is_refused():
    with pytest.raises(jc.InputError, match="the int cannot be used as a table"):
        jc.Client.from_table(3, name="lab-1")
