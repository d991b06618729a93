"""All problems of a study are named at once."""

from __future__ import annotations

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.study.problems import Problems

from .tables import frame_of, regimes_of


def _write(folder, **spoilt):
    """A study of four files, of which some are spoilt by a function of the frame."""
    for i in range(1, 5):
        frame = frame_of(regimes_of(seed=i))
        name = f"lab{i}"
        spoilt.get(name, lambda f: f)(frame).to_csv(folder / f"{name}.csv", index=False)


def _refusal(folder, **options) -> str:
    with pytest.raises(jc.InputError) as caught:
        jc.read_study(folder, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_every_bad_file_is_named_with_its_own_remedy(tmp_path):
    _write(
        tmp_path,
        lab1=lambda f: f.rename(columns={"regime": "arm"}),
        lab3=lambda f: f.assign(x2=np.where(f.index == 7, np.nan, f.x2)),
        lab4=lambda f: f[f.regime != "control"],
    )
    text = _refusal(tmp_path)
    assert "3 problems in 4 clients" in text
    for part in ("lab1.csv: there is no column 'regime'", "'arm'", "lab3.csv", "'x2'", "--control"):
        assert part in text
    assert "lab2" not in text
    assert ".;" not in text


def test_one_problem_in_many_files_is_told_once(tmp_path):
    _write(tmp_path)
    text = _refusal(tmp_path, regime="arm")
    assert text.count("there is no column 'arm'") == 1
    assert "lab1.csv, lab2.csv, lab3.csv, lab4.csv" in text
    assert text.count("--regime") == 1


def test_a_single_problem_is_told_as_for_one_file(tmp_path):
    _write(tmp_path, lab2=lambda f: f.head(0))
    assert "lab2.csv'" in _refusal(tmp_path)
    assert "problems" not in _refusal(tmp_path)


def test_all_labels_that_are_spelt_in_two_ways_are_named(tmp_path):
    _write(tmp_path, lab2=lambda f: f.replace({"regime": {"pump": "Pump", "valve": "VALVE"}}))
    text = _refusal(tmp_path)
    assert "'Pump' of client 'lab2' and 'pump' of 'lab1'" in text
    assert "'VALVE' of client 'lab2' and 'valve' of 'lab1'" in text


def test_all_labels_that_the_manifest_does_not_permit_are_named(tmp_path):
    _write(tmp_path)
    (tmp_path / "study.toml").write_text('labels = ["flow"]\n')
    assert "the labels 'pump', 'valve' are not among the manifest's labels" in _refusal(tmp_path)


def test_the_message_is_bounded():
    problems = Problems()
    for i in range(500):
        with problems.noted():
            raise InputError(
                f"fault {i} " + "x" * 5000, f"remedy {i} " + "y" * 900, path=f"{i}.csv"
            )
    with pytest.raises(InputError, match="and 492 more like these") as caught:
        problems.raise_all(500, "study")
    assert len(str(caught.value)) < 8000


def test_a_column_to_ignore_must_be_in_some_file_but_not_in_all(tmp_path):
    _write(tmp_path, lab2=lambda f: f.assign(shift=np.sin(f.index)))
    study = jc.read_study(tmp_path, ignore=["shift"])
    assert {c.features for c in study} == {("x1", "x2", "x3", "x4")}
    assert "no file has a column 'shfit' to ignore" in _refusal(tmp_path, ignore=["shfit"])
    (tmp_path / "study.toml").write_text('[clients.lab1]\nignore = ["shift"]\n')
    assert "there is no column 'shift' to ignore" in _refusal(tmp_path)
