"""Folders that are not a study, and invalid options (`test_manifest.py` has manifests)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .tables import csv, good, parquet


def _study(root):
    root.mkdir()
    csv(good(labels=("a", "b")), root / "lab-1.csv")
    csv(good(labels=("b", "c"), seed=8), root / "lab-2.csv")
    return root


def _other_files(root):
    (root / "truth").mkdir(parents=True)
    (root / "README.md").write_text("hello")
    (root / "truth" / "truth.json").write_text("{}")


FOLDERS: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "an empty folder": (Path.mkdir, ("no client file", ".csv")),
    "other files only": (_other_files, ("no client file",)),
    "no folder": (lambda _: None, ("study", "no such file")),
    "two files of one client": (
        lambda root: parquet(good(), _study(root) / "lab-1.parquet"),
        ("lab-1.csv", "lab-1.parquet", "one file per client"),
    ),
    "names that differ by case": (
        lambda root: parquet(good(), _study(root) / "LAB-1.parquet"),
        ("LAB-1.parquet",),
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_is_no_study_is_refused(case, tmp_path, refused):
    make, says = FOLDERS[case]
    make(tmp_path / "study")
    refused(["check", tmp_path / "study"], *says)


@pytest.mark.parametrize("label", ["b\u200b", "b\x1b[31m", "b\u202e"])
def test_a_label_with_an_invisible_character_is_refused(label, tmp_path, refused):
    root = _study(tmp_path / "study")
    csv(good(labels=(label, "c")), root / "lab-3.csv")
    refused(["check", root], "lab-3", f"U+{ord(label[1]):04X}", "rename")


def test_one_bad_client_stops_the_run_and_nothing_is_written(tmp_path, refused):
    root = _study(tmp_path / "study")
    (root / "lab-3.csv").write_text("")
    refused(["recover", root, "--out", tmp_path / "out"], "lab-3.csv", "empty")
    assert not (tmp_path / "out").exists()


def test_a_folder_without_read_permission_is_refused(tmp_path, refused, monkeypatch):
    root = _study(tmp_path / "study")
    real = Path.iterdir

    def forbidden(path):
        """The system's refusal is played: nothing is forbidden to root."""
        if path == root:
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "iterdir", forbidden)
    refused(["check", root], "study", "permission")


OPTIONS = {
    "an unknown method": (["recover", "x", "--method", "magic"], ("magic",)),
    "a tau that is no number": (["recover", "x", "--method", "paper", "--tau", "q"], ("--tau",)),
    "a tau beyond 1": (["recover", "x", "--method", "paper", "--tau", "1.5"], ("--tau",)),
    "a negative seed": (["recover", "x", "--seed", "-1"], ("--seed",)),
    "no world": (["simulate", "--out", "s"], ("--setting",)),
    "half a world": (["simulate", "--out", "s", "--latent", "5"], ("--coverage",)),
    "two worlds": (["simulate", "--out", "s", "--setting", "A", "--latent", "5"], ("exclude",)),
    "exact moments as a table": (
        ["simulate", "--out", "s", "--setting", "A", "--format", "csv"],
        ("--samples",),
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_invalid_options_are_refused(case, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments, says = OPTIONS[case]
    refused(arguments, *says)
