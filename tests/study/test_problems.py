"""All problems of a study are named at once."""

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.problems import as_one
from jigsaw_crl.cli.app import run

from .tables import frame_of, regimes_of


def _write(folder, **spoilt):
    """A study of four files, of which some are spoilt by a function of the frame."""
    for i in range(1, 5):
        frame = frame_of(regimes_of(seed=i))
        name = f"lab{i}"
        spoilt.get(name, lambda f: f)(frame).to_csv(folder / f"{name}.csv", index=False)


def _refusal(folder, **options):
    with pytest.raises(jc.InputError) as caught:
        jc.read_study(folder, **options)
    return str(caught.value)


def test_every_bad_file_is_named_with_its_own_remedy(tmp_path):
    _write(
        tmp_path,
        lab1=lambda f: f.rename(columns={"regime": "arm"}),
        lab3=lambda f: f.assign(x2=np.where(f.index == 7, np.nan, f.x2)),
        lab4=lambda f: f[f.regime != "control"],
    )
    text = _refusal(tmp_path)
    assert "3 problems in 3 of 4 clients" in text
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


def test_the_message_is_bounded():
    problems = [
        InputError(f"fault {i} " + "x" * 5000, f"remedy {i} " + "y" * 900, path=f"{i}.csv")
        for i in range(500)
    ]
    with pytest.raises(InputError, match="And 492 more like these") as caught:
        raise as_one(problems, 500, "study")
    assert len(str(caught.value)) < 8000


def _spoil(frame):
    """Missing values in two columns, text in a third, and rows without a regime."""
    frame = frame.assign(x2=np.where(frame.index % 50 == 17, np.nan, frame.x2))
    frame.loc[29, "x1"] = np.nan
    frame["x3"] = frame.x3.astype(object)
    frame.loc[[20, 30], "x3"] = "off"
    frame.loc[[11, 12], "regime"] = None
    return frame


def test_all_kinds_of_problems_of_one_file_are_named_at_once(tmp_path):
    _write(tmp_path, lab3=_spoil)
    text = _refusal(tmp_path)
    assert "3 problems in 1 of 4 clients" in text
    for part in (
        "'x3', row 21 holds 'off' among numbers",
        "row 12 has no regime (and 1 more row)",
        "missing in column 'x2', row 18",
        "(13 such values in 13 of 603 rows: 12 in 'x2', 1 in 'x1')",
    ):
        assert part in text
    frame = _spoil(frame_of(regimes_of(seed=3)))
    for one in (
        lambda: jc.read_client(tmp_path / "lab3.csv"),
        lambda: jc.Client.from_table(frame, name="lab3"),
    ):
        with pytest.raises(jc.InputError, match=r"3 problems: \(1\)") as caught:
            one()
        for part in ("'off' among numbers", "row 12 has no regime", "missing in column 'x2'"):
            assert part in str(caught.value)
        assert "lab3" in str(caught.value)


def test_what_follows_from_a_problem_is_not_a_problem_of_its_own(tmp_path):
    _write(
        tmp_path,
        lab1=lambda f: f.assign(x2=np.nan),
        lab2=lambda f: f.assign(x2=np.where(f.regime == "control", np.nan, f.x2)),
    )
    text = _refusal(tmp_path)
    assert "2 problems in 2 of 4 clients" in text
    assert "lab1.csv: no row has a value in 'x2'" in text


def test_a_column_that_holds_the_control_is_taken_to_find_further_problems(tmp_path):
    def spoil(frame):
        frame = frame.assign(shift="early", x1=np.where(frame.index == 3, np.inf, frame.x1))
        return frame.rename(columns={"regime": "arm"})

    _write(tmp_path, lab1=spoil)
    text = _refusal(tmp_path, batch="day", ignore=["x9"])
    for part in (
        "Is it 'arm'?",
        "there is no column 'day' for the batch",
        "the value inf in column 'x1', row 4 is too large",
        "there is no column 'x9' to ignore",
    ):
        assert part in text


def test_the_command_line_tells_each_problem_on_its_own_line(tmp_path, capsys):
    _write(tmp_path, lab1=lambda f: f.head(0), lab4=lambda f: f[f.regime != "control"])
    assert run(["check", str(tmp_path)]) == 2
    head, first, second, last = capsys.readouterr().err.splitlines()
    assert head.endswith("2 problems in 2 of 4 clients:")
    assert first.startswith("  (1) lab1.csv: ")
    assert second.startswith("  (2) lab4.csv: ")
    assert last == "  Correct them, then run again."


def test_a_regime_without_complete_rows_is_left_out_and_a_control_is_refused(tmp_path):
    frame = frame_of(regimes_of())
    pump = frame.assign(x2=np.where(frame.regime == "pump", np.nan, frame.x2))
    pump.to_csv(tmp_path / "lab1.csv", index=False)
    study = jc.read_study(tmp_path, missing="drop")
    (found,) = (f for f in study.findings if f.check == "unusable-regime")
    assert (found.regime, study.labels) == ("pump", ("valve",))
    none = frame.assign(x2=np.where(frame.regime == "control", np.nan, frame.x2))
    none.to_csv(tmp_path / "lab1.csv", index=False)
    text = _refusal(tmp_path, missing="drop")
    assert "every control row has a missing value, so none is left (200 in 'x2')" in text
    assert "--ignore" in text
