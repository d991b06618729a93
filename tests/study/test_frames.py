"""Tables in memory."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

import jigsaw_crl as jc

from .tables import assert_same, frame_of, regimes_of


@pytest.mark.parametrize(
    "convert",
    [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).lazy(), pa.Table.from_pandas],
)
def test_every_table_in_memory_gives_the_same_client(convert, reference):
    client = jc.Client.from_table(convert(frame_of(regimes_of())), name="lab-1")
    assert_same(client, reference)
