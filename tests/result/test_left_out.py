"""What was left out is told: in the result, on the terminal, on the page, and before recovery."""

import json
from dataclasses import replace

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.findings import Finding
from jigsaw_crl.report.writing import render_report
from jigsaw_crl.result.summary import summarise

from ..assembly.clients import lab
from ..study.tables import frame_of


def plant(k):
    return jc.simulate.setting("A", 0).sample(k, 3_000).regimes


def with_a_copy():
    """Its regime z1 holds the rows of another one, so z1 is refused."""
    regimes = plant(0)
    del regimes["z2"]
    return {"first": regimes["z1"], **regimes}


def with_an_outlier():
    """Its control cannot be used, so all of it is refused."""
    regimes = plant(1)
    regimes["control"][0, 0] = 1e6
    return regimes


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three labs: one that loses z1, one that is lost, one that is well and has no z1."""
    root = tmp_path_factory.mktemp("left-out") / "study"
    root.mkdir()
    labs = {"copied": with_a_copy(), "broken": with_an_outlier(), "well": plant(2)}
    for name, regimes in labs.items():
        frame_of(regimes).to_csv(root / f"{name}.csv", index=False)
    return root


@pytest.fixture(scope="module")
def result(study):
    return jc.recover(jc.read_study(study))


def test_the_result_names_what_it_left_out_and_the_labels_missing_from_the_order(result):
    assert {(p.client, p.label, p.check) for p in result.left_out} == {
        ("copied", "z1", "duplicated-regime"),
        ("broken", None, "outliers"),
    }
    assert "z1" not in result.order.labels
    assert list(result.lost_labels) == ["z1"]
    # z1 is a label of the lab that is lost, too; its other labels are also those of another lab.
    assert {p.client for p in result.lost_labels["z1"]} == {"copied", "broken"}


def test_the_terminal_names_what_was_left_out(study, tmp_path, told):
    out = told("recover", study, "--out", tmp_path / "out")
    assert "left out: z1 of copied, because the regime holds the same rows as 'first'\n" in out
    assert "left out: client broken, because a few rows carry the variance of 'x1'" in out
    assert "missing from the order, because left out of every client: z1\n" in out
    err = told("explain", tmp_path / "out", "z1", "z3", code=2)
    assert "'z1' is missing from the order" in err
    assert "holds the same rows" in err
    document = json.loads(told("recover", study, "--json"))
    assert document["lost_labels"] == ["z1"]
    assert {part["client"] for part in document["left_out"]} == {"copied", "broken"}


def test_the_page_names_what_was_left_out_and_escapes_it(result):
    page = render_report(result)
    assert 'id="left-out"' in page
    assert "because the regime holds the same rows as &#39;first&#39;" in page
    assert "because they were left out of every client: <bdi>z1</bdi>." in page
    bad = Finding("x", "error", "<b>saw</b>", "do", client="<i>", regime="<u>")
    odd = jc.Result(result.fragments, result.order, (bad,))
    assert "<i>" not in render_report(odd)
    assert "<b>saw" not in render_report(odd)


def test_check_says_what_recover_will_do(study, told):
    lines, again = (told(command, study).splitlines() for command in ("check", "recover"))
    assert any(line.startswith("left out: z1 of copied") for line in lines)
    said = "2 of 3 clients can say something about ancestors. Left out: broken."
    assert lines[0].startswith(said)
    assert lines[0] == lines[-1] == again[0] == again[-1]


def test_check_says_when_the_data_do_not_tell_the_order(tmp_path, told):
    effects = np.diag([0.9, -1.1], k=-1)
    world = jc.simulate.world_from_graph(
        effects, [("a", "b", "c")], (5,), seed=9, names=("a", "b", "c"), intervention="noise-only"
    )
    np.savez(tmp_path / "lab.npz", **world.sample(0, 5000).regimes)
    out = told("check", tmp_path / "lab.npz")
    assert "lab: not-identified: " in out
    said = out.splitlines()[-1]
    assert said.startswith("0 of 1 client can say something about ancestors. Noise or means alone")
    assert said.endswith("or take more rows where they are few.")
    assert told("recover", tmp_path / "lab.npz").splitlines()[-1] == said
    result = jc.recover([jc.read_client(tmp_path / "lab.npz")]).with_proposal()
    # The page begins and ends with it too, and says what to change.
    assert render_report(result).count(said) == 2
    assert set(result.proposal.hard) == set(result.proposal.labels)
    assert "settles at most" in str(result.proposal)


def test_a_summary_says_first_that_nothing_is_decided():
    one, two = (lab(name, ["a", "b", "c"]) for name in ("one", "two"))
    silent = replace(two, outcome=jc.Outcome("not-identified", "", ""))
    found = summarise({"one": one, "two": silent}, (), (), 6)
    assert found.startswith("Nothing is decided: none of 6 ordered pairs has enough evidence")
    assert "1 of 2 clients can say something about ancestors" in found
    # More rows of soft interventions settle nothing where they change noise alone.
    assert "Hard interventions that shift the mean settle most" in found
    assert "Take more rows, or" not in found
    mute = summarise({"two": silent}, (), (), 6)
    assert mute.startswith("0 of 1 client can say something about ancestors")
    assert jc.recover(jc.simulate.setting("A", 0).clients()).summary.startswith("All 5 clients")


def test_more_rows_are_the_advice_where_all_interventions_are_hard_and_shift_the_mean():
    kind = jc.simulate.Intervention("hard", shift=1.0)
    world = jc.simulate.random_world(4, 1, 1.0, 3, intervention=kind)
    result = jc.recover(world.clients(150), interventions="hard")
    summary = summarise(result.fragments, (), (), 12)
    assert summary.endswith(
        "Take more rows, or intervene more strongly: `jigsaw design` says where."
    )


def test_a_client_with_one_label_says_nothing_about_ancestors():
    pieces = {name: lab(name, own) for name, own in (("one", ["a"]), ("two", ["a", "b"]))}
    told = summarise(pieces)
    assert told.startswith("1 of 2 clients can say something about ancestors. Only one label")
    assert summarise({"two": pieces["two"]}).startswith("1 of 1 client can")
    both = {name: lab(name, ["a", "b"]) for name in ("one", "two")}
    assert summarise(both) == "Both clients can say something about ancestors."
