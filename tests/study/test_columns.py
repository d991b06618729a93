"""Which columns are features: text, booleans and constants are ignored, complex numbers refused."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jigsaw_crl as jc

from .tables import assert_same, client_of, frame_of, read_with_findings, regimes_of, write_table


def _with_extra(extra):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["left", "right"])
    return frame.assign(extra=extra, regime=["control"] * 40 + ["pump"] * 20)


BOOLEANS = np.arange(60) % 2 == 0


@pytest.mark.parametrize("kind", ["bool", "boolean", "object"])
@pytest.mark.parametrize("convert", [lambda x: x, pl.from_pandas, pa.Table.from_pandas])
def test_booleans_in_a_table_are_ignored_with_a_warning(kind, convert):
    frame = convert(_with_extra(pd.Series(BOOLEANS).astype(kind)))
    with pytest.warns(UserWarning, match="'lab': the column 'extra' .* boolean.* 0 and 1"):
        client = jc.Client.from_table(frame, name="lab")
    assert client.features == ("left", "right")


@pytest.mark.parametrize("kind", ["complex128", "object"])
def test_complex_numbers_in_a_table_are_refused(kind):
    frame = _with_extra(pd.Series(BOOLEANS + 1j).astype(kind))
    with pytest.raises(jc.InputError, match="column 'extra' holds complex numbers"):
        jc.Client.from_table(frame, name="lab")


def test_complex_rows_are_refused():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    for control, other in ((rows + 1j, rows), (rows, pd.DataFrame(rows + 1j))):
        with pytest.raises(jc.InputError, match="complex numbers"):
            jc.Client.from_samples("lab", observational=control, interventions={"pump": other})


def test_text_and_constant_columns_are_ignored_with_a_finding(tmp_path, reference):
    frame = frame_of(regimes_of()).assign(batch="b1", shift=3.25, when=pd.Timestamp("2026-01-01"))
    for kind in ("csv", "parquet"):
        path = tmp_path / f"lab-1.{kind}"
        (frame.to_csv if kind == "csv" else frame.to_parquet)(path, index=False)
        client, findings = read_with_findings(path)
        assert_same(client, reference)
        text = " ".join(f.message for f in findings)
        assert all(name in text for name in ("batch", "shift", "when"))


@pytest.mark.parametrize("convert", [lambda x: x, pl.from_pandas, pa.Table.from_pandas])
def test_text_and_dates_in_a_table_are_named_in_one_warning(convert):
    frame = _with_extra("morning").assign(when=pd.Timestamp("2026-01-01"))
    with pytest.warns(UserWarning, match="not used as a feature") as caught:
        client = jc.Client.from_table(convert(frame), name="lab")
    assert client.features == ("left", "right")
    (warning,) = caught
    assert "'extra'" in str(warning.message)
    assert "'when'" in str(warning.message)
    assert "ignore=" in str(warning.message)
    assert warning.filename == __file__


def test_a_column_of_a_table_can_be_ignored_without_a_warning():
    frame = _with_extra("morning").assign(noise=np.sin(np.arange(60)))
    client = jc.Client.from_table(frame, name="lab", ignore=["extra", "noise"])
    assert client.features == ("left", "right")
    with pytest.raises(jc.InputError, match=r"no column 'nois' to ignore\. Did you mean 'noise'"):
        jc.Client.from_table(frame, name="lab", ignore=["nois"])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_regime_column_of_sorted_rows_is_named_with_its_first_value(ending, tmp_path):
    # The first rows that are looked at have one regime, and another column has several values.
    frame = frame_of(regimes_of(3_000)).rename(columns={"regime": "Campaign"})
    frame = frame.replace({"control": "no change"})
    frame = frame.assign(operator=np.resize(["ann", "ben"], len(frame)))
    path = tmp_path / f"lab-1.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    with pytest.raises(jc.InputError) as caught:
        jc.read_client(path)
    text = str(caught.value)
    assert text.endswith("hold it: 'Campaign' (no change), 'operator' (ann, ben).")
    assert "`jigsaw init` drafts" in text
    assert "no control rows" not in text
    with pytest.raises(jc.InputError, match=r"with regime=\. Columns that may hold it: 'Campaign'"):
        jc.Client.from_table(frame, name="lab-1")


@pytest.mark.parametrize(
    "kind", ["csv", "parquet", "npz", "h5ad", "arrays", "arrays, features", "arrays, columns"]
)
def test_a_column_of_a_file_can_be_ignored(kind, tmp_path):
    regimes, more = regimes_of(), []
    path = tmp_path / "lab-1.npz"
    if kind.startswith("arrays"):
        names, more = ("x1", "x2", "x3", "x4"), ["notes"]
        named = {kind.split(", ")[1]: np.array(names)} if "," in kind else {}
        np.savez(path, **regimes, **named, notes=np.array(["hm"]))
    else:
        path = write_table(regimes, tmp_path / f"lab-1.{kind}", kind)
    client = jc.read_client(path, ignore=["x2", *more])
    assert client.features == ("x1", "x3", "x4")
    assert_same(client, client_of({k: v[:, [0, 2, 3]] for k, v in regimes.items()}))
    with pytest.raises(jc.InputError, match="no column 'x22' to ignore"):
        jc.read_client(path, ignore=["x22", *more])
