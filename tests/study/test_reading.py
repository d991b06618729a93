"""Every file format gives the same client; broken files give an error."""

import string

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jigsaw_crl as jc

from .tables import assert_same, client_of, frame_of, regimes_of, write_table

SLOW_OR_SHARED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


_LABELS = st.lists(
    st.text(string.ascii_letters + string.digits + " .,;'\"äß漢-", min_size=1, max_size=12)
    .map(str.strip)
    .filter(lambda s: s and s.casefold() not in ("control", "na", "n/a", "null", "none", "nan")),
    min_size=1,
    max_size=4,
    unique_by=lambda s: s.casefold(),
)


@pytest.mark.parametrize(
    "convert",
    [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).lazy(), pa.Table.from_pandas],
)
def test_every_table_in_memory_gives_the_same_client(convert, reference):
    client = jc.Client.from_table(convert(frame_of(regimes_of())), name="lab-1")
    assert_same(client, reference)


def test_tables_in_memory_may_have_numbered_columns_whole_numbers_and_categories(tmp_path):
    regimes = regimes_of()
    frame = pd.DataFrame(np.vstack(list(regimes.values())))
    frame["regime"] = pd.Categorical(np.repeat(list(regimes), list(map(len, regimes.values()))))
    assert jc.Client.from_table(frame, name="lab-1").features == ("0", "1", "2", "3")
    counts = pd.array(np.arange(len(frame)) % 7, dtype="Int64")
    counts[3] = pd.NA
    frame = frame.rename(columns=str).assign(count=counts)
    strange = frame.assign(what=[object()] * len(frame))
    with pytest.warns(UserWarning, match="'what' is of no single type"):
        assert "what" not in jc.Client.from_table(strange, name="a", missing="drop").features
    frame.to_parquet(tmp_path / "lab-1.parquet")
    table = jc.Client.from_table(frame, name="lab-1", missing="drop")
    assert "count" in table.features
    assert table.n_samples["control"] == len(regimes["control"]) - 1
    assert_same(jc.read_client(tmp_path / "lab-1.parquet", missing="drop"), table)
    twice = frame.rename(columns={"0": 1})
    with pytest.raises(jc.InputError, match="'1' appears twice"):
        jc.Client.from_table(twice, name="lab-1")


@given(st.integers(0, 999), st.integers(1, 700))
def test_rows_in_any_order_and_chunks_give_the_same_client(seed, size):
    frame = frame_of(regimes_of()).sample(frac=1, random_state=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("jigsaw_crl.study.arrow.chunk_rows", lambda _: size)
        client = jc.Client.from_table(frame, name="lab-1")
    rows = {r: x.drop(columns="regime").to_numpy() for r, x in frame.groupby("regime")}
    assert_same(client, client_of(rows))


@settings(suppress_health_check=SLOW_OR_SHARED)
@given(labels=_LABELS, kind=st.sampled_from(["csv", "parquet", "npz"]), seed=st.integers(0, 999))
def test_any_labels_and_numbers_are_read_back_from_every_format(labels, kind, seed, tmp_path):
    rng = np.random.default_rng(seed)
    d = len(labels) + 1
    scale = 10.0 ** rng.uniform(-3, 3)
    regimes = {r: scale * rng.normal(size=(d + 5, d)) for r in ("control", *labels)}
    path = write_table(regimes, tmp_path / f"lab.{kind}", kind)
    client = jc.read_client(path)
    assert client.labels == tuple(sorted(labels))
    expected = jc.Moments.from_rows(regimes["control"])
    np.testing.assert_array_equal(client.control.covariance, expected.covariance)
