"""AnnData files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import jigsaw_crl as jc

from .tables import assert_same, client_of, frame_of, regimes_of, write_h5ad, write_table

pytestmark = pytest.mark.usefixtures("anndata")


def test_sparse_matrices_give_the_same_client_as_dense_ones(tmp_path):
    regimes = {k: np.where(np.abs(v) > 1, v, 0) for k, v in regimes_of().items()}
    frame = frame_of(regimes)
    rows = csr_matrix(frame.drop(columns="regime").to_numpy())
    client = jc.read_client(
        write_h5ad(tmp_path / "lab-1.h5ad", rows, perturbation=frame["regime"].to_numpy())
    )
    assert_same(client, client_of(regimes))


def test_a_variable_can_be_ignored(tmp_path):
    regimes = regimes_of()
    path = write_table(regimes, tmp_path / "lab-1.h5ad", "h5ad")
    client = jc.read_client(path, ignore=["x2"])
    assert client.features == ("x1", "x3", "x4")
    expected = client_of({k: v[:, [0, 2, 3]] for k, v in regimes.items()})
    assert_same(client, expected)
    with pytest.raises(jc.InputError, match=r"no column '7' to ignore\. Check the spelling"):
        jc.read_client(path, ignore=["7"])


def _screen(path: Path, control: str) -> Path:
    regimes = regimes_of(20)
    names = np.repeat([control, "pump", "valve"], [len(x) for x in regimes.values()])
    n = len(names)
    return write_h5ad(
        path,
        np.vstack(list(regimes.values())),
        barcode=[f"ACGT{i}" for i in range(n)],
        operator=np.resize(["ann", "ben"], n),
        duration=np.linspace(0, 1, n),
        guide=pd.Categorical(names),
        lot=7,
    )


def test_columns_of_few_values_are_named_and_a_remote_name_is_not_suggested(tmp_path):
    path = _screen(tmp_path / "a.h5ad", "NT")
    with pytest.raises(jc.InputError) as caught:
        jc.read_client(path)
    text = str(caught.value)
    assert text.endswith("may hold it: 'operator' (ann, ben), 'guide' (NT, pump, valve).")
    assert "Did you mean" not in text
    with pytest.raises(jc.InputError, match="Did you mean 'guide'"):
        jc.read_client(path, regime="guides")


def test_problems_beyond_the_regime_column_are_named_with_it(tmp_path):
    path = _screen(tmp_path / "a.h5ad", "control")
    with pytest.raises(jc.InputError, match=r"Is it 'guide'.*no column 'day' for the batch"):
        jc.read_client(path, batch="day")
