"""NumPy archives in both layouts."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc

from .tables import assert_same, regimes_of


def test_arrays_in_fortran_order_give_the_same_client(tmp_path, reference):
    arrays = {k: np.asfortranarray(v) for k, v in regimes_of().items()}
    np.savez_compressed(tmp_path / "lab-1.npz", **arrays)
    assert_same(jc.read_client(tmp_path / "lab-1.npz"), reference)


@pytest.mark.parametrize("name", ["features", "columns"])
def test_an_archive_of_regimes_may_name_its_columns(name, tmp_path):
    regimes = regimes_of()
    names = [f"sensor {i}" for i in range(regimes["control"].shape[1])]
    np.savez(tmp_path / "lab-1.npz", **regimes, **{name: np.array(names)})
    client = jc.read_client(tmp_path / "lab-1.npz")
    assert client.features == tuple(names)
    assert set(client.labels) == set(regimes) - {"control"}


@pytest.mark.parametrize("layout", ["one array per regime", "X and regime"])
def test_a_column_of_an_archive_can_be_ignored(layout, tmp_path):
    regimes = regimes_of()
    path = tmp_path / "lab-1.npz"
    if layout == "X and regime":
        labels = np.repeat(list(regimes), [len(x) for x in regimes.values()])
        np.savez(path, X=np.vstack(list(regimes.values())), regime=labels, notes=np.array(["hm"]))
    else:
        np.savez(path, **regimes, notes=np.array(["hm"]))
    client = jc.read_client(path, ignore=["x2", "notes"])
    whole = jc.read_client(path, ignore=["notes"])
    assert client.features == tuple(f for f in whole.features if f != "x2")
    kept = [i for i, f in enumerate(whole.features) if f != "x2"]
    np.testing.assert_allclose(
        client.control.covariance, whole.control.covariance[np.ix_(kept, kept)]
    )
    with pytest.raises(jc.InputError, match=r"no column 'x22' to ignore\. Did you mean 'x2'"):
        jc.read_client(path, ignore=["x22", "notes"])
