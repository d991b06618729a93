"""The command line: help, exit codes, JSON on stdout, notes on stderr."""

import json
import re
import time
from dataclasses import replace

import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.base.terminal import Table, counted, working
from jigsaw_crl.cli import app as cli
from jigsaw_crl.cli.output import emit
from jigsaw_crl.report.lines import findings_table

from ..processes import MAIN, python


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    root = tmp_path_factory.mktemp("cli") / "study"
    options = ["--setting", "A", "--samples", "2000", "--format", "csv"]
    assert cli.run(["simulate", *options, "--out", str(root)]) == 0
    return root


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "result"
    assert cli.run(["recover", str(study), "--out", str(out)]) == 0
    return out


@pytest.fixture
def document(told):
    """Run a command with --json; what it prints in one line."""

    def say(*arguments):
        (line,) = told(*arguments, "--json").splitlines()
        return json.loads(line)

    return say


def test_an_error_from_the_installed_command_is_one_line_and_exit_2(tmp_path):
    done = python("-c", MAIN, "check", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "jigsaw: file 'nowhere': there is no such file. Check the path.\n"


def test_an_interruption_exits_130(monkeypatch, study, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("jigsaw_crl.study.read_study", interrupted)
    assert cli.run(["check", str(study)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_defect_is_not_hidden(monkeypatch, study):
    def defect(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("jigsaw_crl.study.read_study", defect)
    with pytest.raises(ZeroDivisionError):
        cli.run(["check", str(study)])


def test_recover_names_the_open_pairs_of_the_best_guess(tmp_path, told, document):
    study = tmp_path / "study"
    told("simulate", "--setting=A", "--samples=300", "--seed=2", "--out", study)
    out = told("recover", study)
    order = jc.recover(jc.read_study(study)).order
    guessed = order.best_guess().pairs() - order.pairs()
    (line,) = [x for x in out.splitlines() if "best guess" in x]
    for a, d in guessed:
        assert f"{a} → {d} ({order.probability(a, d):.3f})" in line
    assert len(guessed) == line.count("→")
    said = document("recover", study)
    assert {tuple(pair) for pair in said["best_guess"]} == order.best_guess().pairs()
    assert {tuple(pair) for pair in said["pairs"]} == order.pairs()


def test_the_same_seed_gives_the_same_answer_whatever_the_jobs(study, document):
    one, two = (document("recover", study, "--jobs", jobs) for jobs in (1, 2))
    assert one == two
    assert set(one) == {
        "order", "pairs", "best_guess", "hasse", "clients", "left_out", "lost_labels",
        "findings", "out", "summary",
    }  # fmt: skip
    assert all(c["outcome"] == "ok" for c in one["clients"].values())


def test_a_result_is_not_written_among_the_files_of_its_study(study, told):
    assert "--out" in told("recover", study, "--out", study, code=2)
    assert not (study / "result.json").exists()


def test_the_paper_s_method_states_pairs_and_gives_no_probability(study, tmp_path, told, document):
    out = tmp_path / "out"
    said = told("recover", study, "--method", "paper", "--out", out)
    assert "probab" not in said
    order = jc.load_result(out).order
    assert order.pairs()
    for a, d in order.hasse().edges:
        assert f"{a}\t{d}\n" in said
    a, d = min(order.pairs())
    assert "probab" not in str(order.explain(a, d))
    assert document("explain", out, a, d)["probability"] is None


def test_a_client_larger_than_the_order_is_cut_with_a_word(folder, capsys):
    everything = len(jc.load_result(folder).order.labels)
    assert cli.run(["design", str(folder), "--size", "99", "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["labels"]) in (0, everything)
    assert err == f"--size 99: the order has {everything} labels, so at most that\n"


def test_design_says_when_there_is_nothing_left_to_settle(tmp_path, told):
    result = jc.recover(jc.simulate.setting("A", 0).clients())
    assert not result.order.undetermined()
    result.save(tmp_path / "out")
    said = told("design", tmp_path / "out", "--size", "3")
    assert said == "Nothing is undetermined: no further client is needed.\n"


def test_design_takes_what_cannot_be_had_and_what_it_costs(tmp_path, told, document):
    world = jc.simulate.setting("A", 0)
    result = jc.recover([world.client(0), world.client(4)])
    result.save(tmp_path / "out")
    asked = ["design", tmp_path / "out", "--cannot", "z1", "--cost", "z2=5"]
    found = jc.next_client(result.order, cost={"z2": 5.0}, cannot=["z1"])
    assert document(*asked)["labels"] == list(found.labels)
    assert "z1" not in found.labels
    assert "per unit of cost" in told(*asked)


def test_a_terminal_shows_how_far_a_loop_is_and_the_time_that_remains(capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with working("assembling"):
        for step in counted(range(30), 30):
            time.sleep(0.02 if step else 0.2)
    said = capsys.readouterr().err
    assert "assembling" in said
    # The time that has passed, and the time that remains.
    assert len(re.findall(r"0:00:\d\d", said.partition("30/30")[2])) == 2


def test_labels_with_markup_are_printed_as_they_are(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    emit(False, {}, Table("t", ["label"], [("[red]x[/red]",)]))
    assert "[red]x[/red]" in capsys.readouterr().out


def test_the_same_finding_about_several_clients_is_one_line(capsys):
    one = Finding("ignored-column", "info", "the column 'time' is text", "Nothing.", client="a")
    other = Finding(
        "outliers", "error", "a few rows", "Look.", value=2.0, client="b", regime="pump"
    )
    found = [*(replace(one, client=c) for c in "abcdefgh"), other, replace(one, value=3.0)]
    emit(False, {}, findings_table(found))
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[1] for line in lines] == ["b/pump", "a, b, c, d, e, f and 2 more", "a"]
    assert [line[0] for line in lines] == ["error", "info", "info"]


def test_a_page_that_is_written_again_says_the_same_but_for_the_sensors(study, folder, tmp_path):
    again = tmp_path / "again.html"
    sensors = re.compile(r'<section id="sensors".*?</section>\n', re.DOTALL)
    assert cli.run(["report", str(folder), "-o", str(again)]) == 0
    before, after = (folder / "report.html").read_text(), again.read_text()
    # What sensors carry is known where the rows were read, and is not kept.
    assert sensors.search(before)
    assert "Not known here: it stays where the rows are read" in after
    assert sensors.sub("", after).split() == sensors.sub("", before).split()


def test_simulate_counts_the_labels_that_clients_have(tmp_path, told):
    world = ["--latent=6", "--clients=4", "--coverage=0.6", "--samples=50", "--seed=1"]
    said = told("simulate", *world, "--out", tmp_path / "study")
    labels = {x for client in jc.read_study(tmp_path / "study") for x in client.labels}
    assert len(labels) == 5
    assert "4 clients, 5 labels written to" in said
