"""Files of many columns: read twice, along the directions that hold the latents."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, issparse

import jigsaw_crl as jc
from jigsaw_crl.client.reduction import ColumnSketch
from jigsaw_crl.study import merge_clients, write_moments

from ..client.wide_rows import probabilities, wide_regimes
from .tables import client_of, read_with_findings, write_h5ad

M, N = 520, 200


@pytest.fixture(scope="module")
def regimes():
    return wide_regimes(M, N, latents=4)


@pytest.fixture(scope="module")
def frame(regimes):
    rows = np.vstack(list(regimes.values()))
    table = pd.DataFrame(rows, columns=[f"gene {i}" for i in range(M)])
    return table.assign(regime=np.repeat(list(regimes), N))


def assert_alike(client, regimes):
    """The client says what that of the rows in memory says."""
    expected = client_of(regimes)
    assert client.labels == expected.labels
    assert client.n_latent == expected.n_latent
    assert client.n_samples == expected.n_samples
    assert client.reduction is not None
    own, other = (probabilities(jc.recover_fragment(c)) for c in (client, expected))
    np.testing.assert_allclose(own, other, atol=0.03)


def test_columns_that_are_no_measurements_are_left_out_and_named(tmp_path, frame, regimes):
    table = frame.assign(time=np.arange(len(frame)) * 1.0, site=3.5, holes=frame["gene 1"])
    table.loc[5, "holes"] = np.nan
    table.insert(100, "batch day", "monday")
    path = tmp_path / "lab-1.parquet"
    table.to_parquet(path)
    client, findings = read_with_findings(path, ignore=["holes"])
    assert client.columns == tuple(f"gene {i}" for i in range(M))
    said = {f.check: f.message for f in findings}
    assert "'site'" in said["constant-column"]
    ignored = {f.message.split("'")[1] for f in findings if f.check == "ignored-column"}
    assert ignored == {"time", "batch day"}
    assert_alike(client, regimes)
    rows = frame[list(client.columns)]
    fragment = jc.recover_fragment(client)
    assert fragment.transform(rows).shape == (len(frame), 4)
    assert "reduced-columns" in {f.check for f in fragment.findings}


@pytest.mark.slow
def test_a_missing_value_is_refused_by_name_or_its_row_left_out(tmp_path, frame):
    table = frame.copy()
    table.loc[250, "gene 7"] = np.nan
    path = tmp_path / "lab-1.csv"
    table.to_csv(path, index=False)
    with pytest.raises(jc.InputError, match="missing in column 'gene 7', row 251"):
        jc.read_client(path)
    client, findings = read_with_findings(path, missing="drop")
    assert sum(client.n_samples.values()) == len(frame) - 1
    assert "incomplete-rows" in {f.check for f in findings}


def test_batches_and_groups_are_read_along_the_directions(frame):
    own = np.tile(["monday", "tuesday"], len(frame) // 2)
    table = frame.assign(day=own)
    genes = [f"gene {i}" for i in range(M)]
    table.loc[own == "monday", genes] += 50.0
    client = jc.Client.from_table(table, name="lab-1", batch="day")
    assert client.batches == ("monday", "tuesday")
    assert client.n_latent == 4
    client = jc.Client.from_table(frame.assign(rat=np.arange(len(frame)) // 10), name="lab-1",
                                  group="rat")  # fmt: skip
    assert client.control.groups == N // 10


def test_sparse_rows_of_anndata_stay_sparse(tmp_path, regimes, monkeypatch):
    rows = np.vstack(list(regimes.values()))
    rows = np.where(np.abs(rows) > rows.std(axis=0), rows, 0)
    names = np.repeat(list(regimes), N)
    seen = []
    add = ColumnSketch.add

    def noted(self, x, cells):
        seen.append(issparse(x))
        add(self, x, cells)

    monkeypatch.setattr(ColumnSketch, "add", noted)
    said = {}
    for kind, X in (("sparse", csr_matrix(rows)), ("dense", rows)):
        seen.clear()
        path = write_h5ad(tmp_path / f"{kind}.h5ad", X, perturbation=names)
        client = jc.read_client(path, n_latent=4)
        said[kind] = probabilities(jc.recover_fragment(client))
        assert seen
        assert all(seen) == (kind == "sparse")
    np.testing.assert_allclose(said["sparse"], said["dense"], atol=0.03)


@pytest.mark.slow
def test_rows_are_added_along_the_earlier_directions(tmp_path, frame, regimes):
    first, second = frame[::2], frame[1::2]
    second.to_csv(tmp_path / "later.csv", index=False)
    earlier = jc.Client.from_table(first, name="lab-1")
    later, _ = read_with_findings(tmp_path / "later.csv", name="lab-1", reduction=earlier.reduction)
    both = merge_clients(earlier, later)
    assert_alike(both, regimes)
    np.testing.assert_allclose(both.centre @ both.reduction.matrix, both.control.mean, rtol=1e-9)
    other = jc.Client.from_table(second, name="lab-1")
    with pytest.raises(jc.InputError, match="reduced to different directions"):
        merge_clients(earlier, other)
    second.drop(columns="gene 3").to_csv(tmp_path / "later.csv", index=False)
    with pytest.raises(jc.InputError, match="columns are missing: gene 3"):
        read_with_findings(tmp_path / "later.csv", reduction=earlier.reduction)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"directions": np.full((M, 20), np.nan)}, "missing or infinite"),
        ({"directions": np.ones((3, 20))}, "the array directions has"),
        ({"centre": None}, "the array centre is missing"),
    ],
)
def test_spoilt_directions_are_refused(tmp_path, regimes, change, message):
    path = write_moments(client_of(regimes), tmp_path / "lab-1.moments.npz")
    with np.load(path) as file:
        arrays = {k: v for k, v in {**file, **change}.items() if v is not None}
    np.savez(path, **arrays)
    with pytest.raises(jc.InputError, match=message):
        jc.read_client(path)
