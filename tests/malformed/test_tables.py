"""Malformed tables, in text, in Parquet and in memory."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from .tables import csv, good, parquet

Frame = pd.DataFrame


def _with(column: str, row: int, value: object) -> Callable[[Frame], Frame]:
    def spoil(frame: Frame) -> Frame:
        frame = frame.astype({column: object})
        frame.loc[row, column] = value
        return frame

    return spoil


def _regime(row: int, value: object) -> Callable[[Frame], Frame]:
    return _with("regime", row, value)


def _missing_in_one_regime(frame: Frame) -> Frame:
    frame.loc[frame.regime == "b", "x2"] = np.nan
    return frame


def _one_row_of(label: str) -> Callable[[Frame], Frame]:
    def spoil(frame: Frame) -> Frame:
        others = frame[frame.regime != label]
        return pd.concat([others, frame[frame.regime == label].head(1)])

    return spoil


def _every_row_its_own_regime(frame: Frame) -> Frame:
    frame["regime"] = [f"r{i}" for i in range(len(frame))]
    frame.loc[:5, "regime"] = "control"
    return frame


def _decimal_comma(frame: Frame) -> Frame:
    frame["x1"] = [str(v).replace(".", ",") for v in frame.x1]
    return frame


def _rank_deficient(frame: Frame) -> Frame:
    frame["x2"] = 2 * frame.x1
    return frame.drop(columns="x3")


MALFORMED: dict[str, tuple[Callable[[Frame], Frame], tuple[str, ...]]] = {
    "header only": (lambda f: f.head(0), ("no rows",)),
    "no regime column": (lambda f: f.drop(columns="regime"), ("'regime'", "--regime")),
    "no control rows": (lambda f: f[f.regime != "control"], ("control", "--control")),
    "only control rows": (lambda f: f[f.regime == "control"], ("no interventional regime",)),
    "one control row": (_one_row_of("control"), ("'control'", "too few")),
    "a missing value": (_with("x2", 25, None), ("missing", "'x2'", "row 26", "'a'")),
    "nan spelt out": (_with("x2", 3, "nan"), ("missing", "'x2'", "row 4")),
    "an infinite value": (_with("x3", 41, "inf"), ("the value inf", "'x3'", "row 42", "'b'")),
    "minus infinity": (_with("x1", 0, "-inf"), ("the value -inf", "'x1'", "row 1")),
    "text in a feature": (_with("x2", 30, "broken"), ("broken", "--ignore")),
    "a unit in a feature": (_with("x2", 30, "3.5 V"), ("3.5 V",)),
    "a huge value": (_with("x2", 30, "1e200"), ("1e+200", "rescale")),
    "a value beyond floats": (_with("x2", 30, "1e999"), ("'x2'",)),
    "a missing regime": (_regime(30, None), ("row 31", "no regime")),
    "a blank regime": (_regime(30, "   "), ("regime",)),
    "labels that differ by case": (_regime(30, "A"), ("'A'", "case, spaces")),
    "labels that differ by a space": (_regime(30, "a "), ("case, spaces",)),
    "a second spelling of control": (_regime(30, "Control"), ("'Control'", "--control")),
    "a column missing in one regime": (_missing_in_one_regime, ("'x2'", "'b'", "missing")),
    "no features": (lambda f: f[["regime"]], ("no numeric column",)),
    "only text beside the regime": (
        lambda f: f.assign(x1="u", x2="v", x3="w"),
        ("no numeric column",),
    ),
    "more labels than features": (lambda f: f[["regime", "x1"]], ("features", "latents")),
    "a regime per row": (_every_row_its_own_regime, ("features", "54 latents")),
    "rank-deficient features": (_rank_deficient, ("dimension", "2 latents")),
    "constant features": (lambda f: f.assign(x1=1.0, x2=2.0, x3=3.0), ("constant",)),
    "decimal commas": (_decimal_comma, ("decimal comma", "'x1'")),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_csv_file_is_refused(case, tmp_path, refused):
    spoil, says = MALFORMED[case]
    path = csv(spoil(good()), tmp_path / "lab-1.csv")
    refused(["moments", path, "-o", tmp_path / "out.npz"], "lab-1", *says)


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


@pytest.mark.parametrize("case", BYTES)
def test_bytes_that_are_not_a_table_are_refused(case, tmp_path, refused):
    data, says = BYTES[case]
    path = tmp_path / "lab-1.csv"
    path.write_bytes(data)
    refused(["moments", path, "-o", tmp_path / "out.npz"], "lab-1.csv", *says)


# -- Parquet and others -------------------------------------------------------------------------


def _damaged(path: Path) -> None:
    good(5000).to_parquet(path, index=False, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[20_000:24_000] = bytes(4_000)
    path.write_bytes(bytes(data))


def _named_twice(path: Path) -> None:
    columns = [pa.array(["control", "a"]), pa.array([1.0, 2.0]), pa.array([1.0, 2.0])]
    pq.write_table(pa.table(columns, names=["regime", "x", "x"]), path)


def _lacks_a_column(folder: Path) -> None:
    for regime, part in good().groupby("regime"):
        part = part.drop(columns=["regime"] + (["x3"] if regime == "b" else []))
        parquet(part, folder / f"regime={regime}" / "part.parquet")


def _of_another_type(folder: Path) -> None:
    parquet(good(), folder / "one.parquet")
    parquet(good().assign(x2="text"), folder / "two.parquet")


def _cut(path: Path, data: bytes, n: int) -> None:
    path.write_bytes(data[:-n])


FILES: dict[str, tuple[str, Callable[[Path], object], tuple[str, ...]]] = {
    "a truncated Parquet file": (
        "lab-1.parquet",
        lambda p: _cut(p, parquet(good(500), p).read_bytes(), 100),
        ("truncated",),
    ),
    "damaged pages": ("lab-1.parquet", _damaged, ()),
    "text called Parquet": ("lab-1.parquet", lambda p: csv(good(), p), ()),
    "a null in a feature": (
        "lab-1.parquet",
        lambda p: parquet(_with("x2", 4, None)(good()).astype({"x2": float}), p),
        ("'x2'", "row 5", "missing"),
    ),
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


# -- tables in memory ---------------------------------------------------------------------------


IN_MEMORY: dict[str, tuple[Callable[[], object], str]] = {
    "no table": (lambda: 3, "the int cannot be used as a table"),
    "a column named twice": (
        lambda: pd.concat([good(), good()[["x1"]]], axis=1),
        "'x1' 2 times",
    ),
    "numbers and text mixed": (lambda: _with("x2", 3, "oops")(good()), "'oops' among numbers"),
    "no regime column": (lambda: good().drop(columns="regime"), "no column 'regime'"),
    "decimal regimes": (lambda: good().assign(regime=0.5), "decimal"),
    "missing value": (lambda: _with("x2", 3, np.nan)(good()).astype({"x2": float}), "row 4"),
}


@pytest.mark.parametrize("case", IN_MEMORY)
def test_a_malformed_table_in_memory_is_refused(case):
    import jigsaw_crl as jc

    make, says = IN_MEMORY[case]
    with pytest.raises(jc.InputError) as caught:
        jc.Client.from_table(make(), name="lab-1")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
