"""Hard interventions, effects and bounds on the command line."""

import json
import re

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.base.text import signed
from jigsaw_crl.cli import app as cli


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    root = tmp_path_factory.mktemp("cli") / "study"
    world = ["--latent", "4", "--clients", "3", "--coverage", "0.9", "--seed", "3"]
    options = [*world, "--intervention", "hard", "--shift", "1", "--samples", "2000"]
    assert cli.run(["simulate", *options, "--format", "csv", "--out", str(root)]) == 0
    return root


@pytest.fixture(scope="module")
def folder(study, tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "result"
    assert cli.run(["recover", str(study), "--interventions", "hard", "--out", str(out)]) == 0
    return out


def test_recover_prints_effects_and_direct_edges_of_hard_interventions_only(study, folder, told):
    result = jc.load_result(folder)
    out = told("recover", study, "--interventions", "hard")
    row = result.effects[result.effects.verdict == "ancestor"].iloc[0]
    assert f"{row.cause}\t{row.effect}\t{row.total:+.3f}\t" in out
    stated = sum(v == "direct" for _, _, v in result.graph.edges(data="verdict"))
    assert re.search(rf"graph: {stated} direct edges?, \d+ undetermined", out)
    soft = told("recover", study)
    assert "Total effects" not in soft
    assert "graph:" not in soft
    assert {"effects.csv", "graph.graphml"} <= {path.name for path in folder.iterdir()}


def test_the_kind_is_given_by_label_and_refused_in_one_line(study, told, refused):
    label = jc.read_study(study).labels[0]
    out = told("check", study, "--interventions", f"{label}=hard", "--json")
    assert json.loads(out)["fit"]
    both = ["--interventions", "hard", "--interventions", f"{label}=soft"]
    document = json.loads(told("recover", study, *both, "--json"))
    assert document["effects"]
    assert label not in {row["effect"] for row in document["effects"]}
    for wrong, message in (
        (["firm"], "--interventions is 'firm'"),
        (["=hard"], "--interventions is '=hard'"),
        (["nowhere=hard"], "'nowhere', which no client has"),
        (["hard", "soft"], "both hard and soft"),
    ):
        options = [x for kind in wrong for x in ("--interventions", kind)]
        refused(["recover", study, *options], message)
    paper = ["recover", study, "--method", "paper"]
    refused([*paper, "--interventions", "hard"], "--interventions belongs to")
    refused([*paper, "--smallest-effect", "0.1"], "smallest_effect belongs to")


def test_rows_added_to_moments_are_of_the_kind_of_the_earlier_ones(study, tmp_path, told):
    table = min(study.glob("*.csv"))
    lines = table.read_text().splitlines()
    halves = []
    for part in (0, 1):
        path = tmp_path / f"{part}" / table.name
        path.parent.mkdir()
        path.write_text("\n".join([lines[0], *lines[1 + part :: 2]]) + "\n")
        halves.append(path)
    first, both = tmp_path / "first.npz", tmp_path / "both.npz"
    told("moments", halves[0], "-o", first, "--interventions", "hard")
    told("moments", halves[1], "-o", both, "--add-to", first)
    assert jc.read_client(both).hard == set(jc.read_client(table).labels)
    assert jc.read_client(both).n_samples == jc.read_client(table).n_samples
    again = ["moments", halves[1], "-o", both, "--add-to", first, "--interventions", "soft"]
    assert "hard in one part of the rows" in told(*again, code=2)


def test_explain_shows_the_effect_and_what_a_no_excludes(folder, told):
    result = jc.load_result(folder)
    yes = result.effects[result.effects.verdict == "ancestor"].iloc[0]
    assert f"{signed(yes.total)} standard deviations (95 %" in told(
        "explain", folder, yes.cause, yes.effect
    )
    no = result.effects[result.effects.verdict == "not ancestor"].iloc[0]
    document = json.loads(told("explain", folder, no.cause, no.effect, "--json"))
    assert document["excludes_above"] == result.order.bound(no.cause, no.effect)
    assert document["excludes_unit"] == "standard deviations"
    assert document["effect"] is None
    assert "are excluded (95 %, one-sided)." in document["certificate"]


def test_predict_prints_the_change_of_every_label(folder, told, refused):
    result = jc.load_result(folder)
    label = result.order.labels[0]
    frame = result.predict_shift({label: -0.5})
    out = told("predict", folder, f"{label}=-0.5")
    for row in frame.itertuples():
        change = "undetermined" if np.isnan(row.change) else f"{row.change:+.3f}"
        assert f"{row.label}\t{change}\t" in out
    document = json.loads(told("predict", folder, f"{label}=-0.5", "--json"))
    assert [x["label"] for x in document["changes"]] == list(frame.label)
    for wrong in ("pump", f"{label}=much", "=1", f"{label}=nan"):
        refused(["predict", folder, wrong], "Write LABEL=AMOUNT")
    refused(["predict", folder, "nowhere=1"], "no client has the label")
    refused(["predict", folder, f"{label}=1", f"{label}=2"], "two amounts")


def test_a_smallest_effect_is_kept_with_the_result(study, tmp_path, told):
    told("recover", study, "--smallest-effect", 0.3, "--out", tmp_path / "r")
    assert jc.load_result(tmp_path / "r").order.options.smallest_effect == 0.3
    assert "above 0" in told("recover", study, "--smallest-effect", "-1", code=2)
