"""`jigsaw simulate`: the options reach the world that is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

import jigsaw_crl as jc
from jigsaw_crl.cli.app import run
from jigsaw_crl.truth.simulate import (
    DEPARTURES,
    FAMILIES,
    INTERVENTIONS,
    SYSTEMS,
    Intervention,
    random_world,
)

SIZE = ["--latent", "6", "--clients", "2", "--coverage", "0.8", "--seed", "3"]


def test_graph_and_interventions_are_those_asked_for(tmp_path):
    out = tmp_path / "study"
    options = ["--graph", "chain", "--strength", "0.5", "--intervention", "hard", "--shift", "2"]
    assert run(["simulate", *SIZE, *options, "--out", str(out)]) == 0
    protocol = Intervention("hard", shift=2.0)
    world = random_world(6, 2, 0.8, 3, graph="chain", strength=0.5, intervention=protocol)
    truth = json.loads((out / "truth" / "truth.json").read_text())
    assert {tuple(pair) for pair in truth["pairs"]} == world.order.pairs()
    written, expected = jc.read_study(out), world.clients()
    for read, client in zip(written.clients, expected, strict=True):
        for label in client.labels:
            one, two = read.interventions[label][0], client.interventions[label][0]
            assert np.allclose(one.mean, two.mean)
            assert np.allclose(one.covariance, two.covariance)


def test_a_setting_takes_interventions_but_no_graph(tmp_path, capsys):
    command = ["simulate", "--setting", "A", "--intervention", "mild", "--shift", "1"]
    assert run([*command, "--out", str(tmp_path / "a")]) == 0
    assert run([*command, "--graph", "chain", "--out", str(tmp_path / "b")]) == 2
    assert "--setting excludes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--graph", "ring"], "no graph family 'ring'"),
        (["--intervention", "odd"], "no intervention protocol 'odd'"),
        (["--departure", "penetrance=0", "--samples", "9"], "penetrance cannot have the size 0"),
        (["--features", "0.5"], "features is 0.5"),
        (["--system", "cubic"], "no system 'cubic'"),
        (["--system", "tanh"], "no exact moments"),
        (["--departure", "ar=0.8"], "no departure 'ar'"),
        (["--departure", "missing=0.1"], "missing needs rows"),
        (["--departure", "missing=0.1@x", "--samples", "99"], "no client 'x'"),
    ],
)
def test_options_that_mean_nothing_end_in_one_line(options, says, tmp_path, capsys):
    assert run(["simulate", *SIZE, *options, "--out", str(tmp_path / "s")]) == 2
    shown = capsys.readouterr().err
    assert says in shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "s").exists()


def test_the_help_names_every_graph_family_protocol_departure_and_system(capsys):
    assert run(["simulate", "--help"]) == 0
    # A narrow terminal breaks names at their hyphens.
    shown = "".join(x for x in capsys.readouterr().out if x.isalnum() or x == "-")
    assert all(name in shown for name in (*FAMILIES, *INTERVENTIONS, *DEPARTURES, *SYSTEMS))


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_departures_are_in_the_rows_and_in_the_truth(kind, tmp_path):
    out, features = tmp_path / "study", ["--features", "3", "--format", kind, "--samples", "400"]
    options = ["--departure", "autocorrelation=0.5", "--departure", "lacks-edge=1@client-2"]
    assert run(["simulate", *SIZE, *features, *options, "--out", str(out)]) == 0
    world = random_world(6, 2, 0.8, 3, features=3)
    departures = ["autocorrelation=0.5", "lacks-edge=1@client-2"]
    truth = json.loads((out / "truth" / "truth.json").read_text())
    assert truth["departures"] == departures
    assert truth["departed"]["client-1"]["departures"] == departures[:1]
    assert truth["departed"]["client-2"]["departures"] == departures
    assert truth["departed"]["client-1"]["lacks_edges"] == []
    assert truth["departed"]["client-2"]["lacks_edges"][0] in [list(p) for p in world.order.pairs()]
    for k, read in enumerate(jc.read_study(out).clients):
        rows = world.sample(k, 400, seed=3, departures=departures)
        assert np.allclose(read.control.mean, rows.regimes["control"].mean(axis=0))


def test_subjects_are_a_column_and_missing_cells_are_empty(tmp_path):
    out = tmp_path / "study"
    options = ["--samples", "100", "--format", "csv"]
    options += ["--departure", "subjects=0.5x10", "--departure", "missing=0.1"]
    assert run(["simulate", *SIZE, *options, "--out", str(out)]) == 0
    header, *lines = (out / "client-1.csv").read_text().splitlines()
    assert header.startswith('"regime","subject","x1"')
    assert any(",," in line for line in lines)
    assert not any("nan" in line for line in lines)
    assert len({line.split(",")[1] for line in lines if '"control"' in line}) == 10
