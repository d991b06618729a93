"""Columns that are no real numbers: truth values are left out and said, complex ones refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jigsaw_crl as jc


def _with_extra(extra) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 2)), columns=["left", "right"])
    return frame.assign(extra=extra, regime=["control"] * 40 + ["pump"] * 20)


TRUTHS = np.arange(60) % 2 == 0


@pytest.mark.parametrize("kind", ["bool", "boolean", "object"])
@pytest.mark.parametrize("convert", [lambda x: x, pl.from_pandas, pa.Table.from_pandas])
def test_truth_values_in_a_table_are_ignored_with_a_warning(kind, convert):
    frame = convert(_with_extra(pd.Series(TRUTHS).astype(kind)))
    with pytest.warns(UserWarning, match="'lab': the column 'extra' .* boolean.* 0 and 1"):
        client = jc.Client.from_table(frame, name="lab")
    assert client.features == ("left", "right")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_truth_values_in_a_file_are_ignored_with_a_warning_or_a_finding(ending, tmp_path):
    path = tmp_path / f"lab.{ending}"
    frame = _with_extra(TRUTHS)
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    with pytest.warns(UserWarning, match="the column 'extra' .* boolean"):
        jc.read_client(path)
    (finding,) = jc.read_study(tmp_path).findings
    assert finding.check == "ignored-column"
    assert "boolean" in finding.message


@pytest.mark.parametrize("kind", ["complex128", "object"])
def test_complex_numbers_in_a_table_are_refused(kind):
    frame = _with_extra(pd.Series(TRUTHS + 1j).astype(kind))
    with pytest.raises(jc.InputError, match="column 'extra' holds complex numbers"):
        jc.Client.from_table(frame, name="lab")


def test_complex_rows_are_refused():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    for control, other in ((rows + 1j, rows), (rows, pd.DataFrame(rows + 1j))):
        with pytest.raises(jc.InputError, match="complex numbers"):
            jc.Client.from_samples("lab", observational=control, interventions={"pump": other})
