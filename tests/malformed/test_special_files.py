"""Pipes, links and folders in place of files, and AnnData files that refer to others: refused
without waiting, and nothing outside the data is read."""

import hashlib
import os
from importlib import import_module

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.study import files, reading

from ..study.tables import write_h5ad
from .tables import csv, good, parquet


@pytest.mark.parametrize(
    "name", ["lab.csv", "lab.tsv.gz", "lab.npz", "lab.parquet", "lab.h5ad", "study.toml"]
)
def test_a_pipe_is_refused_as_data_without_waiting(name, tmp_path, refused):
    os.mkfifo(tmp_path / name)
    refused(["check", tmp_path / name], name, "this is a pipe", "to a file first")


def test_a_pipe_among_the_parts_of_a_table_is_left_out(tmp_path):
    parquet(good(), tmp_path / "lab" / "part-1.parquet")
    os.mkfifo(tmp_path / "lab" / "part-2.parquet")
    assert jc.read_client(tmp_path / "lab").labels == ("a", "b")


@pytest.mark.parametrize(
    "arguments",
    [
        ["assemble", "PIPE"],
        ["assemble", "FILE", "--keys", "PIPE", "--round", "first"],
        ["fragment", "FILE", "-o", "out.json", "--sign", "PIPE", "--study", "s", "--round", "r"],
        ["fragment", "FILE", "-o", "PIPE"],
        ["moments", "FILE", "-o", "PIPE"],
        ["explain", "RESULT", "a", "b"],
    ],
)
def test_a_pipe_is_refused_wherever_a_file_is_asked_for(arguments, tmp_path, refused):
    csv(good(), tmp_path / "lab.csv")
    pipe = tmp_path / "result.json"
    os.mkfifo(pipe)
    places = {"PIPE": pipe, "RESULT": tmp_path, "FILE": tmp_path / "lab.csv"}
    refused([places.get(a, a) for a in arguments], "this is a pipe")


def test_a_link_to_the_root_of_the_disk_is_not_searched(tmp_path, monkeypatch):
    csv(good(labels=("a", "b")), tmp_path / "lab-1.csv")
    (tmp_path / "everything").symlink_to("/")
    (tmp_path / "above").symlink_to(tmp_path.parent)
    searched: list[str] = []
    scan = os.scandir

    def watched(path="."):
        searched.append(str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", watched)
    assert [c.name for c in jc.read_study(tmp_path)] == ["lab-1"]
    assert len(searched) <= 1


def test_the_hash_is_of_the_bytes_that_are_read_even_if_the_file_is_replaced(tmp_path, monkeypatch):
    path, other = csv(good(), tmp_path / "lab.csv"), csv(good(90), tmp_path / "other")
    first, digest = hashlib.sha256(path.read_bytes()).hexdigest(), hashlib.file_digest

    def replaced(*given):
        found = digest(*given)
        other.replace(path)
        return found

    monkeypatch.setattr(reading, "file_digest", replaced)
    study = jc.read_study(path)
    assert (study.fingerprints["lab"], study["lab"].n_samples["control"]) == (first, 20)


# -- AnnData ----------------------------------------------------------------------------------
def _h5ad(path):
    rows = np.random.default_rng(0).normal(size=(60, 3))
    return write_h5ad(path, rows, perturbation=np.repeat(["control", "a", "b"], 20))


def _external(file, h5py):
    file["uns/secret"] = h5py.ExternalLink("other.h5", "/X")


def _linked_rows(file, h5py):
    del file["X"]
    file["X"] = h5py.ExternalLink("other.h5", "/X")


def _stored_elsewhere(file, _):
    file["uns"].create_dataset("raw", (8,), "u1", external=[("/etc/hostname", 0, 8)])


def _virtual(file, h5py):
    layout = h5py.VirtualLayout((60, 3), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "X", (60, 3))
    file.create_virtual_dataset("uns/view", layout)


def _huge(file, _):
    file["uns"].create_dataset("huge", (10**10,), "f8", chunks=True)


ELSEWHERE = ("refers to another file",)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        *((link, ELSEWHERE) for link in (_external, _linked_rows, _stored_elsewhere, _virtual)),
        (_huge, ("'/uns/huge'", "10000000000")),
    ],
)
def test_an_anndata_file_that_refers_to_another_or_claims_more_than_it_holds_is_refused(
    change, says, tmp_path, refused, little_memory
):
    _h5ad(tmp_path / "other.h5")
    path = _h5ad(tmp_path / "lab.h5ad")
    h5py = import_module("h5py")
    with h5py.File(path, "a") as file:
        change(file, h5py)
    refused(["check", path], "lab.h5ad", *says)


@pytest.mark.parametrize("kind", ["link", "folder", "file"])
def test_what_is_not_a_stage_of_ours_is_not_moved_into_a_result_folder(kind, tmp_path):
    """A folder from elsewhere must not make a run move or replace files of its user."""
    result = jc.recover(jc.simulate.setting("A", 0).clients())
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    out.mkdir()
    (home / "id").write_text("private")
    (out / "notes.txt").write_text("mine")
    stage = out / ".jigsaw-complete"
    if kind == "link":
        stage.symlink_to(home)
    elif kind == "folder":
        stage.mkdir()
        (stage / "notes.txt").write_text("theirs")
    else:
        stage.write_text("x")
    with pytest.raises(jc.InputError, match="is not an unfinished write of a result"):
        result.save(out)
    assert (home / "id").read_text() == "private"
    assert (out / "notes.txt").read_text() == "mine"


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    result = jc.recover(jc.simulate.setting("A", 0).clients())
    (tmp_path / "precious").write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / ".lock").symlink_to(tmp_path / "precious")
    with pytest.raises(jc.InputError, match="cannot be written"):
        result.save(out)
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_table_in_too_many_parts_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MOST_ENTRIES", 3)
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text("")
    parquet(good(), tmp_path / "x.parquet")
    with pytest.raises(jc.InputError, match="more than 3 entries"):
        jc.read_client(tmp_path)
