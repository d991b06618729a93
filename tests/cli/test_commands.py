"""The command line: help, exit codes, JSON on stdout, notes on stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.text import chance
from jigsaw_crl.cli import app as cli

# Seconds after which a command hangs; nothing waits that long, however busy the machine.
HANG = 300


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("cli") / "study"
    options = ["--setting", "A", "--samples", "2000", "--format", "csv"]
    assert cli.run(["simulate", *options, "--out", str(root)]) == 0
    return root


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "result"
    assert cli.run(["recover", str(study), "--out", str(out)]) == 0
    return out


def _json(arguments: list[object], capsys: pytest.CaptureFixture[str]) -> dict:
    capsys.readouterr()
    assert cli.run([str(a) for a in arguments]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1
    return json.loads(out)


def test_an_error_from_the_installed_command_is_one_line_and_exit_2(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from jigsaw_crl.cli import main; main()", "check", "nowhere"],
        capture_output=True, text=True, timeout=HANG, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "jigsaw: file 'nowhere': there is no such file. Check the path.\n"


def test_an_interruption_exits_130(monkeypatch, study, capsys):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("jigsaw_crl.study.read_study", interrupted)
    assert cli.run(["check", str(study)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_defect_is_not_hidden(monkeypatch, study):
    def defect(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("jigsaw_crl.study.read_study", defect)
    with pytest.raises(ZeroDivisionError):
        cli.run(["check", str(study)])


def test_recover_prints_the_decided_pairs(study, folder, capsys):
    assert cli.run(["recover", str(study)]) == 0
    out = capsys.readouterr().out
    order = jc.load_result(folder).order
    for a, d in order.hasse().edges:
        assert f"{a}\t{d}\t{chance(order.probability(a, d))}" in out
    assert f"5 labels: {len(order.pairs())} ancestor pairs, " in out


def test_recover_names_the_open_pairs_of_the_best_guess(tmp_path, capsys):
    study = tmp_path / "study"
    world = ["--setting", "A", "--samples", "300", "--seed", "2"]
    assert cli.run(["simulate", *world, "--out", str(study)]) == 0
    capsys.readouterr()
    assert cli.run(["recover", str(study)]) == 0
    out = capsys.readouterr().out
    order = jc.recover(jc.read_study(study)).order
    guessed = order.best_guess().pairs() - order.pairs()
    (line,) = [x for x in out.splitlines() if "best guess" in x]
    for a, d in guessed:
        assert f"{a} → {d} ({order.probability(a, d):.3f})" in line
    assert len(guessed) == line.count("→")
    document = _json(["recover", study, "--json"], capsys)
    assert {tuple(pair) for pair in document["best_guess"]} == order.best_guess().pairs()
    assert {tuple(pair) for pair in document["pairs"]} == order.pairs()


def test_the_same_seed_gives_the_same_answer_whatever_the_jobs(study, capsys):
    one = _json(["recover", study, "--json", "--jobs", "1"], capsys)
    two = _json(["recover", study, "--json", "--jobs", "2"], capsys)
    assert one == two
    assert set(one) == {
        "order", "pairs", "best_guess", "hasse", "clients", "left_out", "lost_labels",
        "findings", "out", "summary",
    }  # fmt: skip
    assert all(c["outcome"] == "ok" for c in one["clients"].values())


def test_check_as_json_names_spectrum_and_strength(study, capsys):
    document = _json(["check", study, "--json"], capsys)
    assert document["fit"] is True
    for client in document["clients"]:
        assert client["noise_floor"] == 0.0
        assert all(strength > 1 for strength in client["strength"].values())


def test_check_prints_findings_as_a_table(tmp_path, capsys):
    world = jc.simulate.setting("A", 0)
    for k in range(world.n_clients):
        rows = world.sample(k, 3000, seed=0, departures=["sensor-noise=0.2"]).regimes
        np.savez(tmp_path / f"lab-{k}.npz", **rows)
    assert cli.run(["check", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "sensor-noise" in out
    assert out.splitlines()[-1] == "All 5 clients can say something about ancestors."


def test_the_same_rows_or_another_clients_are_not_added(study, tmp_path, capsys):
    first = tmp_path / "m.npz"
    assert cli.run(["moments", str(study / "client-1.csv"), "-o", str(first)]) == 0
    before = first.read_bytes()
    # Moments hold no rows.
    assert len(before) < (study / "client-1.csv").stat().st_size / 10
    lines = (study / "client-1.csv").read_text().splitlines()
    other = tmp_path / "elsewhere.csv"
    other.write_text("\n".join([lines[0], *lines[1::2]]) + "\n")
    for table, why in ((study / "client-1.csv", "already"), (other, "elsewhere")):
        capsys.readouterr()
        add = ["moments", str(table), "--add-to", str(first), "-o", str(first)]
        assert cli.run(add) == 2
        assert why in capsys.readouterr().err
    assert first.read_bytes() == before


def test_a_result_is_not_written_among_the_files_of_its_study(study, capsys):
    assert cli.run(["recover", str(study), "--out", str(study)]) == 2
    assert "--out" in capsys.readouterr().err
    assert not (study / "result.json").exists()


def test_a_folder_stands_for_its_fragments(folder, tmp_path, capsys):
    for piece in jc.load_result(folder).order.fragments:
        jc.save_fragment(piece, tmp_path / f"{piece.client}.json")
    files = sorted(tmp_path.iterdir())
    (tmp_path / "notes.txt").write_text("not a fragment")
    one, other = (_json(["assemble", *x, "--json"], capsys) for x in ([tmp_path], files))
    assert one == other


def test_explain_answers_as_python_does(folder, capsys):
    order = jc.load_result(folder).order
    a, d = sorted(order.pairs())[0]
    capsys.readouterr()
    assert cli.run(["explain", str(folder), a, d]) == 0
    assert capsys.readouterr().out.strip() == str(order.explain(a, d)).strip()
    document = _json(["explain", folder, a, d, "--json"], capsys)
    assert document["verdict"] == str(order.verdict(a, d))


@pytest.mark.slow
def test_design_without_a_size_says_why_so_many_labels(folder, capsys):
    document = _json(["design", folder, "--json"], capsys)
    found = jc.next_client(jc.load_result(folder).order)
    assert document["labels"] == list(found.labels)
    assert document["reason"] == found.reason != ""
    assert [tuple(pair) for pair in document["settles"]] == list(found.settles)
    assert cli.run(["design", str(folder)]) == 0
    out = capsys.readouterr().out
    assert f"why so many: {found.reason}" in out
    assert found.more_rows in out


def test_a_client_larger_than_the_order_is_cut_with_a_word(folder, capsys):
    everything = len(jc.load_result(folder).order.labels)
    assert cli.run(["design", str(folder), "--size", "99", "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["labels"]) in (0, everything)
    assert err == f"--size 99: the order has {everything} labels, so at most that\n"


def test_design_says_when_there_is_nothing_left_to_settle(tmp_path, capsys):
    result = jc.recover(jc.simulate.setting("A", 0).clients())
    assert not result.order.undetermined()
    result.save(tmp_path / "out")
    assert cli.run(["design", str(tmp_path / "out"), "--size", "3"]) == 0
    assert capsys.readouterr().out == "Nothing is undetermined: no further client is needed.\n"


def test_the_paper_s_method_states_pairs_and_gives_no_probability(study, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.run(["recover", str(study), "--method", "paper", "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "probab" not in told
    order = jc.load_result(out).order
    assert order.pairs()
    for a, d in order.hasse().edges:
        assert f"{a}\t{d}\n" in told
    a, d = min(order.pairs())
    assert "probab" not in str(order.explain(a, d))
    assert _json(["explain", out, a, d, "--json"], capsys)["probability"] is None


def test_labels_with_markup_are_printed_as_they_are(capsys, monkeypatch):
    from jigsaw_crl.cli.output import Table, emit

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    emit(False, {}, Table("t", ["label"], [("[red]x[/red]",)]))
    assert "[red]x[/red]" in capsys.readouterr().out


def test_commands_take_a_batch_column(tmp_path, capsys):
    kind = jc.simulate.Intervention.named("hard", shift=1.0)
    world = jc.simulate.random_world(4, 1, 1.0, seed=78_000, intervention=kind)
    control, regimes = world.rows(0, 1_500)
    rng = np.random.default_rng(0)
    frames = []
    for label, rows in {"control": control, **regimes}.items():
        plate = rng.integers(4, size=len(rows))
        frame = pd.DataFrame(rows + np.arange(4)[plate, None])
        frames.append(frame.assign(regime=label, plate=[f"p{i}" for i in plate]))
    table = tmp_path / "lab-1.csv"
    pd.concat(frames).to_csv(table, index=False)
    batch = ["--batch", "plate"]
    moments, piece = tmp_path / "lab-1.moments.npz", tmp_path / "lab-1.fragment.json"
    _json(["moments", table, *batch, "-o", moments, "--json"], capsys)
    assert jc.read_client(moments).batches == ("p0", "p1", "p2", "p3")
    _json(["fragment", table, *batch, "-o", piece, "--json"], capsys)
    assert "batch-wander" in piece.read_text()
    for source, options in ((table, batch), (moments, [])):
        checked = _json(["check", source, *options, "--json"], capsys)
        assert "batch-wander" in {f["check"] for f in checked["findings"]}
        recovered = _json(["recover", source, *options, "--json"], capsys)
        assert "batch-wander" in {f["check"] for f in recovered["findings"]}
