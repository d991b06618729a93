"""Rows in chunks become clients."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jigsaw_crl as jc
from jigsaw_crl.study.manifest import Reading
from jigsaw_crl.study.regimes import read_table
from jigsaw_crl.study.table import Chunk, Table

from .tables import assert_same, client_of


def chunk_of(regimes, codes, rows):
    return Chunk(rows, {"regime": (regimes, codes)})


def read(chunks):
    reading = Reading.of(None, name="lab-1")
    found = read_table(Table(reading, ("x1", "x2"), lambda _: iter(chunks)))
    assert not reading.problems
    return found[0]


@given(st.data())
def test_any_chunks_of_mixed_rows_give_the_same_client(data):
    names = ["control", "pump", "valve"]
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    n = data.draw(st.integers(60, 400))
    regime = np.append(np.repeat([0, 1, 2], 5), rng.integers(0, 3, n))
    rows = rng.normal(size=(len(regime), 2))
    chunks = []
    for part in np.split(np.arange(len(rows)), sorted(data.draw(st.lists(st.integers(0, n))))):
        # Codes are numbered anew in every chunk, in any order.
        order = data.draw(st.permutations(range(3)))
        codes = np.argsort(order)[regime[part]]
        chunks.append(chunk_of([names[i] for i in order], codes, rows[part]))
    expected = client_of({name: rows[regime == i] for i, name in enumerate(names)})
    assert_same(read(chunks), expected)


@pytest.mark.parametrize("usual", ["normal", "reference", "NT", "untreated"])
def test_a_usual_name_of_the_control_is_suggested(usual):
    chunk = chunk_of(
        [usual, "pump"], np.repeat([0, 1], 30), np.random.default_rng(0).normal(size=(60, 2))
    )
    with pytest.raises(jc.InputError) as caught:
        read([chunk])
    assert (f"Is it {usual!r}?" in str(caught.value)) == (usual != "NT")
