"""AnnData files."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import jigsaw_crl as jc

from .tables import assert_same, client_of, regimes_of

pytestmark = pytest.mark.usefixtures("anndata")


def write_obs(path: Path, X, obs) -> Path:
    import anndata

    anndata.AnnData(X, obs=obs).write_h5ad(path)
    return path


def write(path: Path, X, names) -> Path:
    obs = pd.DataFrame({"perturbation": names}, index=[str(i) for i in range(len(names))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return write_obs(path, X, obs)


def test_sparse_matrices_give_the_same_client_as_dense_ones(tmp_path):
    regimes = {k: np.where(np.abs(v) > 1, v, 0) for k, v in regimes_of().items()}
    rows = np.vstack(list(regimes.values()))
    names = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    client = jc.read_client(write(tmp_path / "lab-1.h5ad", csr_matrix(rows), names))
    assert_same(client, client_of(regimes))


def test_a_variable_can_be_ignored(tmp_path):
    regimes = regimes_of()
    rows = np.vstack(list(regimes.values()))
    names = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    path = write(tmp_path / "lab-1.h5ad", rows, names)
    client = jc.read_client(path, ignore=["1"])
    assert client.features == ("0", "2", "3")
    expected = client_of({k: v[:, [0, 2, 3]] for k, v in regimes.items()})
    assert_same(client, expected)
    with pytest.raises(jc.InputError, match=r"no column '7' to ignore\. Check the spelling"):
        jc.read_client(path, ignore=["7"])


def _screen(path: Path, control: str) -> Path:
    regimes = regimes_of(20)
    names = np.repeat([control, "pump", "valve"], [len(x) for x in regimes.values()])
    n = len(names)
    obs = pd.DataFrame(
        {
            "barcode": [f"ACGT{i}" for i in range(n)],
            "operator": np.resize(["ann", "ben"], n),
            "duration": np.linspace(0, 1, n),
            "guide": pd.Categorical(names),
            "lot": 7,
        },
        index=[str(i) for i in range(n)],
    )
    return write_obs(path, np.vstack(list(regimes.values())), obs)


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
