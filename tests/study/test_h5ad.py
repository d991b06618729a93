"""AnnData files."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import jigsaw_crl as jc

from .tables import assert_same, client_of, frame_of, regimes_of, write_h5ad

pytestmark = pytest.mark.usefixtures("anndata")


def test_sparse_matrices_give_the_same_client_as_dense_ones(tmp_path):
    regimes = {k: np.where(np.abs(v) > 1, v, 0) for k, v in regimes_of().items()}
    frame = frame_of(regimes)
    rows = csr_matrix(frame.drop(columns="regime").to_numpy())
    client = jc.read_client(
        write_h5ad(tmp_path / "lab-1.h5ad", rows, perturbation=frame["regime"].to_numpy())
    )
    assert_same(client, client_of(regimes))


def test_columns_of_few_values_are_named_and_a_remote_name_is_not_suggested(tmp_path):
    n, rng = 60, np.random.default_rng(0)
    beside = {"barcode": [f"ACGT{i}" for i in range(n)], "lot": 7, "duration": np.linspace(0, 1, n)}
    beside["operator"] = np.resize(["ann", "ben"], n)
    guide = pd.Categorical(np.repeat(["NT", "pump", "valve"], 20))
    path = write_h5ad(tmp_path / "a.h5ad", rng.normal(size=(n, 4)), guide=guide, **beside)
    with pytest.raises(jc.InputError) as caught:
        jc.read_client(path)
    text = str(caught.value)
    assert text.endswith(
        "may hold it: 'guide' (NT, pump, valve), 'lot' (7), 'operator' (ann, ben)."
    )
    assert "Did you mean" not in text
    with pytest.raises(jc.InputError, match="Did you mean 'guide'"):
        jc.read_client(path, regime="guides")
