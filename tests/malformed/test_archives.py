"""Malformed NumPy archives and moments files."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import write_moments

Arrays = dict[str, Any]


def _rows(n=20, d=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def _long(**changes):
    arrays = {"X": _rows(60), "regime": np.repeat(["control", "a", "b"], 20)}
    return {k: v for k, v in (arrays | changes).items() if v is not None}


def _wide(**changes):
    arrays = {"control": _rows(), "a": _rows(seed=1), "b": _rows(seed=2)}
    return {k: v for k, v in (arrays | changes).items() if v is not None}


ARCHIVES: dict[str, tuple[Callable[[], Arrays], tuple[str, ...]]] = {
    "nothing": (dict, ("empty",)),
    "text where numbers belong": (lambda: _wide(a=np.array([["u", "v"]])), ("'a'", "type")),
    "complex numbers": (lambda: _wide(a=_rows() + 1j), ("complex", "'a'")),
    "truth values": (lambda: _wide(a=_rows() > 0), ("bool",)),
    "a vector": (lambda: _wide(a=np.zeros(5)), ("shape (5,)",)),
    "a regime without rows": (lambda: _wide(a=np.zeros((0, 2))), ("no rows",)),
    "another number of columns": (lambda: _wide(b=_rows(d=3)), ("'b'", "3 columns")),
    "more regimes than rows of X": (
        lambda: _long(regime=np.repeat(["control", "a"], 40)),
        ("60 rows", "80"),
    ),
    "regimes in a matrix": (lambda: _long(regime=np.array([["a"], ["b"]])), ("regime",)),
    "decimal regimes": (lambda: _long(regime=np.zeros(60)), ("float64",)),
    "a foreign array beside X": (lambda: _long(extra=np.zeros(3)), ("extra",)),
    "feature names that do not fit": (
        lambda: _long(features=np.array(["only one"])),
        ("feature name",),
    ),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_a_malformed_archive_is_refused(case, tmp_path, refused):
    make, says = ARCHIVES[case]
    np.savez(tmp_path / "lab-1.npz", **make())
    refused(["moments", tmp_path / "lab-1.npz", "-o", tmp_path / "o.npz"], "lab-1", *says)


class Bomb:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return Path.write_text, (self.mark, "boom")


@pytest.mark.parametrize("command", ["moments", "check", "fragment"])
def test_a_pickled_archive_is_refused_and_never_unpickled(command, tmp_path, refused):
    path, mark = tmp_path / "lab-1.npz", tmp_path / "mark"
    np.savez(path, control=np.array([Bomb(mark)], dtype=object))
    output = [] if command == "check" else ["-o", tmp_path / "out"]
    refused([command, path, *output], "lab-1.npz", "pickled")
    assert not mark.exists()


def test_a_bare_pickle_called_npz_is_refused_and_never_unpickled(tmp_path, refused):
    path, mark = tmp_path / "lab-1.npz", tmp_path / "mark"
    path.write_bytes(pickle.dumps(Bomb(mark)))
    refused(["check", path], "lab-1.npz")
    assert not mark.exists()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_damaged_archive_is_refused(save, tmp_path, refused):
    path = tmp_path / "lab-1.npz"
    save(path, **_wide(control=_rows(3000)))
    data = bytearray(path.read_bytes())
    data[2000:2100] = bytes(100)
    path.write_bytes(bytes(data))
    refused(["check", path], "lab-1.npz")


# -- moments files ------------------------------------------------------------------------------
@pytest.fixture
def moments(tmp_path):
    client = jc.Client.from_samples(
        "lab-1", observational=_rows(), interventions={"a": _rows(seed=1), "b": _rows(seed=2)}
    )
    return write_moments(client, tmp_path / "lab-1.moments.npz")


def _header(**changes):
    def spoil(arrays):
        header = {**json.loads(str(arrays["header"])), **changes}
        return {**arrays, "header": np.array(json.dumps(header))}

    return spoil


def _regime(**changes):
    """Changes of the first label's entry in the header."""

    def spoil(arrays):
        control, first, *rest = json.loads(str(arrays["header"]))["regimes"]
        return _header(regimes=[control, first | changes, *rest])(arrays)

    return spoil


def _array(name, change):
    return lambda arrays: {**arrays, name: change(arrays[name].copy())}


def _set(index, value):
    def change(array):
        array[index] = value
        return array

    return change


MOMENTS: dict[str, tuple[Callable[[Arrays], Arrays], tuple[str, ...]]] = {
    "factors below one": (_regime(factors=[0.5, 1.0]), ("factors",)),
    "one factor": (_regime(factors=[1.0]), ("factors",)),
    "batches that do not add up": (_regime(batches={"monday": 3}), ("batches", "add up")),
    "more groups than rows": (_regime(groups=99), ("groups",)),
    "more gaps than rows": (_regime(incomplete=[20, 21, 1.0]), ("missing values",)),
    "hard labels that it lacks": (_header(hard=["c"]), ("'hard'",)),
    "a header without labels": (_header(labels=[]), ("labels",)),
    "labels that are numbers": (_header(labels=[1, 2]), ("labels.0", "string")),
    "a fractional number of latents": (_header(n_latent=1.5), ("n_latent",)),
    "too few latents": (_header(n_latent=1), ("n_latent is 1",)),
    "nan in a covariance": (_array("covariance", _set((1, 0, 0), np.nan)), ("covariance",)),
    "a mean that is too short": (_array("mean", lambda m: m[:, :1]), ("mean", "shape")),
    "counts that are not whole": (_regime(n=20.0), ("n'",)),
    "a count of zero": (_regime(n=0), ("n'",)),
    "an unknown array": (lambda a: {**a, "rows": np.zeros(3)}, ("rows", "unknown")),
}


@pytest.mark.parametrize("case", MOMENTS)
def test_a_malformed_moments_file_is_refused(case, moments, tmp_path, refused):
    spoil, says = MOMENTS[case]
    with np.load(moments) as archive:
        arrays = spoil({k: archive[k] for k in archive.files})
    np.savez(moments, **arrays)
    refused(["check", moments], *says)
