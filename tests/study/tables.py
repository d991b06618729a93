"""The rows of a small client, as a table, and what makes two clients the same."""

import warnings

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import read_one


def regimes_of(n=200, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return {
        r: rng.normal(size=(n + i, d)) * (1 + i) for i, r in enumerate(["control", "pump", "valve"])
    }


def frame_of(regimes):
    rows = np.vstack(list(regimes.values()))
    frame = pd.DataFrame(rows, columns=[f"x{i + 1}" for i in range(rows.shape[1])])
    frame["regime"] = np.repeat(list(regimes), [len(x) for x in regimes.values()])
    return frame


def assert_same(a, b):
    """Equal to the last bit."""
    assert a.labels == b.labels
    assert a.n_latent == b.n_latent
    assert a.n_samples == b.n_samples
    assert [name for name, _ in a.named_regimes] == [name for name, _ in b.named_regimes]
    for (_, m), (_, other) in zip(a.named_regimes, b.named_regimes, strict=True):
        np.testing.assert_array_equal(m.mean, other.mean)
        np.testing.assert_array_equal(m.covariance, other.covariance)
        np.testing.assert_array_equal(m.fourth, other.fourth)


def client_of(regimes, name="lab-1", **options):
    """A client from rows by regime, one of which is the control."""
    rest = {label: rows for label, rows in regimes.items() if label != "control"}
    return jc.Client.from_samples(
        name, observational=regimes["control"], interventions=rest, **options
    )


def read_with_findings(path, **asked):
    """A client and the findings from reading it."""
    one = read_one(path, **asked)
    return one.clients[0], list(one.findings)


def write_h5ad(path, X, names=None, **obs):
    """Write an AnnData file; its variables may have names."""
    anndata = pytest.importorskip("anndata", reason="the extra 'anndata' is not installed")
    beside = pd.DataFrame(obs, index=[str(i) for i in range(X.shape[0])])
    var = None if names is None else pd.DataFrame(index=list(names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anndata.AnnData(X, obs=beside, var=var).write_h5ad(path)
    return path


def write_table(regimes, path, kind):
    """Write the rows of all regimes as one file of this kind."""
    return write_frame(frame_of(regimes), path, kind)


def write_frame(frame, path, kind):
    """Write a table; its columns of text stand beside the features."""
    beside = {name: frame[name].to_numpy() for name in frame.select_dtypes(object)}
    rows = frame.drop(columns=list(beside))
    if kind.startswith("csv"):
        frame.to_csv(path, index=False, float_format="%.17g")
    elif kind == "parquet":
        frame.to_parquet(path, index=False)
    elif kind == "npz":
        texts = {name: values.astype(str) for name, values in beside.items()}
        np.savez(path, X=rows.to_numpy(), features=np.array(rows.columns, dtype=str), **texts)
    else:
        beside["perturbation"] = beside.pop("regime")
        write_h5ad(path, rows.to_numpy(), rows.columns, **beside)
    return path
